"""The loss of a batch: cross-entropy of the next token, a block of positions at a time.

The logits of a whole batch are never there at once: a block of tokens is projected on the vocabulary, reduced to its
log-sum-exp and the logit of its target, and forgotten; the backward pass makes the same logits again. Memory is
O(block × vocabulary) in both directions, beside the gradient of the output embedding, which is summed up in fp32
whatever the model computes in. (Autodiff of a checkpointed scan would sum it up in the dtype of the parameter.)

Cross-entropy is fp32 from the logits on. The z-loss is the square of the log-sum-exp, which keeps the logits from
drifting away (PaLM, Chowdhery et al. 2022, section 5, where its weight is 1e-4).
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from einops import rearrange
from jaxtyping import Array, Bool, Float, Int

from training.model.documents import next_is_of_same_document, positions_in_documents
from training.sharding import Axis, batch_shards, constrain

DEFAULT_BLOCK = 2048
"""Tokens whose logits stand in memory at once."""


class LossSums(eqx.Module):
    """Sums over the tokens that count, so that those of small batches add up to those of the large one."""

    loss_sum: Float[Array, ""]
    """Negative log-likelihoods, in nats."""
    z_sum: Float[Array, ""]
    """Squares of the log-sum-exp."""
    count: Int[Array, ""]
    """Tokens that were predicted."""

    def __add__(self, other: LossSums) -> LossSums:
        """The sums over both."""
        return LossSums(self.loss_sum + other.loss_sum, self.z_sum + other.z_sum, self.count + other.count)

    def objective(self, z_loss: float) -> Float[Array, ""]:
        """What is minimised, still as a sum: divide it, or its gradient, by the count of the whole batch."""
        return self.loss_sum + z_loss * self.z_sum

    def mean_loss(self) -> Float[Array, ""]:
        """Cross-entropy a token in nats; 0 where no token counts."""
        return self.loss_sum / jnp.maximum(self.count, 1)


@runtime_checkable
class HasHiddenStates(Protocol):
    """What the loss needs of a language model."""

    def hidden(
        self,
        tokens: Int[Array, "batch time"],
        positions: Int[Array, "batch time"],
        segments: Int[Array, "batch time"],
    ) -> Float[Array, "batch time model"]:
        """The last hidden states."""

    @property
    def output_weight(self) -> Float[Array, "vocabulary model"]:
        """What they are projected on the vocabulary with."""


def next_token_loss(
    model: HasHiddenStates,
    tokens: Int[Array, "batch time_and_one"],
    segments: Int[Array, "batch time_and_one"],
    *,
    block: int = DEFAULT_BLOCK,
) -> LossSums:
    """The loss of predicting each token from those before it in its document.

    A token counts where it and the one before it are of one document: the first token of a document is not predicted
    from the end of another, and padding (segment 0) not at all. Positions count from 0 in each document. `block` is in
    tokens of the whole batch, rounded to whole positions of it (one at least); it changes memory, and the sums by
    rounding only. A token outside the vocabulary makes the loss NaN.
    """
    inputs = segments[:, :-1]
    hidden = model.hidden(tokens[:, :-1], positions_in_documents(inputs), inputs)
    counted = next_is_of_same_document(segments)
    loss_sum, z_sum = blockwise_cross_entropy(hidden, model.output_weight, tokens[:, 1:], counted, block=block)
    return LossSums(loss_sum, z_sum, jnp.sum(counted, dtype=jnp.int32))


def blockwise_cross_entropy(
    hidden: Float[Array, "batch time model"],
    weight: Float[Array, "vocabulary model"],
    targets: Int[Array, "batch time"],
    counted: Bool[Array, "batch time"],
    *,
    block: int = DEFAULT_BLOCK,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Sums of the cross-entropy and of the squared log-sum-exp of `hidden @ weight.T`, where `counted`."""
    rows, time = targets.shape
    steps = min(time, max(1, block // max(1, rows)))
    shards = batch_shards(rows)

    def blocks(x: Array) -> Array:
        padded = jnp.pad(x, ((0, 0), (0, -time % steps)) + ((0, 0),) * (x.ndim - 2))
        return rearrange(padded, "(shard row) (block time) ... -> block shard row time ...", shard=shards, time=steps)

    return _sums(blocks(hidden), weight, blocks(targets), blocks(counted))


@jax.custom_vjp
def _sums(
    hidden: Float[Array, "block shard row time model"],
    weight: Float[Array, "vocabulary model"],
    targets: Int[Array, "block shard row time"],
    counted: Bool[Array, "block shard row time"],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    return _forward(hidden, weight, targets, counted)[0]


def _forward(hidden: Array, weight: Array, targets: Array, counted: Array) -> tuple[tuple[Array, Array], Any]:
    def add(sums: tuple[Array, Array], block: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], Array]:
        states, wanted, counts = block
        logits = _logits(states, weight)
        log_sum = jax.nn.logsumexp(logits, axis=-1)
        loss = jnp.where(counts, log_sum - _target_logit(logits, wanted), 0.0)
        z = jnp.where(counts, jnp.square(log_sum), 0.0)
        return (sums[0] + jnp.sum(loss), sums[1] + jnp.sum(z)), log_sum

    zero = jnp.zeros((), jnp.float32)
    sums, log_sums = jax.lax.scan(add, (zero, zero), (hidden, targets, counted))
    return sums, (hidden, weight, targets, counted, log_sums)


def _backward(saved: Any, cotangents: tuple[Array, Array]) -> tuple[Array, Array, None, None]:
    hidden, weight, targets, counted, log_sums = saved
    of_loss, of_z = cotangents

    def add(total: Array, block: tuple[Array, Array, Array, Array]) -> tuple[Array, Array]:
        states, wanted, counts, log_sum = block
        probabilities = jnp.exp(_logits(states, weight) - log_sum[..., None])
        slope = jnp.where(counts, of_loss + 2.0 * of_z * log_sum, 0.0)
        of_target = jnp.where(counts, of_loss, 0.0)
        of_logits = probabilities * slope[..., None] - jnp.where(
            _is_target(wanted, weight.shape[0]), of_target[..., None], 0.0
        )
        of_logits = of_logits.astype(states.dtype)
        of_states = jnp.einsum("xrtv,vd->xrtd", of_logits, weight)
        # One sum a shard of the batch: added up over the devices once, behind the loop, not in every round of it.
        parts = jnp.einsum("xrtv,xrtd->xvd", of_logits, states, preferred_element_type=jnp.float32)
        return _constrain_parts(total + parts), of_states

    zero = jnp.zeros((hidden.shape[1], *weight.shape), jnp.float32)
    parts, of_hidden = jax.lax.scan(add, _constrain_parts(zero), (hidden, targets, counted, log_sums))
    return of_hidden, jnp.sum(parts, axis=0).astype(weight.dtype), None, None


_sums.defvjp(_forward, _backward)


def _logits(states: Array, weight: Array) -> Array:
    return jnp.einsum("xrtd,vd->xrtv", states, weight, preferred_element_type=jnp.float32)


def _is_target(targets: Array, vocabulary: int) -> Array:
    return targets[..., None] == jnp.arange(vocabulary, dtype=targets.dtype)


def _target_logit(logits: Array, targets: Array) -> Array:
    """By comparison rather than by a gather, which would collect a vocabulary that is shared out over devices."""
    vocabulary = logits.shape[-1]
    chosen = jnp.sum(jnp.where(_is_target(targets, vocabulary), logits, 0.0), axis=-1)
    return jnp.where((targets >= 0) & (targets < vocabulary), chosen, jnp.nan)


def _constrain_parts(parts: Array) -> Array:
    return constrain(parts, Axis.BATCH, Axis.VOCABULARY, Axis.ACTIVATION)
