"""Four problems, each ill-conditioned in its own way, and the steps that each optimizer takes to solve them."""

from __future__ import annotations

from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from tests.training.optim.optimizers import TOY_STEPS, Row, every_variant
from training.optim.build import build_optimizer
from training.optim.learning import LearningConfig

DRAW: Final = np.random.default_rng(0)


def hessian(size: int, condition: float) -> np.ndarray:
    """Eigenvalues from 1 down to 1/condition, in a random basis."""
    basis, _ = np.linalg.qr(DRAW.standard_normal((size, size)))
    return ((basis * np.geomspace(1, 1 / condition, size)) @ basis.T).astype(np.float32)


LEFT, RIGHT, FULL = hessian(20, 1e3), hessian(20, 1e3), hessian(400, 1e6)

STARTS: Final = {
    "kronecker": DRAW.standard_normal((20, 20)).astype(np.float32),
    "rotated": DRAW.standard_normal((20, 20)).astype(np.float32),
    "chained": np.tile(np.float32([-1.2, 1.0]), 50).reshape(10, 10),
    "rosenbrock": np.float32([-1.2, 1.0]),
}
"""One leaf each: an optimizer treats every leaf by itself, so one run solves all four."""


def rosenbrock(x: Array) -> Array:
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def losses(x: dict[str, Array]) -> dict[str, Array]:
    """All of them 0 at their minimum; the Hessian of `kronecker` has condition 1e6, and so has that of `rotated`."""
    rotated = x["rotated"].reshape(-1)
    return {
        "kronecker": jnp.sum(x["kronecker"] * (LEFT @ x["kronecker"] @ RIGHT)) / 2,
        "rotated": rotated @ FULL @ rotated / 2,
        "chained": rosenbrock(x["chained"].reshape(-1)),
        "rosenbrock": rosenbrock(x["rosenbrock"]),
    }


def traces(row: Row) -> dict[str, np.ndarray]:
    """The losses before each step, as shares of the first."""
    learning = LearningConfig(rate=1.0, warmup_steps=0, final_fraction=0.0, clip_norm=None)
    config = row.toy_config or row.config
    optimizer = build_optimizer(config, learning, steps=TOY_STEPS, stacked=lambda path: False)
    start: Any = jax.tree.map(jnp.asarray, STARTS)
    rates = {name: toy.rate for name, toy in row.toys.items()}

    def step(carry: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], dict[str, Array]]:
        at, state = carry
        seen = losses(at)
        grads = jax.grad(lambda x: sum(losses(x).values(), jnp.zeros(())))(at)
        updates, state = optimizer.update(grads, state, at, loss=sum(seen.values()))
        return (optax.apply_updates(at, jax.tree.map(jnp.multiply, updates, rates)), state), seen

    last = max(toy.steps for toy in row.toys.values())
    run = jax.jit(lambda: jax.lax.scan(step, (start, optimizer.init(start)), None, length=last)[1])
    return {name: np.asarray(trace) / float(trace[0]) for name, trace in run().items()}


@every_variant
def test_the_loss_is_down_in_as_many_steps_as_were_measured(row: Row) -> None:
    found = traces(row)
    needed = {name: int(np.argmax(found[name] <= toy.tolerance)) for name, toy in row.toys.items()}
    # argmax is 0 where the tolerance is never met.
    assert all(0 < needed[name] <= toy.steps for name, toy in row.toys.items()), needed
