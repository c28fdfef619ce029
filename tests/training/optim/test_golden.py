"""Our QUAD beside that of distributed-kron 2.0.0, from arrays that tests/bench/peers/quad.py has made with it once.

Compared are eight steps of the same mathematics: momentum with its bias correction, the statistics of the whitened
momentum and its damping noise, the estimate of norms from the same vectors, running bounds, factors (dense, diagonal,
of a vector, of two blocks of one leaf), and the update with its cap. Where the two differ on purpose they are brought
together: its noise is the outer product of signs that ours is, of a size that does not depend on the gradient; its
update comes from the factors after their step, so ours is taken from a second call with those; and factors are compared
up to the scale that one side of a product lends the other, as ours are balanced at the first step and its never here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.training.model.patterns import quick_jit
from training.optim.blocks import Layout
from training.optim.kron import scale_by_kron
from training.optim.kron_config import KronConfig
from training.optim.kron_state import KronState
from training.optim.randomness import Randomness

GOLDEN: Final = Path(__file__).parent / "golden" / "quad.npz"
STEPS: Final = 8
LEAVES: Final = ("blocked", "dense", "vector", "wide")
STACKS: Final = {
    "dense16_dense16": ("dense_blocks", slice(0, 2)),
    "dense12_dense8": ("dense_blocks", slice(2, 3)),
    "diagonal10": ("vector", slice(0, 1)),
    "diagonal40_dense6": ("wide", slice(0, 1)),
}
"""Where the peer keeps the factors of our stacks."""
SETTINGS: Final[Mapping[str, Any]] = {
    "precondition_rate": 0.5,
    "final_precondition_rate": 0.5,
    "lipschitz_decay": 0.95,
    "damping": 1e-3,
    "relative_damping": 0.0,
    "dense_steps": STEPS,
    "balance_every": 100,
    "block_size": 16,
    "max_dense": 32,
}
close = partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def golden() -> Mapping[str, np.ndarray]:
    with np.load(GOLDEN) as arrays:
        return dict(arrays)


@pytest.fixture
def fixed_randomness(golden: Mapping[str, np.ndarray], monkeypatch: pytest.MonkeyPatch) -> None:
    """The vectors of the file in the place of what a step draws."""

    def draw(layout: Layout, *_: Any) -> dict[str, Randomness]:
        return {
            group.name: Randomness(
                probes=tuple(jnp.asarray(golden["probes"][:, :size]) for size in group.shape),
                signs=tuple(jnp.asarray(golden["signs"][:size]) for size in group.shape),
                key=jax.random.key(0),
            )
            for group in layout.groups
        }

    monkeypatch.setattr("training.optim.kron.draw", draw)


def from_golden(golden: Mapping[str, np.ndarray], kind: str, step: int) -> dict[str, jax.Array]:
    return {name: jnp.asarray(golden[f"{kind}/{step}/{name}"]) for name in LEAVES}


@pytest.mark.usefixtures("fixed_randomness")
def test_eight_steps_agree_with_the_peer(golden: Mapping[str, np.ndarray]) -> None:
    ours, applied = scale_by_kron(KronConfig(**SETTINGS)), scale_by_kron(KronConfig(b1=0.0, **SETTINGS))

    def step(grads: Any, state: KronState) -> tuple[Any, KronState]:
        _, after = ours.update(grads, state)
        correction = 1 - 0.95 ** after.count.astype(jnp.float32)
        averaged = jax.tree.map(lambda value: value / correction, after.momentum)
        return applied.update(averaged, after._replace(momentum=None))[0], after

    state, compiled = ours.init(from_golden(golden, "gradient", 0)), quick_jit(step)
    for number in range(STEPS):
        updates, state = compiled(from_golden(golden, "gradient", number), state)
        for name, expected in from_golden(golden, "update", number).items():
            close(updates[name], expected, err_msg=f"{name} at step {number}")
        for name, (where, rows) in STACKS.items():
            for axis, side in enumerate(sides(state, name)):
                close(state.stacks[name].lipschitz[:, axis], golden[f"bound/{number}/{where}/{side}"][rows])
    for name, (where, rows) in STACKS.items():
        theirs = [golden[f"factor/{where}/Q{side[1]}"][rows] for side in sides(state, name)]
        for q, peer in zip(state.stacks[name].q, theirs, strict=True):
            cut = peer[(slice(None), *(slice(0, size) for size in q.shape[1:]))]
            close(unit(q), unit(cut))


def sides(state: KronState, name: str) -> tuple[str, ...]:
    return ("Ll", "Lr")[: len(state.stacks[name].q)]


def unit(q: Any) -> np.ndarray:
    """Factors of which each has its largest entry at 1."""
    values = np.asarray(q)
    scaled: np.ndarray = values / np.max(np.abs(values), axis=tuple(range(1, values.ndim)), keepdims=True)
    return scaled
