"""Who reads what another begins with: of many answers to one prompt that come together, one reads it.

An answer whose prompt is being read promises the states at the places that the cache wants. Another that begins with
such a place, and finds no longer one kept, waits for it. The promise is settled when the place is passed, or when the
answer that gave it ends before. All who waited then start with what is kept, and do not wait a second time: where the
cache does not keep what was promised, answers do not queue up behind each other for nothing.
"""

from __future__ import annotations

from typing import final

from inference.scheduling.ticket import Ticket
from inference.state_cache.state_cache import StateCache


@final
class Promises:
    """States that will be kept, and who waits for them."""

    def __init__(self, cache: StateCache) -> None:
        self._cache = cache
        self._givers: dict[bytes, Ticket] = {}
        self._waiting: dict[Ticket, tuple[Ticket, int]] = {}

    def give(self, ticket: Ticket, places: tuple[int, ...]) -> None:
        """The states of `ticket` at `places` will be kept."""
        for place in places:
            self._givers.setdefault(ticket.chain.digest(place), ticket)

    def wait(self, ticket: Ticket) -> bool:
        """Let an answer wait where there is something worth it; whether it does."""
        chain = ticket.chain
        for place in range(chain.usable, self._cache.longest(chain) // chain.grid, -1):
            giver = self._givers.get(chain.digests[place - 1])
            if giver is not None:
                self._waiting[ticket] = (giver, place * chain.grid)
                self._hurry(giver)
                return True
        return False

    def settle(self, giver: Ticket, places: tuple[int, ...]) -> list[Ticket]:
        """The states of `giver` at `places` are kept, or will not be; those who waited for them, in order."""
        for place in places:
            digest = giver.chain.digest(place)
            if self._givers.get(digest) is giver:
                del self._givers[digest]
        if giver.awaited is None:
            return []
        served = [ticket for ticket, (other, place) in self._waiting.items() if other is giver and place in places]
        for ticket in served:
            del self._waiting[ticket]
        self._hurry(giver)
        return served

    def leave(self, ticket: Ticket) -> None:
        """An answer does not wait any more; nothing where it does not."""
        waited = self._waiting.pop(ticket, None)
        if waited is not None:
            self._hurry(waited[0])

    def _hurry(self, giver: Ticket) -> None:
        places = (place for other, place in self._waiting.values() if other is giver)
        giver.awaited = min(places, default=None)
