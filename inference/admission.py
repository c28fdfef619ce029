"""Who is let in: how many answers may wait, how long one that is refused should stay away, and who is next."""

from __future__ import annotations

from collections import deque
from typing import Final, final

from inference.fairness import Shares
from inference.ticket import Ticket

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
