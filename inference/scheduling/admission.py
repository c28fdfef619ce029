"""Who is let in: how many answers may wait, how long one that is refused should stay away, and who is next."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from typing import Final, final

from inference.scheduling.fairness import Shares
from inference.scheduling.ticket import Ticket

PATIENCE: Final = 5.0
"""Seconds by which a client may come back late."""

_ENDS_REMEMBERED: Final = 64
_LEAST_SECONDS: Final = 1.0
_MOST_SECONDS: Final = 60.0


class RefusedError(Exception):
    """An answer is not taken."""


@final
class QueueFullError(RefusedError):
    """As many answers wait as may."""

    def __init__(self, *, waiting: int, retry_after: float) -> None:
        super().__init__(f"{waiting} answers wait already; come back in {retry_after:.0f} s")
        self.retry_after = retry_after
        """Seconds until those that wait now will have been begun, by how fast answers end."""


@final
class DrainingError(RefusedError):
    """What is under way is ended, and nothing new is begun."""


@final
class DeadError(RefusedError):
    """The engine has failed for good."""


@final
class Rate:
    """How fast answers end, by the last of them."""

    def __init__(self) -> None:
        self._ends: deque[float] = deque(maxlen=_ENDS_REMEMBERED)

    def ended(self, at: float) -> None:
        """An answer gave its slot back."""
        self._ends.append(at)

    def retry_after(self, waiting: int, now: float) -> float:
        """Seconds in which `waiting` answers are begun, from 1 to 60; 1 as long as too little has been seen.

        The time since the last end counts too, so that an engine that hangs is not thought fast.
        """
        if len(self._ends) < 2:
            return _LEAST_SECONDS
        seconds_an_end = (now - self._ends[0]) / (len(self._ends) - 1)
        return min(max(waiting * seconds_an_end, _LEAST_SECONDS), _MOST_SECONDS)


@final
class Door:
    """Places for `most` answers, of which `slots` are worked on. Whoever uses it holds the lock of the scheduler.

    A tenant that floods the queue takes no place from one that has less than its share, the places over the tenants
    that are here: where such a one is refused, as many places as it wanted are held for it as they get free, for as
    long as it was told to stay away and `PATIENCE` more. Slots are never held: that would leave them idle.
    """

    def __init__(self, *, most: int, slots: int) -> None:
        self._most = most
        self._slots = slots
        self._rate = Rate()
        self._of: Counter[str] = Counter()
        self._held: dict[str, tuple[int, float]] = {}
        self.present = 0
        """Answers that are here."""
        self.refused = 0
        """Answers that were told to come back."""

    def check(self, wanted: Mapping[str, int], now: float) -> None:
        """Raises QueueFullError where there is no room for so many answers more of each tenant."""
        self._held = {name: held for name, held in self._held.items() if held[1] > now}
        more = sum(wanted.values())
        if all(self._has_room(tenant, more) for tenant in wanted):
            return
        self.refused += more
        waiting = max(0, self.present - self._slots)
        seconds = self._rate.retry_after(waiting, now)
        for tenant, count in wanted.items():
            if self._is_modest(tenant, count):
                self._held[tenant] = (count, now + seconds + PATIENCE)
        raise QueueFullError(waiting=waiting, retry_after=seconds)

    def enter(self, wanted: Mapping[str, int]) -> None:
        """So many answers of each tenant have come."""
        for tenant, count in wanted.items():
            self._held.pop(tenant, None)
            self._of[tenant] += count
            self.present += count

    def leave(self, tenant: str, now: float, *, had_slot: bool) -> None:
        """An answer of a tenant is over."""
        if had_slot:
            self._rate.ended(now)
        self.present -= 1
        self._of[tenant] -= 1
        if not self._of[tenant]:
            del self._of[tenant]

    def _has_room(self, tenant: str, more: int) -> bool:
        wanted = self.present + more
        if wanted <= self._slots or (wanted <= self._most and self._is_modest(tenant, more)):
            return True
        return wanted + sum(places for name, (places, _) in self._held.items() if name != tenant) <= self._most

    def _is_modest(self, tenant: str, more: int) -> bool:
        tenants = self._of.keys() | self._held.keys() | {tenant}
        return (self._of[tenant] + more) * len(tenants) <= self._most


@final
class WaitingLine:
    """Answers without a slot: first come, first served within a tenant; the tenant with the least share is next."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._of: dict[str, dict[Ticket, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._of)

    def add(self, ticket: Ticket) -> None:
        """The last of its tenant."""
        self._of.setdefault(ticket.tenant, {})[ticket] = None

    def next(self) -> Ticket:
        """Take the one out whose turn it is. Raises ValueError where nobody waits."""
        ticket = next(iter(self._of[self._shares.first(self._of)]))
        self.remove(ticket)
        return ticket

    def remove(self, ticket: Ticket) -> None:
        """Take one out that waits."""
        line = self._of[ticket.tenant]
        del line[ticket]
        if not line:
            del self._of[ticket.tenant]

    def empty(self) -> list[Ticket]:
        """Take all out."""
        tickets = [ticket for line in self._of.values() for ticket in line]
        self._of.clear()
        return tickets
