"""What an update costs: `python -m tests.bench.optimizers [--rounds N] [--only NAME ...] [--peer-python PYTHON]`.

The tree is a transformer of 14.6 million parameters in fp32, its layers not stacked: width 384, 6 layers, feed-forward
1536, vocabulary 10 000. Ours run as they do in training, with the guard, the cap on the gradient, weight decay and the
learning rate; `optax.adamw` by itself is beside them. All take turns in one process, each with its state donated and
compiled with the options of a training step.

`--peer-python` is the interpreter of an environment that tests/bench/peers/optimizer_environment.py has made: then all
of it runs there, and distributed-kron, psgd-jax and psgdax take turns with ours.

Medians, and their ratio to our AdamW. The least wall time and the processor time of all threads stand beside, since
another process on the machine makes wall time longer, never shorter.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
import optax

from training.compiling import compiler_options
from training.optim.adamw import AdamWConfig
from training.optim.build import OptimConfig, build_optimizer
from training.optim.kron_config import KronConfig, Memory
from training.optim.learning import LearningConfig
from training.optim.muon import MuonConfig

ROOT: Final = Path(__file__).parent.parent.parent
WIDTH, LAYERS, FEED_FORWARD, VOCABULARY, POSITIONS = 384, 6, 1536, 10_000, 256
STEPS: Final = 10**6
"""The length of the run that is measured at its start."""
LEARNING: Final = LearningConfig(weight_decay=0.1)
OURS: Final[Mapping[str, OptimConfig]] = {
    "adamw": AdamWConfig(),
    "muon": MuonConfig(),
    "kron every step": KronConfig(dense_steps=STEPS),
    "kron 1/10 a step": KronConfig(dense_steps=0),
    "kron one-sided every": KronConfig(memory=Memory.ONE_SIDED, dense_steps=STEPS),
    "kron one-sided 1/10": KronConfig(memory=Memory.ONE_SIDED, dense_steps=0),
    "kron diagonal every": KronConfig(memory=Memory.DIAGONAL, dense_steps=STEPS),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--rounds", type=int, default=20, help="updates of each (default 20)")
    parser.add_argument("--only", nargs="*", default=[], help="parts of the names to keep, beside our AdamW")
    parser.add_argument("--peer-python", help="the interpreter of the environment of the peers")
    parser.add_argument("--peers", action="store_true", help="the peers can be imported here")
    options = parser.parse_args()
    if options.peer_python:
        rest = ["--peers", "--rounds", str(options.rounds), "--only", *options.only]
        sys.exit(subprocess.run([options.peer_python, "-m", "tests.bench.optimizers", *rest], cwd=ROOT).returncode)
    print(
        f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; jax {jax.__version__}, optax {optax.__version__}"
    )
    params, grads = parameters(0), parameters(1)
    running = []
    for name, make in contenders(with_peers=options.peers):
        if name == "adamw" or not options.only or any(part in name for part in options.only):
            running.append(Contender(name, make(), params, grads))
    for _ in range(options.rounds):
        for contender in running:
            contender.run()
    report(running)
    print(f"load {os.getloadavg()[0]:.1f}")


def parameters(seed: int) -> dict[str, Any]:
    """Random numbers in the shapes of the transformer."""
    draw = np.random.default_rng(seed)

    def array(*shape: int) -> Any:
        return jnp.asarray(draw.standard_normal(shape), jnp.float32)

    def linear(inputs: int, outputs: int) -> dict[str, Any]:
        return {"kernel": array(inputs, outputs), "bias": array(outputs)}

    def norm() -> dict[str, Any]:
        return {"scale": array(WIDTH), "bias": array(WIDTH)}

    def layer() -> dict[str, Any]:
        square = {name: linear(WIDTH, WIDTH) for name in ("query", "key", "value", "output")}
        wide = {"up": linear(WIDTH, FEED_FORWARD), "down": linear(FEED_FORWARD, WIDTH)}
        return {**square, **wide, "norm1": norm(), "norm2": norm()}

    return {
        "embed": array(VOCABULARY, WIDTH),
        "positions": array(POSITIONS, WIDTH),
        "layers": {f"layer{number}": layer() for number in range(LAYERS)},
        "norm": norm(),
    }


def contenders(*, with_peers: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What takes turns, our AdamW first; each is made when its turn comes."""
    for name, config in OURS.items():
        yield name, lambda config=config: build_optimizer(config, LEARNING, steps=STEPS, stacked=lambda path: False)
    yield "optax.adamw", lambda: optax.adamw(1e-3, weight_decay=0.1)
    if with_peers:
        yield from peers()


