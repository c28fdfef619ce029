"""What the geometry QUAD of distributed-kron 2.0.0 computes from fixed inputs, for tests/training/optim/test_golden.py.

    python -m tests.bench.peers.optimizer_environment /tmp/peers --python python3.12
    /tmp/peers/bin/python tests/bench/peers/quad.py tests/training/optim/golden/quad.npz

Nothing is left to chance: what it draws as random vectors are the `probes` and `signs` of the file. A draw of (32, d)
is that of a norm estimate; any other is the damping noise, which becomes an outer product of signs.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from distributed_kron.pro import scale_by_pro

STEPS, PROBES, BLOCK, MAX_DENSE, DAMPING = 8, 32, 16, 32, 1e-3
SHAPES = {"blocked": (32, 16), "dense": (12, 8), "vector": (10,), "wide": (40, 6)}
"""Two blocks, one block smaller than the block size, a vector, and a matrix with one axis too long to be dense."""


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the .npz that is written")
    options = parser.parse_args()
    draw = np.random.default_rng(0)
    probes = draw.standard_normal((PROBES, BLOCK)).astype(np.float32)
    signs = draw.choice(np.float32([-1, 1]), 40)
    inject(probes, signs)
    arrays = {"probes": probes, "signs": signs} | run(draw)
    options.file.parent.mkdir(exist_ok=True)
    np.savez_compressed(options.file, **arrays)


def inject(probes: np.ndarray, signs: np.ndarray) -> None:
    """Put fixed numbers in the place of every normal draw."""

    def fixed(key: Any, shape: tuple[int, ...], dtype: Any = jnp.float32) -> jax.Array:
        del key
        if len(shape) == 2 and shape[0] == PROBES:
            return jnp.asarray(probes[:, : shape[1]], dtype)
        noise = signs[: shape[0]] if len(shape) == 1 else np.outer(signs[: shape[0]], signs[: shape[1]])
        return jnp.asarray(noise, dtype)

    jax.random.normal = fixed


def run(draw: np.random.Generator) -> dict[str, np.ndarray]:
    """Every gradient and update, all factors of the last step, and the running bounds of every step."""
    optimizer = scale_by_pro(
        lr_style=None,
        b1=0.95,
        max_size_dense=MAX_DENSE,
        preconditioner_lr=0.5,
        preconditioner_update_style="QUAD",
        block_size=BLOCK,
        noise_scale=DAMPING,
    )
    mixing = {name: [spread(draw, size) for size in shape] for name, shape in SHAPES.items()}
    state = optimizer.init({name: jnp.zeros(shape) for name, shape in SHAPES.items()})
    arrays: dict[str, np.ndarray] = {}
    for step in range(STEPS):
        grads = {name: gradient(draw, shape, mixing[name]) for name, shape in SHAPES.items()}
        updates, state = optimizer.update(jax.tree.map(jnp.asarray, grads), state)
        arrays |= {f"gradient/{step}/{name}": value for name, value in grads.items()}
        arrays |= {f"update/{step}/{name}": np.asarray(value) for name, value in updates.items()}
        arrays |= {f"bound/{step}/{name}": value for name, value in fields(state, "Ll", "Lr").items()}
    return arrays | {f"factor/{name}": value for name, value in fields(state, "Ql", "Qr").items()}


def fields(state: Any, *names: str) -> dict[str, np.ndarray]:
    """What the state holds under these names, for its dense blocks and for the leaves that are not all dense."""
    holders = {"dense_blocks": state["dense"], "vector": state["large"][2], "wide": state["large"][3]}
    found = {(where, name): getattr(holder, name) for where, holder in holders.items() for name in names}
    return {f"{where}/{name}": np.asarray(value) for (where, name), value in found.items() if value is not None}


def spread(draw: np.random.Generator, size: int) -> np.ndarray:
    """A matrix of condition 10, which makes the rows of a gradient unlike one another."""
    basis, _ = np.linalg.qr(draw.standard_normal((size, size)))
    return (basis * np.geomspace(1, 0.1, size)) @ basis.T


def gradient(draw: np.random.Generator, shape: tuple[int, ...], mixing: list[np.ndarray]) -> np.ndarray:
    """Noise with the covariance of the mixing."""
    value = draw.standard_normal(shape)
    for axis, each in enumerate(mixing):
        value = np.moveaxis(np.tensordot(each, value, axes=(1, axis)), 0, axis)
    return value.astype(np.float32)


if __name__ == "__main__":
    main()
