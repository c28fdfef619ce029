"""The programs that an engine runs on the device, as pure functions of arrays.

Two do the work: `decode`, one token of every slot, and `prefill`, a piece of the prompt of one. `score` reads a piece a
second time for the log-probabilities of its tokens, so that asking for them changes no bit of the state. The others
write and read one row. Arrays are handed over as flat tuples, since what is taken apart in Python at each call is slow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from inference.engine.sampling import Chosen, Controls, choose, scores
from training.model.decoding import ModelState, init_state, prefill, prefill_all, step
from training.model.language_model import LanguageModel

ONE_ROW: Final = 1
POSITION: Final = 0
"""Of the position among the arrays of a state."""
HEAD: Final = 3
"""Numbers of an order in front of its tokens."""


class Pool(NamedTuple):
    """All that the device keeps of the slots, one row each. Row 0 is nobody's: it stays empty."""

    state: tuple[Array, ...]
    """The arrays of the ModelState: its position, then those of the mixers, without their axis of repeats."""
    token: Int[Array, " rows"]
    """Chosen and not yet read."""
    bias: Float[Array, "rows vocabulary"]
    seen: Int[Array, "rows vocabulary"]
    """Twice how often the answer has a token, and one more where the prompt has it."""


class Order(NamedTuple):
    """What `prefill` is to do, as it stands in one array of int32: these three, and the tokens behind them."""

    slot: Array
    length: Array
    """Tokens that count; the others are padding."""
    last: Array
    """1 where the prompt ends with this piece, so that a token is chosen."""
    tokens: Array


