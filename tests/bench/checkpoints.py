"""What a save takes from the training step, beside orbax: `python -m tests.bench.checkpoints [--peer-env DIR]`.

A state of 100 MB in 24 arrays over 8 CPU devices is saved while steps go on: one kind of step leaves the machine idle
(50 ms of sleep and a little arithmetic, as on a host whose accelerator works), the other keeps every core busy. Stolen
is the time of all steps from the save until it is committed, less that of as many steps with no save under way, taken
right before and after: what blocks the loop, and what slows it down. The systems take turns, in one process, `--rounds`
times; medians are printed. Ours writes crc32c, digests and a manifest; orbax writes its default, and without
compression.

orbax is not among our dependencies; an environment of its own is made by
    uv venv DIR
    uv pip install --python DIR/bin/python orbax-checkpoint jax==0.10.2 tensorstore google-crc32c jaxtyping
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
LEAVES, SIDE = 24, 1024
LEAST_STEPS = 10


class Cost(NamedTuple):
    """Seconds that one save took."""

    stolen: float
    """From the steps, all in all."""
    blocking: float
    """Until the call returned."""
    total: float
    """Until it was committed."""
    cpu: float
    """Of processors, less what the steps take; other processes on the machine do not bend it."""


class System(ABC):
    """Something that saves beside the step."""

    name: str

    @abstractmethod
    def save(self, step: int, state: Any) -> None:
        """Returns when the state may be overwritten."""

    @abstractmethod
    def busy(self) -> bool:
        """Whether the save is not committed yet."""

    @abstractmethod
    def close(self) -> None:
        """Let go."""


class Ours(System):
    """Checksums, digests and manifest included."""

    name = "spotrail"

    def __init__(self, folder: Path) -> None:
        from training.checkpoint.checkpointer import Checkpointer

        self._checkpointer = Checkpointer(folder, run="bench")

    def save(self, step: int, state: Any) -> None:
        self._checkpointer.save(step, state, {})

    def busy(self) -> bool:
        return self._checkpointer.busy

    def close(self) -> None:
        self._checkpointer.close()


class Orbax(System):
    """CheckpointManager with asynchronous saves."""

    def __init__(self, folder: Path, *, compressed: bool) -> None:
        import orbax.checkpoint as ocp

        self.name = f"orbax {ocp.__version__}, {'as it comes' if compressed else 'uncompressed'}"
        self._ocp = ocp
        options = ocp.CheckpointManagerOptions(max_to_keep=3, enable_async_checkpointing=True)
        handler = ocp.PyTreeCheckpointHandler(use_compression=compressed)
        self._manager = ocp.CheckpointManager(folder, options=options, item_handlers=handler)

    def save(self, step: int, state: Any) -> None:
        self._manager.save(step, args=self._ocp.args.PyTreeSave(state))

    def busy(self) -> bool:
        return bool(self._manager.is_saving_in_progress())

    def close(self) -> None:
        self._manager.wait_until_finished()
        self._manager.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-env", type=Path, help="a virtual environment with orbax-checkpoint and jax")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary folder)")
    options = parser.parse_args()
    if options.peer_env:
        arguments = [*sys.argv[1:]]
        at = arguments.index("--peer-env")
        del arguments[at : at + 2]
        command = [str(options.peer_env / "bin" / "python"), "-m", "tests.bench.checkpoints", *arguments]
        sys.exit(subprocess.run(command, cwd=ROOT, check=False).returncode)
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        report(Path(folder), options.rounds)


def report(folder: Path, rounds: int) -> None:
    """All systems under both kinds of step."""
    import jax

    state = made_state()
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    print(f"{size / 1e6:.0f} MB in {LEAVES} arrays; jax {jax.__version__}; load {os.getloadavg()[0]:.1f}")
    for kind, step in (("idle host", idle_step()), ("busy cores", busy_step())):
        systems = opened(folder / kind.replace(" ", "-"))
        costs: dict[str, list[Cost]] = {system.name: [] for system in systems}
        for number in range(rounds + 1):
            for system in systems:
                cost = one_save(system, number, state, step)
                if number:  # the first one warms up
                    costs[system.name].append(cost)
        for system in systems:
            system.close()
        print(f"\n{kind}: median of {rounds} saves, ms   stolen [quartiles]   blocking  until committed  processors")
        ours = statistics.median(cost.stolen for cost in costs[Ours.name])
        for name, found in costs.items():
            stolen = [cost.stolen for cost in found]
            low, middle, high = statistics.quantiles(stolen, n=4)
            blocking, total, cpu = (1e3 * statistics.median(column) for column in list(zip(*found, strict=True))[1:])
            quartiles = f"{middle * 1e3:16.0f} [{low * 1e3:4.0f} .. {high * 1e3:4.0f}]"
            ratio = f"stolen: ours / it = {ours / middle:.2f}"
            print(f"  {name:28} {quartiles} {blocking:10.0f} {total:16.0f} {cpu:11.0f}   {ratio}")


def opened(folder: Path) -> list[System]:
    """The systems that this environment has."""
    systems: list[System] = [Ours(folder / "ours")]
    try:
        systems += [Orbax(folder / "orbax", compressed=True), Orbax(folder / "orbax-plain", compressed=False)]
    except ImportError:
        print("no orbax-checkpoint here; see --help")
    return systems


def made_state() -> Any:
    """Arrays over all devices."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()), ("data",))
    sharding = NamedSharding(mesh, PartitionSpec("data"))
    source = np.random.default_rng(0)
    return {
        f"leaf_{number}": jax.device_put(source.standard_normal((SIDE, SIDE), np.float32), sharding)
        for number in range(LEAVES)
    }


def idle_step() -> Callable[[], None]:
    """50 ms in which an accelerator would work, and a little arithmetic."""
    import jax
    import jax.numpy as jnp

    little = jax.jit(lambda x: x * 1.5 + 1.0)
    x = jnp.ones((64, 64))

    def step() -> None:
        time.sleep(0.05)
        little(x).block_until_ready()

    return step


def busy_step() -> Callable[[], None]:
    """Products that keep every core busy, for about 50 ms."""
    import jax
    import jax.numpy as jnp

    multiply = jax.jit(lambda x: x @ x)
    x = jnp.ones((1024, 1024))
    multiply(x).block_until_ready()
    began = time.perf_counter()
    for _ in range(5):
        multiply(x).block_until_ready()
    times = max(1, round(0.05 / ((time.perf_counter() - began) / 5)))

    def step() -> None:
        for _ in range(times):
            multiply(x).block_until_ready()

    return step


def one_save(system: System, number: int, state: Any, step: Callable[[], None]) -> Cost:
    """A save of that number, with steps before and behind it."""
    before = timed_steps(step, LEAST_STEPS)
    began, began_cpu = time.perf_counter(), time.process_time()
    system.save(number, state)
    blocking = time.perf_counter() - began
    steps, total = 0, None
    while steps < LEAST_STEPS or total is None:
        step()
        steps += 1
        if total is None and not system.busy():
            total = time.perf_counter() - began
    elapsed, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    after = timed_steps(step, LEAST_STEPS)
    usual, usual_cpu = ((one + other) / 2 for one, other in zip(before, after, strict=True))
    return Cost(stolen=elapsed - steps * usual, blocking=blocking, total=total, cpu=cpu - steps * usual_cpu)


def timed_steps(step: Callable[[], None], count: int) -> tuple[float, float]:
    """Seconds a step, by the clock and of processors."""
    began, began_cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        step()
    return (time.perf_counter() - began) / count, (time.process_time() - began_cpu) / count


if __name__ == "__main__":
    main()
