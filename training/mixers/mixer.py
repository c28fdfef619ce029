"""What every token mixer is: the contract between a block of the model, the trainer and the serving engine.

A mixer maps a sequence of vectors to a sequence of vectors, and carries a state of fixed size (or, for softmax
attention, of the size of the context) from one call to the next. It is called in two ways that must agree to 1e-5 in
fp32, whatever the sequence is cut into: `__call__` on many tokens (training and prefill) and `step` on one (decoding).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int

StateT = TypeVar("StateT", bound=eqx.Module)
"""The state of one mixer: an equinox module whose every leaf has the batch as its first axis."""


class AbstractMixer(eqx.Module, Generic[StateT]):
    """One way of mixing tokens. Causal: a token sees itself and the tokens of its own document before it."""

    @abstractmethod
    def init_state(self, batch: int, *, context: int) -> StateT:
        """The state before the first token.

        `context` is the greatest number of tokens that will be seen: softmax attention makes its cache so long, the
        others ignore it. What accumulates is fp32.
        """

    @abstractmethod
    def __call__(
        self,
        x: Float[Array, "batch time model"],
        positions: Int[Array, "batch time"],
        segments: Int[Array, "batch time"],
        state: StateT | None = None,
    ) -> tuple[Float[Array, "batch time model"], StateT | None]:
        """Mix a whole stretch of tokens, going on from `state`; without one, from nothing.

        `positions` count the tokens of each document from 0. `segments` number the documents of a packed row from 1;
        0 is padding, stands only at the end of a row, and changes no state. With a state, the tokens of the first
        segment of a row go on with the document that the state belongs to.
        The state that comes back stands after the last token that is not padding; without a state going in, none
        comes back.
        """

    @abstractmethod
    def step(
        self,
        x: Float[Array, "batch model"],
        position: Int[Array, " batch"],
        active: Bool[Array, " batch"],
        state: StateT,
    ) -> tuple[Float[Array, "batch model"], StateT]:
        """Mix one token more a row. A row that is not `active` keeps its state bit for bit; its output is void."""
