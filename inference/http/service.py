"""What answers, once it is ready: a model, its scheduler, and the way of its tokens to the event loop."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from inference.engine.abstract_engine import AbstractEngine, Choice
from inference.http.deliveries import Inbox, Post
from inference.http.lifecycle import Event
from inference.http.metrics import Metrics, Reading, of_scheduler, of_settings
from inference.protocol.bodies import RETRY_AFTER, Gathering
from inference.protocol.errors import draining, failed, queue_full
from inference.protocol.order import Order
from inference.protocol.served_model import ServedModel
from inference.scheduling.admission import DeadError, DrainingError, QueueFullError
from inference.scheduling.generation import AbstractListener, Ended, Generation, Reason
from inference.scheduling.scheduler import Scheduler
from inference.scheduling.ticket import Ticket
from inference.scheduling.turns import Turn
from inference.settings import Settings
from inference.state_cache.state_cache import StateCache
from inference.text.answer import Delta


@final
@dataclass(frozen=True, kw_only=True)
class Assembled:
    """An engine that has made a token, and what it is served as."""

    engine: AbstractEngine
    """Compiled."""
    fingerprint: str
    """What its kept states are good for."""
    model: ServedModel
    """What requests are read for."""
    readings: tuple[Reading, ...] = ()
    """What its making took."""


@final
class AssemblyError(Exception):
    """There is no engine, and it is not the mistake of the user; `event` is what that is to the life of a server."""

    def __init__(self, message: str, event: Event) -> None:
        super().__init__(message)
        self.event: Final = event


@final
class Service:
    """Takes orders, from any thread, and brings their pieces to inboxes of the event loop."""

    def __init__(
        self, assembled: Assembled, settings: Settings, metrics: Metrics, loop: asyncio.AbstractEventLoop
    ) -> None:
        limits = assembled.engine.limits
        cache = None
        if settings.cache_memory:
            cache = StateCache(settings.cache_memory, fingerprint=assembled.fingerprint, grid=limits.grid)
        self.warnings: Final = _warnings(settings.cache_memory, limits.state_bytes)
        """What whoever started it should know."""
        self.model: Final = assembled.model
        self.post: Final[Post[Delta | None]] = Post(loop)
        self.scheduler: Final = Scheduler(
            assembled.engine,
            cache=cache,
            queue=settings.queue,
            prefill_tokens_a_turn=settings.prefill_tokens,
            on_turn=self._turned,
        )
        self._metrics: Final = metrics
        self._state_bytes: Final = limits.state_bytes
        kept = of_settings(grid=limits.grid, cache_memory=settings.cache_memory, state_bytes=limits.state_bytes)
        self._readings: Final = (*assembled.readings, kept)
        metrics.watch(self._read)

    def submit_stream(self, order: Order, inbox: Inbox[Delta | None]) -> tuple[Ticket, ...]:
        """Have an order answered, piece by piece. Raises ApiError (429, 500, 503)."""

        def deliver(delta: Delta) -> None:
            self.post.give(inbox, delta)

        return self._submit(order, [order.answer(index, deliver) for index in range(len(order.generations))])

    def submit_whole(self, order: Order, inbox: Inbox[Delta | None], gathering: Gathering) -> tuple[Ticket, ...]:
        """Have an order answered into `gathering`; the inbox gets None when it is complete. Raises as above."""

        def deliver(delta: Delta) -> None:
            gathering.add(delta)
            if delta.end is not None and gathering.complete:
                self.post.give(inbox, None)

        return self._submit(order, [order.answer(index, deliver) for index in range(len(order.generations))])

    def cancel(self, tickets: Sequence[Ticket]) -> None:
        """Nobody waits for these any more; nothing where they are over."""
        for ticket in tickets:
            self.scheduler.cancel(ticket)

    def stuck(self, patience: float) -> bool:
        """Whether the engine gives no sign of life for `patience` seconds though there is work, or never will."""
        return self.scheduler.failed is not None or self.scheduler.stalled_seconds > patience

    def _submit(self, order: Order, answers: Sequence[AbstractListener]) -> tuple[Ticket, ...]:
        """All answers of an order, or none."""
        self._metrics.choices.observe(order.choices)
        pairs = [
            (generation, _Measured(answer, generation, metrics=self._metrics, post=self.post))
            for generation, answer in zip(order.generations, answers, strict=True)
        ]
        try:
            return self.scheduler.submit_all(pairs)
        except QueueFullError as error:
            raise queue_full(math.ceil(error.retry_after)) from None
        except DrainingError:
            raise draining(RETRY_AFTER) from None
        except DeadError:
            raise failed() from None

    def _turned(self, turn: Turn) -> None:
        self.post.send_off()
        self._metrics.iteration_tokens.observe(turn.prefilled_tokens + turn.decoded_tokens)
        if turn.decoded_tokens:
            self._metrics.decode_step.observe(turn.decode_seconds)

    def _read(self) -> Sequence[Reading]:
        said = self.scheduler.statistics()
        return [*self._readings, *of_scheduler(said, state_bytes=self._state_bytes)]


def _warnings(cache_memory: int, state_bytes: int) -> tuple[str, ...]:
    if not 0 < cache_memory < state_bytes:
        return ()
    return (
        f"--cache-memory is {cache_memory:,} bytes, and one state of this model {state_bytes:,}: none is ever kept, "
        "and every prompt is read from its beginning; give room for several, or 0 to look for none",
    )


@final
class _Measured(AbstractListener):
    """Hears of an answer, keeps the time, and lets the answer hear."""

    def __init__(
        self, answer: AbstractListener, generation: Generation, *, metrics: Metrics, post: Post[Delta | None]
    ) -> None:
        self._answer: Final = answer
        self._generation: Final = generation
        self._metrics: Final = metrics
        self._post: Final = post
        self._last = time.monotonic()
        self._told = False

    def scored(self, scores: tuple[Choice, ...]) -> None:
        """See AbstractListener."""
        self._answer.scored(scores)

    def token(self, choice: Choice) -> bool:
        """See AbstractListener."""
        now = time.monotonic()
        said = self._metrics.between_tokens if self._told else self._metrics.first_token
        said.observe(now - self._last)
        self._last, self._told = now, True
        return self._answer.token(choice)

    def ended(self, ended: Ended) -> None:
        """See AbstractListener."""
        self._answer.ended(ended)
        self._metrics.ended(self._generation, ended)
        if ended.reason is Reason.FAILED:  # a turn in which the engine failed is no turn that is told of
            self._post.send_off()
