"""The model that is served, as far as a request has to do with it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

from inference.errors import ServingError
from inference.text.vocabulary import Vocabulary
from training.model.chat import END_OF_TURN
from training.model.tokenizer import Tokenizer


@final
@dataclass(frozen=True, kw_only=True)
class ServedModel:
    """What requests are read for. Raises ServingError where the sizes are not those of a model."""

    name: str
    """By which clients ask for it."""
    tokenizer: Tokenizer
    """That of its export."""
    context: int
    """The most tokens of prompt and answer together."""
    vocab_size: int
    """Of the model, which may be padded above that of the tokenizer."""
    created: int
    """When the weights were made, or else loaded; seconds since 1970."""
    fingerprint: str
    """Of weights and code, `system_fingerprint` of an answer: with the same one and a seed, answers are the same."""
    most_answers: int
    """Answers that one request may ask for, its prompts times `n`."""

    def __post_init__(self) -> None:
        if self.context < 2:
            raise ServingError(f"context is {self.context}; a token of a prompt and one of an answer are 2")
        if self.most_answers < 1:
            raise ServingError(f"most_answers is {self.most_answers}; it is at least 1")
        if not self.name:
            raise ServingError("the model has no name; clients ask for it by one")
        _ = self.vocabulary  # refuses a tokenizer that does not fit, now and not at the first request

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """What its tokens stand for."""
        return Vocabulary(self.tokenizer, self.vocab_size)

    @property
    def end_of_text(self) -> int:
        """The token that ends a text, and begins one."""
        return self.tokenizer.end

    @property
    def end_of_turn(self) -> int:
        """The token that ends a turn of a conversation."""
        return self.tokenizer.reserved[END_OF_TURN]
