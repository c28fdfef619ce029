"""What a request comes to: answers to be made, and how they are to be told."""

from __future__ import annotations

import enum
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from inference.protocol.served_model import ServedModel
from inference.scheduling.generation import Generation
from inference.text.answer import Answer, Delta, TextOptions


@final
@dataclass(frozen=True, kw_only=True)
class Arrival:
    """What the server adds to a body: with it, the reading of a body is a pure function."""

    request_id: str
    """For logs: the client's own, or one of the server."""
    created: int
    """Seconds since 1970."""
    unique: str
    """A part of the id of the answer; no two are alike."""
    seed: int
    """Taken where the client gives none; 0 to 2^63 - 1."""
    tenant: str = ""
    """Who asks."""

    @classmethod
    def now(cls, *, request_id: str = "", tenant: str = "") -> Arrival:
        """Of a request that comes in now."""
        unique = secrets.token_hex(16)
        return cls(
            request_id=request_id or unique,
            created=int(time.time()),
            unique=unique,
            seed=secrets.randbits(63),
            tenant=tenant,
        )


@final
class Kind(enum.Enum):
    """The two shapes of an answer: what its id begins with, and what it and a chunk of it are called."""

    id_prefix: str
    chunk: str

    def __new__(cls, whole: str, id_prefix: str, chunk: str) -> Kind:
        kind = object.__new__(cls)
        kind._value_ = whole
        kind.id_prefix = id_prefix
        kind.chunk = chunk
        return kind

    CHAT = "chat.completion", "chatcmpl-", "chat.completion.chunk"
    COMPLETION = "text_completion", "cmpl-", "text_completion"


@final
@dataclass(frozen=True, kw_only=True)
class Order:
    """A request that is understood."""

    kind: Kind
    """Its shape."""
    id: str
    """Of the answer."""
    created: int
    """Seconds since 1970."""
    model: ServedModel
    """Which answers."""
    generations: tuple[Generation, ...]
    """One an answer: those to the first prompt, then those to the second; `index` in a body counts them."""
    choices: int
    """Answers to each prompt."""
    text: TextOptions
    """What of an answer is shown."""
    stream: bool
    """Whether it comes in pieces."""
    include_usage: bool
    """Whether the last chunk tells the tokens of all answers."""
    continuous_usage: bool
    """Whether every chunk tells those of its own."""
    return_token_ids: bool
    """Whether ids come with the text."""

    def answer(self, index: int, deliver: Callable[[Delta], None]) -> Answer:
        """The listener of answer `index`, which hands its pieces to `deliver`, on the thread of the scheduler."""
        return Answer(
            index=index,
            generation=self.generations[index],
            options=self.text,
            vocabulary=self.model.vocabulary,
            deliver=deliver,
        )
