"""How long an update of Kron takes beside AdamW's: `python -m tests.bench.kron_step [--rounds N] [--block-size B]`.

The tree is a transformer of 14.6 million parameters in fp32, its layers not stacked: width 384, 6 layers, feed-forward
1536, vocabulary 10 000. All optimizers take turns in one process, with their state donated. Medians, and the ratio to
AdamW's; the least wall time and the processor time of all threads are printed beside, since another process on the
machine makes wall time longer.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
import optax

from training.optim.kron import scale_by_kron
from training.optim.kron_config import KronConfig, Memory

WIDTH: Final = 384
LAYERS: Final = 6
FEED_FORWARD: Final = 1536
VOCABULARY: Final = 10_000
POSITIONS: Final = 256
ALWAYS: Final = 10**9
"""So many dense steps that the rotation never begins."""


def parameters(seed: int) -> dict[str, Any]:
    """Random numbers in the shapes of the transformer."""
    rng = np.random.default_rng(seed)

    def linear(inputs: int, outputs: int) -> dict[str, Any]:
        return {"kernel": array(inputs, outputs), "bias": array(outputs)}

    def array(*shape: int) -> Any:
        return jnp.asarray(rng.standard_normal(shape), jnp.float32)

    def norm() -> dict[str, Any]:
        return {"scale": array(WIDTH), "bias": array(WIDTH)}

    def layer() -> dict[str, Any]:
        square = {name: linear(WIDTH, WIDTH) for name in ("query", "key", "value", "output")}
        wide = {"up": linear(WIDTH, FEED_FORWARD), "down": linear(FEED_FORWARD, WIDTH)}
        return {**square, **wide, "norm1": norm(), "norm2": norm()}

    return {
        "embed": array(VOCABULARY, WIDTH),
        "positions": array(POSITIONS, WIDTH),
        "layers": [layer() for _ in range(LAYERS)],
        "norm": norm(),
    }


class Contender:
    """One optimizer with its compiled update and its times."""

    def __init__(self, name: str, tx: optax.GradientTransformationExtraArgs, params: Any, grads: Any) -> None:
        self.name = name
        self.wall: list[float] = []
        self.processor: list[float] = []
        self._grads, self._params = grads, params
        self._step = jax.jit(lambda grads, state, params: tx.update(grads, state, params), donate_argnums=1)
        self._state = jax.jit(tx.init)(params)
        self.megabytes = sum(leaf.nbytes for leaf in jax.tree.leaves(self._state)) / 1e6
        began = time.process_time()
        self.run()
        self.compilation = time.process_time() - began
        self.wall, self.processor = [], []

    def run(self) -> None:
        """One update, timed."""
        wall, processor = time.perf_counter(), time.process_time()
        updates, self._state = self._step(self._grads, self._state, self._params)
        jax.block_until_ready((updates, self._state))
        self.wall.append(time.perf_counter() - wall)
        self.processor.append(time.process_time() - processor)


def contenders(block_size: int) -> Mapping[str, optax.GradientTransformationExtraArgs]:
    """What takes turns: AdamW first."""
    every = {"block_size": block_size, "dense_steps": ALWAYS}
    staggered = {"block_size": block_size, "dense_steps": 0}
    return {
        "adamw": optax.adamw(1e-3),
        "kron, every step": scale_by_kron(KronConfig(**every)),
        "kron, 1/10 a step": scale_by_kron(KronConfig(**staggered)),
        "kron one-sided, every": scale_by_kron(KronConfig(memory=Memory.ONE_SIDED, **every)),
        "kron one-sided, 1/10": scale_by_kron(KronConfig(memory=Memory.ONE_SIDED, **staggered)),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="rounds of two updates each (default 20)")
    parser.add_argument("--block-size", type=int, default=KronConfig().block_size)
    parser.add_argument("--only", nargs="*", default=[], help="parts of the names to keep, beside AdamW")
    options = parser.parse_args()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, jax {jax.__version__}, {jax.default_backend()}")
    params, grads = parameters(0), parameters(1)
    chosen = {
        name: tx
        for name, tx in contenders(options.block_size).items()
        if name == "adamw" or not options.only or any(part in name for part in options.only)
    }
    running = [Contender(name, tx, params, grads) for name, tx in chosen.items()]
    for _ in range(options.rounds):
        for contender in running:
            contender.run()
            contender.run()
    report(running)


def report(running: list[Contender]) -> None:
    """A line for each optimizer; ratios are to the first."""
    adamw = running[0]
    print(f"{'':24}{'median':>10}{'ratio':>8}{'least':>9}{'ratio':>8}{'p90/median':>12}{'cpu':>9}{'ratio':>8}", end="")
    print(f"{'state':>9}{'compile':>9}")
    for one in running:
        median, least, cpu = np.median(one.wall), min(one.wall), np.median(one.processor)
        print(
            f"{one.name:24}{median * 1e3:7.1f} ms{median / np.median(adamw.wall):8.2f}"
            f"{least * 1e3:9.1f}{least / min(adamw.wall):8.2f}{np.quantile(one.wall, 0.9) / median:12.2f}"
            f"{cpu * 1e3:9.1f}{cpu / np.median(adamw.processor):8.2f}{one.megabytes:6.1f} MB{one.compilation:7.1f} s"
        )


if __name__ == "__main__":
    main()
