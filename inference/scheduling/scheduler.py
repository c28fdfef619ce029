"""The scheduler: who gets a slot, whose prompt is read, who hears what, and when it ends.

One thread drives the engine, in turns, by `run`. Any thread may `submit` and `cancel`. A turn is

    1. end      what was cancelled, and everything when it is cut off
    2. admit    as many waiting answers as slots are free, from the longest kept state of their prompts
    3. read     pieces of prompts, on each device of at most `prefill_tokens_a_turn` tokens together
    4. decode   one token of every answer whose prompt is read, all at once

so that an answer that has begun waits for no more than one budget of reading between two of its tokens, however long
the prompts of others are, and a slot is free one turn after its answer was cancelled.

**What an answer says depends on it alone.** The scheduler decides when a piece is read, never where it is cut: pieces
end on the grid of the engine. Tokens are chosen from seed and place. So an answer is the same alone, in a crowd, behind
a cancelled one, in any slot, from a kept state or from the start.

**Fairness** (fairness.py). The slot goes to the tenant that has been given the fewest tokens, read and chosen; within a
tenant to who came first. The next piece goes to the tenant for whom the fewest were read; within a tenant, by turns to
the oldest prompt and to the one with the least left. Nobody starves: whoever waits has a counter that stands still,
while those of all others rise.

**Devices** of an engine work side by side. An answer gets a slot on the one with the most free, and of those on the one
with the least to read. Each has a budget of reading and counters of its own, so that nobody waits on one for what is
read on another; a piece is begun on each before any is waited for.

**Backpressure** (admission.py). At most `slots + queue` answers are here. One more is refused, with the seconds after
which those that wait will have been begun, by the rate at which answers have been ending. A tenant that floods the
queue locks no other out: where one with less than its share is refused, the next places are held for it.

**Kept states** (state_cache.py). A prompt is read up to the places that the cache wants, and kept there. An answer that
begins with what another is reading just now takes a slot, and starts when that is kept (or will not be): of eight
answers to one prompt, one reads it. It waits once at most, for one that is read.

**The end of an answer** is told once, whatever happens, behind everything else of it and when its slot is free. It is
STOP or LENGTH by itself, CANCELLED by who asked, CUT_OFF by `cut_off` or `close`, FAILED where the engine or its own
listener raised.

**A failing engine.** A slot whose logits are no numbers fails its own answer. When a call raises anything else, every
answer in the engine has FAILED, for nobody knows what it left behind; all slots are given back, and those that wait are
begun. If it does not give them back, or fails `MOST_FAILURES` times without a decode or a finished answer between, the
scheduler is dead: `failed` says why, all that waits has FAILED, and nothing is taken.

**Without work it sleeps**, on a condition: no turn, no polling.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Final, final

from inference.engine.abstract_engine import AbstractEngine
from inference.scheduling.admission import DeadError, Door, DrainingError, WaitingLine
from inference.scheduling.batch import Batch
from inference.scheduling.fairness import Shares
from inference.scheduling.generation import AbstractListener, Generation, Reason
from inference.scheduling.ticket import Ticket, new_ticket
from inference.scheduling.turns import Statistics, Turn
from inference.state_cache.state_cache import StateCache

MOST_FAILURES: Final = 3
"""Failures of the engine in a row behind which it is taken for dead."""

_LOG: Final = logging.getLogger(__name__)


def _nobody(turn: Turn) -> None:
    """Who hears of turns where nobody asked to."""


@final
class Scheduler:
    """Answers, by way of the slots of an engine; see the top of the module.

    `queue` answers may wait beside those in slots. `on_turn` hears of each turn, on the thread of the scheduler.
    """

    def __init__(
        self,
        engine: AbstractEngine,
        *,
        cache: StateCache | None,
        queue: int,
        prefill_tokens_a_turn: int,
        clock: Callable[[], float] = time.monotonic,
        on_turn: Callable[[Turn], None] = _nobody,
    ) -> None:
        """Raises ValueError for a budget without room for one piece, a queue below 0, or a cache of another grid."""
        self._limits = engine.limits
        if prefill_tokens_a_turn < self._limits.grid:
            raise ValueError(
                f"prefill_tokens_a_turn: is {prefill_tokens_a_turn}; a piece has up to {self._limits.grid} tokens, the "
                "grid of the engine"
            )
        if queue < 0:
            raise ValueError(f"queue: is {queue}; it is 0 or more")
        if cache is not None and cache.grid != self._limits.grid:
            raise ValueError(f"cache: its grid is {cache.grid}; that of the engine is {self._limits.grid}")
        self._cache = cache
        self._budget = prefill_tokens_a_turn
        self._clock = clock
        self._on_turn = on_turn

        self._lock = threading.Condition()
        """Over what other threads write: the next three groups."""
        self._arrived: list[Ticket] = []
        self._cancelled: list[Ticket] = []
        self._door = Door(most=self._limits.slots + queue, slots=self._limits.slots)
        self._draining = self._cutting_off = self._closed = False

        self._shares = Shares()
        self._line = WaitingLine(self._shares)
        self._batch = Batch(engine, cache, self._shares, now=clock, over=self._over)
        self._turns = 0
        self._engine_failures = 0
        self._failures_in_a_row = 0
        self.failed: str | None = None
        """Why the scheduler is dead; None as long as it is not."""
        self.last_turn = clock()
        """When the thread was last seen at work: a turn began or ended, or there was nothing to do."""

    def submit(self, generation: Generation, listener: AbstractListener) -> Ticket:
        """Hand in an answer. Raises as `submit_all`."""
        (ticket,) = self.submit_all([(generation, listener)])
        return ticket

    def submit_all(self, asked: Iterable[tuple[Generation, AbstractListener]]) -> tuple[Ticket, ...]:
        """Hand in several answers, all or none.

        Raises QueueFullError, DrainingError or DeadError, of RefusedError; ValueError for a prompt that no engine of
        these limits can read.
        """
        pairs = tuple(asked)
        wanted = Counter(generation.tenant for generation, _ in pairs)
        with self._lock:  # before the digests of a long prompt are made
            self._check_room(wanted)
        now, limits, cache = self._clock(), self._limits, self._cache
        tickets = tuple(new_ticket(*pair, now, limits, cache) for pair in pairs)
        with self._lock:
            self._check_room(wanted)
            if not self._door.present:
                self.last_turn = self._clock()
            self._arrived.extend(tickets)
            self._door.enter(wanted)
            self._lock.notify_all()
        return tickets

    def cancel(self, ticket: Ticket) -> None:
        """Nobody wants the answer any more: its slot is free within one turn. Nothing where it is over."""
        with self._lock:
            if not ticket.cancelled and not ticket.over:
                ticket.cancelled = True
                self._cancelled.append(ticket)
                self._lock.notify_all()

    def drain(self) -> None:
        """Refuse what comes from now on, and finish the rest."""
        with self._lock:
            self._draining = True
            self._lock.notify_all()

    def cut_off(self) -> None:
        """Refuse what comes from now on, and end the rest with CUT_OFF at the next turn."""
        with self._lock:
            self._draining = self._cutting_off = True
            self._lock.notify_all()

    def close(self) -> None:
        """Cut off what is here; then `run` returns."""
        self.cut_off()
        with self._lock:
            self._closed = True
            self._lock.notify_all()

    @property
    def stalled_seconds(self) -> float:
        """For how long the thread has given no sign of life while there is work; 0 where there is none."""
        return max(0.0, self._clock() - self.last_turn) if self._door.present else 0.0

    def statistics(self) -> Statistics:
        """The numbers of now; from any thread."""
        totals, running = self._batch.totals, len(self._batch)
        return Statistics(
            slots=self._limits.slots,
            running=running,
            reading=self._batch.reading,
            waiting=max(0, self._door.present - running),
            turns=self._turns,
            prompt_tokens=totals.prompt_tokens,
            cached_tokens=totals.cached_tokens,
            prefilled_tokens=totals.prefilled_tokens,
            generated_tokens=totals.generated_tokens,
            ended=MappingProxyType({reason: totals.ended[reason] for reason in Reason}),
            refused=self._door.refused,
            engine_failures=self._engine_failures,
            listener_failures=totals.listener_failures,
            restores=totals.restores,
            cache=None if self._cache is None else self._cache.statistics(),
        )

    def run(self) -> None:
        """Take turns until closed, and sleep as long as there is nothing to do."""
        while True:
            with self._lock:
                while not self._door.present:
                    if self._closed:
                        return
                    self._lock.wait()
            self.turn()

    def turn(self) -> bool:
        """Take one turn; whether there is more to do."""
        began = self.last_turn = self._clock()
        if self.failed is None:
            try:
                self._work(began)
            except Exception as error:  # noqa: BLE001 - an engine may raise anything, and the server goes on
                self._engine_failed(error)
        else:
            self._let_in()
            self._end_everything(Reason.FAILED)
        self.last_turn = self._clock()
        return self._door.present > 0

    def _work(self, began: float) -> None:
        finished = self._batch.totals.finished
        self._end_unwanted()
        admitted = 0
        while self._batch.has_room and self._line:
            self._batch.take(self._line.next())
            admitted += 1
        reading = self._clock()
        prefilled = self._batch.read(self._budget)
        read = self._clock()
        decoded, decode_seconds = self._batch.decode()
        if decoded or self._batch.totals.finished > finished:
            self._failures_in_a_row = 0
        self._turns += 1
        running = len(self._batch)
        turn = Turn(
            number=self._turns,
            seconds=self._clock() - began,
            prefill_seconds=read - reading,
            decode_seconds=decode_seconds,
            admitted=admitted,
            prefilled_tokens=prefilled,
            decoded_tokens=decoded,
            running=running,
            waiting=max(0, self._door.present - running),
        )
        try:
            self._on_turn(turn)
        except Exception:  # noqa: BLE001 - who counts turns may be wrong in any way
            _LOG.exception("on_turn raised")

    def _let_in(self) -> None:
        """Put what has arrived into the line."""
        with self._lock:
            arrived, self._arrived = self._arrived, []
        for ticket in arrived:
            self._shares.comes(ticket.tenant)
            self._line.add(ticket)

    def _end_unwanted(self) -> None:
        """End what is cancelled or cut off."""
        with self._lock:
            cancelled, self._cancelled = self._cancelled, []
        self._let_in()  # behind that, so that all that is cancelled is in the line or further
        for ticket in cancelled:
            if ticket.slot is None and not ticket.over:
                self._line.remove(ticket)
            self._batch.end(ticket, Reason.CANCELLED)
        if self._cutting_off:
            self._end_everything(Reason.CUT_OFF)

    def _end_everything(self, reason: Reason) -> bool:
        """End all that is here; whether the engine gave all slots back."""
        whole = self._batch.end_all(reason)
        for ticket in self._line.empty():
            self._batch.end(ticket, reason)
        return whole

    def _engine_failed(self, error: Exception) -> None:
        _LOG.error("the engine failed; %d answers fail with it", len(self._batch), exc_info=error)
        self._engine_failures += 1
        self._failures_in_a_row += 1
        whole = self._batch.end_all(Reason.FAILED)
        if whole and self._failures_in_a_row < MOST_FAILURES:
            return
        why = f"it failed {self._failures_in_a_row} times in a row" if whole else "it does not give its slots back"
        self.failed = f"the engine is dead: {why}; last: {type(error).__name__}: {error}"
        _LOG.critical("%s", self.failed)
        self._let_in()
        self._end_everything(Reason.FAILED)

    def _check_room(self, wanted: Counter[str]) -> None:
        if self.failed is not None:
            raise DeadError(self.failed)
        if self._draining:
            raise DrainingError("the server is about to end; ask another")
        self._door.check(wanted, self._clock())

    def _over(self, ticket: Ticket) -> None:
        """An answer has left: its place in the queue is free."""
        self._shares.goes(ticket.tenant)
        with self._lock:
            self._door.leave(ticket.tenant, self._clock(), had_slot=ticket.admitted is not None)
