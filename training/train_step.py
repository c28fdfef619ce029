"""The pure step: a state and a batch make the next state and what is worth knowing of it.

Parameters are kept in fp32 and cast for the computation; gradients are added up in fp32 over the small batches that the
large one is cut into, as sums, so that the result is that of the large batch whatever documents lie where. The state
that goes in is donated: its memory is that of the state that comes out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from einops import rearrange
from jaxtyping import Array, Float, Int, PyTree

from training.compiling import compiler_options
from training.errors import TrainingError
from training.model.language_model import LanguageModel
from training.model.loss import LossSums, next_token_loss
from training.model.precision import cast_for_compute
from training.optim.guard import GuardState


class TrainState(NamedTuple):
    """All that a step changes, and all that a checkpoint of it must hold."""

    model: LanguageModel
    """Parameters in fp32."""
    opt_state: GuardState
    """Of the guarded optimizer."""
    step: Int[Array, ""]
    """Updates made, the skipped ones too."""


class StepMetrics(NamedTuple):
    """What a step tells."""

    loss: Float[Array, ""]
    """Cross-entropy a token, in nats, before the update."""
    z_loss: Float[Array, ""]
    """Mean square of the log-sum-exp of the logits, without its weight."""
    gradient_norm: Float[Array, ""]
    """Global norm before any cap."""
    tokens: Int[Array, ""]
    """Tokens that were predicted."""
    skipped: Int[Array, ""]
    """Steps skipped since the run began."""
    skipped_in_a_row: Int[Array, ""]


Tokens = Int[Array, "batch time_and_one"]
TrainStep = Callable[[TrainState, Tokens, Tokens], tuple[TrainState, StepMetrics]]
"""(state, tokens, segments) -> (state, metrics)."""


def make_train_step(
    optimizer: optax.GradientTransformationExtraArgs,
    *,
    z_loss: float,
    compute: jnp.dtype[Any],
    accumulate: int = 1,
    shardings: PyTree | None = None,
) -> TrainStep:
    """The step, compiled at its first call.

    `compute` is the dtype of the forward and backward pass. `accumulate` cuts the rows of a batch into so many small
    batches, one after the other. `shardings` is those of the state that comes out, so that it lies as it went in.
    """

    def step(state: TrainState, tokens: Tokens, segments: Tokens) -> tuple[TrainState, StepMetrics]:
        sums, grads = _gradient_sums(state.model, tokens, segments, z_loss, compute, accumulate)
        count = jnp.maximum(sums.count, 1)
        grads = jax.tree.map(lambda grad: grad / count, grads)
        loss = sums.mean_loss()
        updates, opt_state = optimizer.update(grads, state.opt_state, state.model, loss=loss)
        metrics = StepMetrics(
            loss=loss,
            z_loss=sums.z_sum / count,
            gradient_norm=optax.tree.norm(grads),
            tokens=sums.count,
            skipped=opt_state.skipped,
            skipped_in_a_row=opt_state.skipped_in_a_row,
        )
        return TrainState(optax.apply_updates(state.model, updates), opt_state, state.step + 1), metrics

    out = None if shardings is None else (shardings, None)
    return jax.jit(step, donate_argnums=0, out_shardings=out, compiler_options=compiler_options())


def make_validation(*, compute: jnp.dtype[Any]) -> Callable[[LanguageModel, Tokens, Tokens], LossSums]:
    """The loss of a batch that nobody learns from, compiled at its first call."""
    return jax.jit(lambda model, tokens, segments: next_token_loss(cast_for_compute(model, compute), tokens, segments))


def _gradient_sums(
    model: LanguageModel, tokens: Tokens, segments: Tokens, z_loss: float, compute: jnp.dtype[Any], accumulate: int
) -> tuple[LossSums, LanguageModel]:
    """Sums of loss and gradient over all tokens of the batch."""
    if tokens.shape[0] % accumulate:
        raise TrainingError(
            f"batch.accumulate is {accumulate} and batch.size {tokens.shape[0]}: the rows cannot be shared out evenly"
        )

    def objective(at: LanguageModel, rows: tuple[Tokens, Tokens]) -> tuple[Float[Array, ""], LossSums]:
        sums = next_token_loss(cast_for_compute(at, compute), *rows)
        return sums.objective(z_loss), sums

    slope = jax.grad(objective, has_aux=True)
    if accumulate == 1:
        grads, sums = slope(model, (tokens, segments))
        return sums, grads

    def add(total: tuple[LossSums, LanguageModel], rows: tuple[Tokens, Tokens]) -> tuple[Any, None]:
        grads, sums = slope(model, rows)
        return (total[0] + sums, jax.tree.map(jnp.add, total[1], grads)), None

    # Every small batch takes rows from everywhere, so that each has its share on every device.
    parts = jax.tree.map(
        lambda x: rearrange(x, "(row part) time -> part row time", part=accumulate), (tokens, segments)
    )
    nothing = LossSums(jnp.zeros(()), jnp.zeros(()), jnp.zeros((), jnp.int32))
    (sums, grads), _ = jax.lax.scan(add, (nothing, jax.tree.map(jnp.zeros_like, model)), parts)
    return sums, grads
