"""Choosing the next token of every row, on the device.

The order is that of vLLM: bias, repetition penalty, frequency and presence penalty; then temperature, min-p, top-k,
top-p, and a draw. Log-probabilities are those before the temperature. Rows never mix, and what one row asks for changes
no bit of another: a step that no row needs is skipped, and one that some row needs leaves the others as they were.

Nothing is sorted. The limits of top-k and top-p are found by halving the range of the 31 bits of a positive float, and
a token is drawn in two steps, a block of the vocabulary and then a token of it, each by its share of what is left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt

from inference.engine.sampling_parameters import MOST_LOGPROBS

BLOCK: Final = 128
"""Tokens of the vocabulary that are first drawn as one."""
BITS: Final = 31
"""Of a float that is not negative, beside its sign: read as an integer they are in the order of the floats."""
NO_TOKEN: Final = -1
"""In place of a token where the logits of a row are no numbers."""


class Controls(NamedTuple):
    """What the rows ask for: `SamplingParameters`, one row each."""

    temperature: Float[Array, " rows"]
    """0 where nothing is drawn."""
    top_k: Int[Array, " rows"]
    top_p: Float[Array, " rows"]
    min_p: Float[Array, " rows"]
    presence: Float[Array, " rows"]
    frequency: Float[Array, " rows"]
    repetition: Float[Array, " rows"]
    biased: Bool[Array, " rows"]
    """Whether there is any bias."""
    seed: UInt[Array, "rows 2"]
    """Its upper and its lower half."""
    draw: Int[Array, " rows"]
    scored: Bool[Array, " rows"]
    """Whether log-probabilities are asked for."""


class Chosen(NamedTuple):
    """A token a row; void in rows that are not active."""

    token: Int[Array, " rows"]
    """NO_TOKEN where the logits are no numbers."""
    logprob: Float[Array, " rows"]
    """Of the token; void where no row asked, as are the next two."""
    top: Int[Array, "rows top"]
    """The likeliest tokens, falling."""
    top_logprobs: Float[Array, "rows top"]


def choose(
    logits: Float[Array, "rows vocabulary"],
    controls: Controls,
    bias: Float[Array, "rows vocabulary"],
    seen: Int[Array, "rows vocabulary"],
    place: Int[Array, " rows"],
    active: Bool[Array, " rows"],
) -> Chosen:
    """The token at `place` of every active row.

    `seen` is twice how often the answer has a token, and one more where the prompt has it. A logit of -inf is a token
    that cannot be; NaN, +inf or nothing but -inf makes a row unsound: it gets NO_TOKEN, and the other rows theirs.
    """
    adjusted = _adjusted(logits, controls, bias, seen, active)
    most = jnp.max(adjusted, axis=-1)
    sound = jnp.isfinite(most) & ~jnp.any(jnp.isnan(adjusted), axis=-1)
    likeliest = jnp.argmax(adjusted, axis=-1).astype(jnp.int32)
    draws = controls.temperature > 0
    token: Array = jax.lax.cond(
        jnp.any(active & draws),
        lambda: jnp.where(draws, _drawn(adjusted - most[:, None], controls, place, active), likeliest),
        lambda: likeliest,
    )
    token = jnp.where(sound, token, NO_TOKEN)
    return Chosen(token, *_logprobs(adjusted, token, jnp.any(active & controls.scored)))


def scores(
    logits: Float[Array, "time vocabulary"], tokens: Int[Array, " time"]
) -> tuple[Float[Array, " time"], Int[Array, "time top"], Float[Array, "time top"]]:
    """The log-probability of each token under the logits in its row, the likeliest tokens there, and theirs."""
    normed = jax.nn.log_softmax(logits, axis=-1)
    top_logprobs, top = jax.lax.top_k(normed, min(MOST_LOGPROBS, logits.shape[-1]))
    return jnp.take_along_axis(normed, jnp.maximum(tokens, 0)[:, None], axis=-1)[:, 0], top, top_logprobs


def _logprobs(logits: Array, token: Array, asked: Array) -> tuple[Array, Array, Array]:
    rows, top = logits.shape[0], min(MOST_LOGPROBS, logits.shape[1])
    nothing = (jnp.zeros(rows), jnp.zeros((rows, top), jnp.int32), jnp.zeros((rows, top)))
    found: tuple[Array, Array, Array] = jax.lax.cond(asked, lambda: scores(logits, token), lambda: nothing)
    return found


def _adjusted(logits: Array, controls: Controls, bias: Array, seen: Array, active: Array) -> Array:
    """Logits under bias and penalties."""

    def adjust() -> Array:
        biased = logits + bias
        repetition, frequency, presence = (
            each[:, None] for each in (controls.repetition, controls.frequency, controls.presence)
        )
        repeated = jnp.where(biased > 0, biased / repetition, biased * repetition)
        times = seen >> 1
        return jnp.where(seen > 0, repeated, biased) - frequency * times - presence * (times > 0)

    penalised = (controls.repetition != 1) | (controls.frequency != 0) | (controls.presence != 0)
    return _where_any(active & (controls.biased | penalised), adjust, logits)


def _drawn(below: Array, controls: Controls, place: Array, active: Array) -> Array:
    """A token a row by its share, from logits less the greatest of their row."""
    exponents = below / jnp.where(controls.temperature > 0, controls.temperature, 1)[:, None]
    weights = jnp.exp(exponents)
    kept = _min_p(weights, controls, active)
    kept = _top_k(kept, exponents, controls, active)
    kept = _top_p(kept, exponents, controls, active)
    return _by_share(kept, _uniform(controls, place))


def _min_p(weights: Array, controls: Controls, active: Array) -> Array:
    return _where_any(
        active & (controls.min_p > 0),
        lambda: jnp.where(weights >= controls.min_p[:, None], weights, 0),
        weights,
    )


def _top_k(weights: Array, exponents: Array, controls: Controls, active: Array) -> Array:
    """The `top_k` likeliest, and what is as likely as the last of them."""
    cuts = controls.top_k > 0

    def cut() -> Array:
        order = _order(exponents)
        limit = _greatest(lambda at: jnp.sum((order < at[:, None]).astype(jnp.int32), axis=-1) < controls.top_k, order)
        return jnp.where(cuts[:, None] & (order > limit[:, None]), 0, weights)

    return _where_any(active & cuts, cut, weights)


def _top_p(weights: Array, exponents: Array, controls: Controls, active: Array) -> Array:
    """The likeliest whose shares of what is left reach `top_p`, and what is as likely as the last of them."""
    cuts = controls.top_p < 1

    def cut() -> Array:
        order = _order(exponents)
        enough = controls.top_p * jnp.sum(weights, axis=-1)
        limit = _greatest(lambda at: jnp.sum(jnp.where(order < at[:, None], weights, 0), axis=-1) < enough, order)
        return jnp.where(cuts[:, None] & (order > limit[:, None]), 0, weights)

    return _where_any(active & cuts, cut, weights)


def _where_any(rows: Array, then: Callable[[], Array], otherwise: Array) -> Array:
    result: Array = jax.lax.cond(jnp.any(rows), then, lambda: otherwise)
    return result


def _order(exponents: Array) -> Array:
    """Integers that rise as exponents, which are 0 or less, fall."""
    return jax.lax.bitcast_convert_type(jnp.abs(exponents), jnp.int32)


def _greatest(holds: Callable[[Array], Array], order: Array) -> Array:
    """The greatest integer of each row at which `holds`, which holds at 0 and at none behind one where it does not."""

    def halve(step: Array, found: Array) -> Array:
        tried = found + (1 << (BITS - 1 - step))
        return jnp.where(holds(tried), tried, found)

    found: Array = jax.lax.fori_loop(0, BITS, halve, jnp.zeros(order.shape[0], jnp.int32))
    return found


def _uniform(controls: Controls, place: Array) -> Float[Array, "rows 2"]:
    """Two numbers from 0 to 1 a row, by seed, draw and place alone."""

    def of_row(seed: Array, draw: Array, place: Array) -> Array:
        key = jax.random.wrap_key_data(seed, impl="threefry2x32")
        return jax.random.uniform(jax.random.fold_in(jax.random.fold_in(key, draw), place), (2,))

    return jax.vmap(of_row)(controls.seed, controls.draw, place)


def _by_share(weights: Array, uniform: Array) -> Array:
    """A place of each row, by its share of the weight of the row; never one of weight 0."""
    rows, vocabulary = weights.shape
    blocks = jnp.pad(weights, ((0, 0), (0, -vocabulary % BLOCK))).reshape(rows, -1, BLOCK)
    block = _first_beyond(jnp.sum(blocks, axis=-1), uniform[:, 0])
    inside = jnp.take_along_axis(blocks, block[:, None, None], axis=1)[:, 0]
    return block * BLOCK + _first_beyond(inside, uniform[:, 1])


def _first_beyond(weights: Array, share: Array) -> Array:
    """The first place where the sum so far is over that share of the whole. Sums are rounded: 0 is never taken."""
    sums = jnp.cumsum(weights, axis=-1)
    beyond = (sums > share[:, None] * sums[:, -1:]) & (weights > 0)
    return jnp.argmax(beyond, axis=-1).astype(jnp.int32)
