"""The answers in the slots of an engine: begun, read, decoded, ended. One thread; see scheduler.py for the design."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, final

from inference.engine.abstract_engine import AbstractEngine, Choice, Snapshot
from inference.engine.slots import FaultySlotsError
from inference.scheduling.devices import Devices
from inference.scheduling.fairness import Shares
from inference.scheduling.generation import Reason
from inference.scheduling.promises import Promises
from inference.scheduling.ticket import Ticket, reason_to_end
from inference.scheduling.turns import Totals
from inference.state_cache.state_cache import StateCache

LEAST_ROWS: Final = 64
"""What the shortest piece of a prompt costs an engine, in tokens: it reads no fewer rows at once."""

_LOG: Final = logging.getLogger(__name__)


@final
class Batch:
    """What stands in which slot.

    `now` is the clock. `over` hears of every answer that has left, when its listener has. Whatever the engine raises
    comes out of `take`, `read`, `decode` and `end`, but for what concerns one answer alone: a snapshot or a prompt that
    it refuses, and slots whose logits are no numbers.
    """

    def __init__(
        self,
        engine: AbstractEngine,
        cache: StateCache | None,
        shares: Shares,
        *,
        now: Callable[[], float],
        over: Callable[[Ticket], None],
    ) -> None:
        self._engine = engine
        self._limits = engine.limits
        self._cache = cache
        self._shares = shares
        self._now = now
        self._over = over
        self._devices = Devices(self._limits, engine.free_slots())
        self._tickets: dict[int, Ticket] = {}
        self._admitted: set[int] = set()
        self._answering: dict[int, Ticket] = {}
        self._promises = None if cache is None else Promises(cache)
        self.totals = Totals()
        """What all that came to."""

    def __len__(self) -> int:
        return len(self._tickets)

    @property
    def reading(self) -> int:
        """How many of the answers have no token yet: their prompts are being read."""
        return len(self._tickets) - len(self._answering)

    @property
    def has_room(self) -> bool:
        """Whether a slot is free."""
        return self._devices.has_room

    def take(self, ticket: Ticket) -> None:
        """Give an answer a slot, and begin it, unless another reads just now what it begins with."""
        ticket.slot = self._devices.take()
        ticket.admitted = self._now()
        self._tickets[ticket.slot] = ticket
        self._shares.give(ticket.tenant, 1)
        scored = ticket.generation.score_prompt
        if self._promises is None or scored or not self._promises.wait(ticket):
            self._begin(ticket)

    def read(self, budget: int) -> int:
        """Read pieces of prompts, on each device of at most `budget` tokens together, or one; how many tokens they had.

        Every device has begun its piece before any is waited for.
        """
        spent = [0] * self._limits.devices
        read = 0
        while beside := self._next_pieces(spent, budget):
            if len(beside) > 1:
                for slot, ticket in beside:
                    self._engine.begin_prefill(slot, scored=ticket.generation.score_prompt)
            for slot, ticket in beside:
                read += self._piece(ticket)
                self._read_piece(slot, ticket)
        return read

    def decode(self) -> tuple[int, float]:
        """The next token of all that answer; how many, and the seconds in the engine."""
        if not self._answering:
            return 0, 0.0
        began = self._now()
        faulty: tuple[int, ...] = ()
        try:
            choices = self._engine.decode(list(self._answering))
        except FaultySlotsError as error:
            choices, faulty = error.choices, error.slots
            _LOG.error("%s", error)
        seconds = self._now() - began
        for slot, ticket in list(self._answering.items()):
            if slot in faulty:
                self.end(ticket, Reason.FAILED)
            else:
                self._choose(ticket, choices[slot])
        return len(choices), seconds

    def end(self, ticket: Ticket, reason: Reason) -> None:
        """Free the slot, if it has one, and tell the listener; nothing where it is over.

        What the engine raises comes out when all that is here is done.
        """
        if ticket.over:
            return
        ticket.over = True
        self.totals.ended[reason] += 1
        try:
            self._leave(ticket)
        finally:
            try:
                ticket.listener.ended(ticket.ended(reason, self._now()))
            except Exception:  # noqa: BLE001 - a listener may be wrong in any way, and nobody else may suffer for it
                self._complain(ticket)
            self._over(ticket)

    def end_all(self, reason: Reason) -> bool:
        """End everything; whether the engine gave all slots back."""
        whole = True
        if self._promises is not None:
            for ticket in self._tickets.values():
                self._promises.leave(ticket)  # so that nobody is begun because another ends
        for ticket in list(self._tickets.values()):
            try:
                self.end(ticket, reason)
            except Exception:  # noqa: BLE001 - the engine may be in any state here
                _LOG.exception("slot of request %s was not given back", ticket.generation.request_id)
                whole = False
        return whole and len(self._engine.free_slots()) == self._limits.slots

    def _piece(self, ticket: Ticket) -> int:
        """The tokens of the next piece of a prompt."""
        grid = self._limits.grid
        return min(len(ticket.generation.prompt), (ticket.position // grid + 1) * grid) - ticket.position

    def _next_pieces(self, spent: list[int], budget: int) -> list[tuple[int, Ticket]]:
        """Of each device whose budget has room, the slot that is read next; what it takes is added to `spent`."""
        found = []
        for device, order in enumerate(self._devices.orders):
            while order:
                ticket = order.first()
                cost = max(self._piece(ticket), min(LEAST_ROWS, self._limits.grid))
                if spent[device] and spent[device] + cost > budget:
                    break
                if not ticket.cancelled:
                    assert ticket.slot is not None
                    spent[device] += cost
                    found.append((ticket.slot, ticket))
                    break
                self.end(ticket, Reason.CANCELLED)
        return found

    def _begin(self, ticket: Ticket) -> None:
        slot, generation = ticket.slot, ticket.generation
        assert slot is not None
        try:
            ticket.position = ticket.cached = self._admit(slot, ticket)
        except ValueError:
            _LOG.exception("request %s: the engine refuses its prompt", generation.request_id)
            self.end(ticket, Reason.FAILED)
            return
        unread = len(generation.prompt) - ticket.position
        self.totals.prompt_tokens += len(generation.prompt)
        self.totals.cached_tokens += ticket.cached
        self.totals.restores += ticket.cached > 0
        self._shares.give(ticket.tenant, unread)
        self._promise(ticket)
        self._devices.order(slot).add(ticket)

    def _admit(self, slot: int, ticket: Ticket) -> int:
        """Take the slot in the engine, from a kept state where there is one that it takes; the position."""
        start = self._kept_state(ticket)
        generation = ticket.generation
        try:
            position = self._engine.admit(slot, generation.parameters, prompt=generation.prompt, start=start)
        except ValueError:
            if start is None or self._cache is None:
                raise
            _LOG.exception("a kept state is refused; the prompt of request %s is read", generation.request_id)
            self._cache.damaged(ticket.chain, start)
            position = self._engine.admit(slot, generation.parameters, prompt=generation.prompt, start=None)
        self._admitted.add(slot)
        return position

    def _kept_state(self, ticket: Ticket) -> Snapshot | None:
        if self._cache is None or ticket.generation.score_prompt:
            return None
        return self._cache.lookup(ticket.chain)

    def _promise(self, ticket: Ticket) -> None:
        if self._cache is None or self._promises is None:
            return
        ticket.wanted = tuple(place for place in self._cache.wanted(ticket.chain) if place > ticket.position)
        self._promises.give(ticket, ticket.wanted)

    def _read_piece(self, slot: int, ticket: Ticket) -> None:
        generation, before = ticket.generation, ticket.position
        try:
            piece = self._engine.prefill(slot, scored=generation.score_prompt)
        except FaultySlotsError as error:
            _LOG.error("request %s: %s", generation.request_id, error)
            self.end(ticket, Reason.FAILED)
            return
        ticket.position = piece.position
        self.totals.prefilled_tokens += piece.position - before
        self._devices.order(slot).has_read(ticket, piece.position - before)
        if ticket.wanted and piece.position == ticket.wanted[0]:
            self._keep(ticket)
        if piece.choice is not None:
            self._devices.order(slot).remove(ticket)
            self._answering[slot] = ticket
        if generation.score_prompt and not self._tell_scores(ticket, piece.scores):
            return
        if piece.choice is not None:
            self._first(ticket, piece.choice)

    def _keep(self, ticket: Ticket) -> None:
        assert self._cache is not None
        assert ticket.slot is not None
        place, *later = ticket.wanted
        if not self._cache.holds(ticket.chain, place):  # another may have read the same meanwhile
            self._cache.put(ticket.chain, self._engine.snapshot(ticket.slot))
        ticket.wanted = tuple(later)
        self._settle(ticket, (place,))

    def _settle(self, ticket: Ticket, places: tuple[int, ...]) -> None:
        """What was promised at `places` is there, or will not come: who waits for it is begun."""
        if self._promises is not None:
            for other in self._promises.settle(ticket, places):
                self._begin(other)

    def _first(self, ticket: Ticket, choice: Choice) -> None:
        if ticket.most == 0:
            self.end(ticket, Reason.LENGTH)
            return
        ticket.first_token = self._now()
        self._choose(ticket, choice)

    def _choose(self, ticket: Ticket, choice: Choice) -> None:
        """Count a token, tell the listener, and end the answer where it is complete."""
        if ticket.cancelled:
            self.end(ticket, Reason.CANCELLED)
            return
        ticket.generated += 1
        self.totals.generated_tokens += 1
        self._shares.give(ticket.tenant, 1)
        try:
            enough = ticket.listener.token(choice)
        except Exception:  # noqa: BLE001 - as above
            self._complain(ticket)
            self.end(ticket, Reason.FAILED)
            return
        reason = reason_to_end(ticket, choice.token, enough=enough)
        if reason is not None:
            self.end(ticket, reason)

    def _tell_scores(self, ticket: Ticket, scores: tuple[Choice, ...]) -> bool:
        try:
            ticket.listener.scored(scores)
        except Exception:  # noqa: BLE001 - as above
            self._complain(ticket)
            self.end(ticket, Reason.FAILED)
            return False
        return True

    def _complain(self, ticket: Ticket) -> None:
        self.totals.listener_failures += 1
        _LOG.exception("request %s: its listener raised", ticket.generation.request_id)

    def _leave(self, ticket: Ticket) -> None:
        slot = ticket.slot
        if slot is None:
            return
        ticket.slot = None
        self._answering.pop(slot, None)
        del self._tickets[slot]
        self._devices.order(slot).remove(ticket)
        self._devices.give(slot)
        if self._promises is not None:
            self._promises.leave(ticket)
        if slot in self._admitted:
            self._admitted.remove(slot)
            self._engine.release(slot)
        self._settle(ticket, ticket.wanted)
