"""The guard around every optimizer: a step whose gradient or loss is not finite is no step.

One NaN that reaches a momentum or a preconditioner is there for ever. The guard therefore looks before the optimizer
does: where the loss or any element of the gradient is not finite, the optimizer is not run. The update is -0.0
everywhere, as x + -0.0 is x, bit for bit (0.0 would make 0.0 of -0.0), and the inner state is the one before. Only the
counters know of it.

A branch and not a selection: selecting between two states keeps both alive, which for Kron is a copy of all factors a
step. (A CPU adds denormal numbers as zeros: a parameter below 1.2e-38 is rounded to zero by any step, this one too.)
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PyTree

from training.errors import TrainingError


class GuardState(NamedTuple):
    """The state of the optimizer inside, and what was kept from it."""

    inner: optax.OptState
    skipped: Int[Array, ""]
    """Steps skipped so far."""
    skipped_in_a_row: Int[Array, ""]
    """Steps skipped since the last that was not; a run stops when they are too many."""


def guarded(inner: optax.GradientTransformation) -> optax.GradientTransformationExtraArgs:
    """`inner`, kept from what is not finite.

    Its `update(grads, state, params, *, loss=None, **extra)` takes the loss of the step as well; the other arguments go
    to `inner`, whose state must keep its shapes and dtypes. Raises TrainingError for the state of another optimizer.
    """
    protected = optax.with_extra_args_support(inner)

    def init(params: optax.Params) -> GuardState:
        return GuardState(protected.init(params), jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))

    def update(
        grads: optax.Updates,
        state: optax.OptState,
        params: optax.Params | None = None,
        *,
        loss: Float[Array, ""] | None = None,
        **extra: object,
    ) -> tuple[optax.Updates, GuardState]:
        if not isinstance(state, GuardState):
            raise TrainingError(f"the state is {type(state).__name__}, not that of a guarded optimizer")

        def step(before: optax.OptState) -> tuple[optax.Updates, optax.OptState]:
            updates, after = protected.update(grads, before, params, **extra)
            return updates, after

        shapes, _ = jax.eval_shape(step, state.inner)

        def no_step(before: optax.OptState) -> tuple[optax.Updates, optax.OptState]:
            return jax.tree.map(lambda like: -jnp.zeros(like.shape, like.dtype), shapes), before

        good = all_finite((grads, loss))
        updates, after = jax.lax.cond(good, step, no_step, state.inner)
        bad = (~good).astype(jnp.int32)
        return updates, GuardState(
            inner=after, skipped=state.skipped + bad, skipped_in_a_row=(state.skipped_in_a_row + 1) * bad
        )

    return optax.GradientTransformationExtraArgs(init, update)


def all_finite(tree: PyTree) -> Bool[Array, ""]:
    """Whether every element of every inexact leaf is finite; true of an empty tree.

    Zero times what is not finite is NaN, and a sum keeps that, in one pass and at twice the speed of a look at each
    element.
    """
    leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(tree)]
    sums = [jnp.sum(leaf * 0) for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.inexact)]
    return jnp.all(jnp.array([jnp.isfinite(each) for each in sums], dtype=bool))
