"""What becomes of the tokens of one answer: the pieces that both a stream and a whole body are made of.

A piece of text goes out as soon as it is certain: no character is cut, and nothing that may begin a stop string is
shown. What a stop string cuts off is cut off the tokens too: one that lies behind the cut is not shown at all, one that
the cut goes through is shown with the bytes before it, and keeps its log-probability. So the bytes of the tokens that
are shown, joined, are always the text. Where tokens are shown, a piece is whole tokens.
"""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from inference.engine.abstract_engine import Choice
from inference.scheduling.generation import AbstractListener, Ended, Generation, Reason
from inference.text.stops import StopMatcher, StopStrings
from inference.text.vocabulary import Vocabulary


@final
@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """What of an answer is shown."""

    stops: StopStrings
    """Where the text ends. Looked for in the answer only, behind its first `min_tokens`."""
    include_stop: bool = False
    """Whether what ended the answer, a string or a token, is part of it."""
    skip_special: bool = True
    """Whether special tokens are left out of the text; else they are in it by name."""
    tokens: bool = False
    """Whether tokens are shown with their log-probabilities."""
    echo: bool = False
    """Whether the prompt is shown before the answer."""


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class TokenText:
    """A token as it is shown."""

    token: int
    """Its id."""
    piece: bytes
    """Its bytes; none for a special one that is skipped."""
    offset: int
    """Characters of the text before it; for one that begins inside a character, before that."""
    logprob: float | None
    """None for the first of a prompt, before which nothing stands."""
    top: tuple[tuple[int, float], ...]
    """The likeliest tokens in its place, with their log-probabilities."""


@final
@dataclass(frozen=True, kw_only=True)
class End:
    """How an answer ended."""

    reason: Reason
    """Why."""
    prompt_tokens: int
    """That were read."""
    cached_tokens: int
    """Of them, that came from a kept state."""
    generated_tokens: int
    """Chosen, the one that stopped it included."""


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Delta:
    """The next piece of an answer."""

    index: int
    """Of the answer in its request."""
    text: str
    """What comes next; may be empty."""
    tokens: tuple[TokenText, ...] = ()
    """Those of the text, where they are shown."""
    ids: tuple[int, ...] = ()
    """Of all tokens that were generated since the last piece."""
    generated: int = 0
    """Tokens so far, shown or not."""
    end: End | None = None
    """Only in the last."""


@final
class Answer(AbstractListener):
    """Hears of one answer on the thread of the scheduler, and hands its pieces to `deliver` there."""

    def __init__(
        self,
        *,
        index: int,
        generation: Generation,
        options: TextOptions,
        vocabulary: Vocabulary,
        deliver: Callable[[Delta], None],
    ) -> None:
        self._index: Final = index
        self._generation: Final = generation
        self._options: Final = options
        self._pieces: Final = vocabulary.pieces(skip_special=options.skip_special)
        self._deliver: Final = deliver
        self._matcher: Final = StopMatcher(options.stops) if options.stops.strings else None
        self._bytes = b""  # not handed out yet
        self._tokens: deque[tuple[Choice | None, int, bytes]] = deque()  # with id and bytes: those of self._bytes
        self._ids: list[int] = []
        self._scores: list[Choice] = []
        self._generated = 0
        self._characters = 0
        self._echoed = not options.echo

    def scored(self, scores: tuple[Choice, ...]) -> None:
        """The next log-probabilities of the prompt."""
        self._scores.extend(scores)

    def token(self, choice: Choice) -> bool:
        """The next token; True where the text ends."""
        self._echo()
        self._generated += 1
        self._ids.append(choice.token)
        stopped = choice.token in self._generation.stop_tokens and self._generated > self._generation.min_tokens
        if stopped and not self._options.include_stop:
            return True  # the end brings out what is held
        piece = self._pieces[choice.token]
        self._append(choice, choice.token, piece)
        matcher = self._matcher
        if matcher is None or self._generated <= self._generation.min_tokens:
            self._hand_out(len(self._bytes))
            return stopped
        match = matcher.push(piece)
        if match is None:
            self._hand_out(len(self._bytes) - matcher.held)
            return stopped
        self._cut(len(self._bytes) - (match.end if self._options.include_stop else match.start))
        return True

    def ended(self, ended: Ended) -> None:
        """The last: what was held is text after all."""
        if ended.reason in (Reason.STOP, Reason.LENGTH):
            self._echo()
        end = End(
            reason=ended.reason,
            prompt_tokens=len(self._generation.prompt),
            cached_tokens=ended.cached_tokens,
            generated_tokens=ended.generated_tokens,
        )
        self._hand_out(len(self._bytes), end)

    def _echo(self) -> None:
        if self._echoed:
            return
        self._echoed = True
        prompt = self._generation.prompt
        pieces = [self._pieces[token] for token in prompt]
        self._bytes = b"".join(pieces)
        if self._options.tokens:
            scores: list[Choice | None] = [None, *self._scores]
            self._tokens.extend(zip(scores, prompt, pieces, strict=True))

    def _append(self, choice: Choice, token: int, piece: bytes) -> None:
        self._bytes += piece
        if self._options.tokens:
            self._tokens.append((choice, token, piece))

    def _cut(self, length: int) -> None:
        """Take away what lies behind `length`: tokens from the one that holds the byte there."""
        start = 0
        kept: deque[tuple[Choice | None, int, bytes]] = deque()
        for choice, token, piece in self._tokens:
            if start + len(piece) > length:
                if start < length:
                    kept.append((choice, token, piece[: length - start]))
                break
            kept.append((choice, token, piece))
            start += len(piece)
        self._tokens = kept
        self._bytes = self._bytes[:length]

    def _hand_out(self, certain: int, end: End | None = None) -> None:
        """Deliver what of the first `certain` bytes is whole, and with `end` all of them."""
        text, length = codecs.utf_8_decode(self._bytes[:certain], "replace", end is not None)
        tokens: tuple[TokenText, ...] = ()
        if self._options.tokens:
            count, length = self._whole_tokens(length, last=end is not None)
            text = self._bytes[:length].decode("utf-8", "replace")
            tokens = self._shown(count)
        if not text and not tokens and end is None:
            return
        self._bytes = self._bytes[length:]
        self._characters += len(text)
        delta = Delta(
            index=self._index, text=text, tokens=tokens, ids=tuple(self._ids), generated=self._generated, end=end
        )
        self._ids.clear()
        self._deliver(delta)

    def _whole_tokens(self, length: int, *, last: bool) -> tuple[int, int]:
        """How many tokens, and bytes of them, are in the first `length` bytes and end where a character does."""
        ends = []
        place = 0
        for _, _, piece in self._tokens:
            place += len(piece)
            if place > length:
                break
            ends.append(place)
        while ends and not last:
            whole = codecs.utf_8_decode(self._bytes[: ends[-1]], "replace", False)[1]
            if whole == ends[-1]:
                break
            ends.pop()
        return len(ends), ends[-1] if ends else 0

    def _shown(self, count: int) -> tuple[TokenText, ...]:
        """The next `count` tokens, taken."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        offset = self._characters
        shown = []
        for _ in range(count):
            choice, token, piece = self._tokens.popleft()
            logprob, top = (choice.logprob, choice.top) if choice is not None else (None, ())
            shown.append(TokenText(token=token, piece=piece, offset=offset, logprob=logprob, top=top))
            offset += len(decoder.decode(piece))
        return tuple(shown)