def peers() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The optimizers of others, each refreshing its preconditioner every step, and without where that can be had."""
    import distributed_kron
    import psgd_jax.kron
    import psgdax

    def of_psgdax(probability: float) -> Any:
        # Its own default key would be donated with the first state that holds it.
        return psgdax.kron(
            1e-3,
            preconditioner_mode="QUAD",
            preconditioner_update_probability=probability,
            max_skew_triangular=1.0,
            key=jax.random.PRNGKey(0),
        )

    yield "distributed-kron QUAD", lambda: distributed_kron.pro(1e-3, preconditioner_update_style="QUAD")
    yield "psgd-jax every step", lambda: psgd_jax.kron.kron(1e-3, preconditioner_update_probability=1.0)
    yield (
        "psgd-jax one-sided",
        lambda: psgd_jax.kron.kron(1e-3, preconditioner_update_probability=1.0, memory_save_mode="one_diag"),
    )
    yield "psgdax QUAD one-sided", lambda: of_psgdax(1.0)


class Contender:
    """One optimizer with its compiled update and its times."""

    def __init__(self, name: str, tx: Any, params: Any, grads: Any) -> None:
        self.name = name
        self.wall: list[float] = []
        self.processor: list[float] = []
        self._tx = tx
        self._given = grads, params
        self._extra = {"loss": jnp.ones(())} if name in OURS else {}
        self._step = jax.jit(self._update, donate_argnums=1, compiler_options=compiler_options())
        with contextlib.redirect_stdout(sys.stderr):  # a peer prints what it has found
            state = tx.init(params)
        # Copied: arrays that an optimizer's `init` hands to every state are not to be donated with this one.
        self._state = jax.tree.map(lambda leaf: jnp.array(leaf, copy=True), state)
        self.megabytes = sum(leaf.nbytes for leaf in jax.tree.leaves(self._state)) / 1e6
        self.run()
        self.compilation = self.processor[0]
        self.wall, self.processor = [], []

    def _update(self, grads: Any, state: Any, params: Any) -> tuple[Any, Any]:
        updates, state = self._tx.update(grads, state, params, **self._extra)
        return updates, state

    def run(self) -> None:
        """One update, timed."""
        grads, params = self._given
        wall, processor = time.perf_counter(), time.process_time()
        updates, self._state = self._step(grads, self._state, params)
        jax.block_until_ready((updates, self._state))
        self.wall.append(time.perf_counter() - wall)
        self.processor.append(time.process_time() - processor)


def report(running: list[Contender]) -> None:
    """A line for each; ratios are to the first. What it took to compile is processor time, of one update with it."""
    first = running[0]
    columns = f"{'median':>10}{'ratio':>8}{'p90/median':>12}{'least':>9}{'ratio':>8}{'cpu':>9}{'ratio':>8}"
    print(f"{'':24}{columns}{'state':>10}{'compile':>9}")
    for one in running:
        median, least, cpu = np.median(one.wall), min(one.wall), np.median(one.processor)
        print(
            f"{one.name:24}{median * 1e3:7.1f} ms{median / np.median(first.wall):8.2f}"
            f"{np.quantile(one.wall, 0.9) / median:12.2f}{least * 1e3:9.1f}{least / min(first.wall):8.2f}"
            f"{cpu * 1e3:9.1f}{cpu / np.median(first.processor):8.2f}{one.megabytes:7.1f} MB{one.compilation:7.1f} s"
        )


if __name__ == "__main__":
    main()
