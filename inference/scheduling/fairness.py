"""Tenants take turns. Who has been given the least is next, and nobody saves up turns by staying away.

This is fair queueing by counters: what a tenant is given is added to its counter, and the one with the lowest is
served. A tenant that comes (back) begins at the lowest counter of those who are there, or at its own where that is
higher. So two tenants who both always want something are never further apart than the larger of the two largest things
that are given to them at once, whatever they ask for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from inference.scheduling.ticket import Ticket


@final
class Shares:
    """What each tenant has been given, in tokens."""

    def __init__(self) -> None:
        self._given: dict[str, int] = {}
        self._present: dict[str, int] = {}

    def comes(self, tenant: str) -> None:
        """A tenant wants something (more)."""
        if tenant not in self._present:
            floor = min((self._given[other] for other in self._present), default=None)
            if floor is None:
                self._given.clear()
            else:
                self._given = {name: given for name, given in self._given.items() if given > floor or self._here(name)}
            self._given.setdefault(tenant, floor or 0)
            self._present[tenant] = 0
        self._present[tenant] += 1

    def goes(self, tenant: str) -> None:
        """One of the things that a tenant wanted is done with."""
        self._present[tenant] -= 1
        if not self._present[tenant]:
            del self._present[tenant]

    def give(self, tenant: str, tokens: int) -> None:
        """A tenant that is there is given something."""
        self._given[tenant] += tokens

    def first(self, tenants: Iterable[str]) -> str:
        """Which of these, who are there, is next; the first of equals. Raises ValueError for none."""
        return min(tenants, key=self._given.__getitem__)

    def _here(self, tenant: str) -> bool:
        return tenant in self._present


@final
class ReadingOrder:
    """Prompts that are being read on one device, and whose piece is next.

    Tenants take turns by the tokens that were read for them. Of the pieces of one tenant every other one goes to the
    prompt that came first, and those between to the one with the least to read: a question does not wait behind a
    book, and the book is read on.
    """

    def __init__(self) -> None:
        self._shares = Shares()
        self._of: dict[str, dict[Ticket, None]] = {}
        self._shortest_next: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._of)

    @property
    def tokens(self) -> int:
        """That are left to read."""
        return sum(len(ticket.generation.prompt) - ticket.position for line in self._of.values() for ticket in line)

    def add(self, ticket: Ticket) -> None:
        """A prompt is to be read."""
        self._shares.comes(ticket.tenant)
        self._of.setdefault(ticket.tenant, {})[ticket] = None

    def remove(self, ticket: Ticket) -> None:
        """A prompt is read, or is not wanted any more; nothing where it is not here."""
        line = self._of.get(ticket.tenant, {})
        if ticket not in line:
            return
        del line[ticket]
        self._shares.goes(ticket.tenant)
        if not line:
            del self._of[ticket.tenant]
            self._shortest_next.discard(ticket.tenant)

    def first(self) -> Ticket:
        """Whose piece is next. Raises ValueError where there is none."""
        tenant = self._shares.first(self._of)
        line = self._of[tenant]
        if tenant in self._shortest_next:
            return min(line, key=lambda ticket: ticket.left)
        return next(iter(line))

    def has_read(self, ticket: Ticket, tokens: int) -> None:
        """A piece of one that is here was read."""
        self._shares.give(ticket.tenant, tokens)
        self._shortest_next ^= {ticket.tenant}