@final
@dataclass(frozen=True, kw_only=True)
class Programs:
    """The programs over one model. `weights` are its arrays, in the order of `jax.tree.leaves`."""

    model: Any
    """The structure of the model."""
    state: Any
    """The structure of its state."""
    rows: int
    """Slots, and one more."""
    vocab_size: int
    context: int

    def fresh_pool(self, weights: tuple[Array, ...]) -> Pool:
        """A pool of empty rows."""
        return self._empty(weights, self.rows)

    def decode(
        self, weights: tuple[Array, ...], pool: Pool, controls: Controls, active: Bool[Array, " rows"]
    ) -> tuple[Pool, Chosen]:
        """Read the chosen token of every active row, and choose the next."""
        logits, state = step(self._model(weights), pool.token, active, self._state(pool.state))
        chosen = choose(logits, controls, pool.bias, pool.seen, state.position, active)
        counts = active & (chosen.token >= 0)
        token = jnp.where(counts, chosen.token, pool.token)
        seen = pool.seen.at[jnp.arange(token.shape[0]), token].add(2 * counts.astype(jnp.int32))
        return Pool(self._arrays(state), token, pool.bias, seen), chosen

    def prefill(
        self, weights: tuple[Array, ...], pool: Pool, controls: Controls, order: Int[Array, " three_and_time"]
    ) -> tuple[Pool, Chosen]:
        """Read a piece of the prompt of one slot, and choose a token behind it where it is the last.

        The token is NO_TOKEN where the logits behind the piece are no numbers, whether it is the last or not.
        """
        slot, length, last, tokens = _opened(order)
        before = _row(pool.state, slot)
        # A conditional that is always taken: were the reading of the row one loop with the writing behind it, the whole
        # pool would be copied first, so that it does not read what it has written.
        logits, state = jax.lax.cond(
            length > 0,
            lambda: self._read(weights, tokens, length, before),
            lambda: (jnp.zeros((ONE_ROW, self.vocab_size)), before),
        )
        row_controls, bias, seen = _row((controls, pool.bias, pool.seen), slot)
        # A row that is not active asks for nothing: of a piece that is not the last, only its soundness is known.
        chosen = choose(logits, row_controls, bias, seen, state[POSITION], (last > 0)[None])
        counts = (last > 0) & (chosen.token[0] >= 0)
        token = jnp.where(counts, chosen.token, _row(pool.token, slot))
        seen = seen.at[0, token[0]].add(2 * counts.astype(jnp.int32))
        state, token, seen = _written((pool.state, pool.token, pool.seen), (state, token, seen), slot)
        return Pool(state, token, pool.bias, seen), chosen

    def score(
        self, weights: tuple[Array, ...], state: tuple[Array, ...], order: Int[Array, " three_and_time"], before: Array
    ) -> tuple[tuple[Array, Array, Array], Array]:
        """The log-probabilities of the tokens of a piece, and the logits behind its last.

        `before` are the logits behind the piece before. Nothing is written: `prefill` reads the piece again.
        """
        slot, length, _, tokens = _opened(order)
        row = self._state(_row(state, slot))
        logits, _ = prefill_all(self._model(weights), tokens[None], length[None], None, row)
        shifted = jnp.concatenate([before[None], logits[0, :-1]])
        return scores(shifted, tokens), logits[0, length - 1]

    def clear(self, pool: Pool, slot: Int[Array, ""], weights: tuple[Array, ...]) -> Pool:
        """Empty a row."""
        emptied: Pool = _written(pool, self._empty(weights, ONE_ROW), slot)
        return emptied

    def mark(self, pool: Pool, slot: Int[Array, ""], bias: Array, seen: Array) -> Pool:
        """Set what the choice of tokens knows of a row."""
        return pool._replace(bias=_put(pool.bias, bias[None], slot), seen=_put(pool.seen, seen[None], slot))

    def restore(self, pool: Pool, slot: Int[Array, ""], arrays: tuple[Array, ...]) -> Pool:
        """Set the state of a row."""
        return pool._replace(state=_written(pool.state, tuple(array[None] for array in arrays), slot))

    def fetch(self, pool: Pool, slot: Int[Array, ""]) -> tuple[Array, ...]:
        """The state of a row, without the axis of rows."""
        return tuple(array[0] for array in _row(pool.state, slot))

    def _read(
        self, weights: tuple[Array, ...], tokens: Array, length: Array, before: tuple[Array, ...]
    ) -> tuple[Array, tuple[Array, ...]]:
        logits, state = prefill(self._model(weights), tokens[None], length[None], None, self._state(before))
        return logits, self._arrays(state)

    def _model(self, weights: tuple[Array, ...]) -> LanguageModel:
        model: LanguageModel = jax.tree.unflatten(self.model, weights)
        return model

    def _state(self, arrays: tuple[Array, ...]) -> ModelState:
        position, *mixers = arrays
        state: ModelState = jax.tree.unflatten(self.state, [position, *(array[:, None] for array in mixers)])
        return state

    def _arrays(self, state: ModelState) -> tuple[Array, ...]:
        """The arrays of a state: its position first, then those of the mixers, without the axis of repeats.

        There is one repeat, since the model is unrolled; with the axis, the compiler moves every state to turn it.
        """
        return (state.position, *(array[:, 0] for array in jax.tree.leaves(state.mixers)))

    def _empty(self, weights: tuple[Array, ...], rows: int) -> Pool:
        state = init_state(self._model(weights), rows, context=self.context)
        return Pool(
            state=self._arrays(state),
            token=jnp.zeros(rows, jnp.int32),
            bias=jnp.zeros((rows, self.vocab_size)),
            seen=jnp.zeros((rows, self.vocab_size), jnp.int32),
        )


def _opened(order: Array) -> Order:
    return Order(order[0], order[1], order[2], order[HEAD:])


def _row(arrays: Any, slot: Array) -> Any:
    """One row of each, the axis of rows kept."""
    return jax.tree.map(lambda array: jax.lax.dynamic_slice_in_dim(array, slot, ONE_ROW), arrays)


def _put(array: Array, row: Array, slot: Array) -> Array:
    return jax.lax.dynamic_update_slice_in_dim(array, row, slot, 0)


def _written(arrays: Any, rows: Any, slot: Array) -> Any:
    return jax.tree.map(lambda array, row: _put(array, row, slot), arrays, rows)
