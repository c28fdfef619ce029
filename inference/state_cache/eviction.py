"""Which kept state goes when room is needed: the one that saves the fewest tokens a byte, the longer unused the fewer.

GreedyDual: a state is worth

    inflation + tokens / bytes

when it is kept and each time it is used. The one worth least goes first, and `inflation` becomes what it was worth. So
what was kept or used since is worth more by that than what has lain there, and a state that saves twice the tokens a
byte lies there twice as long.
"""

from __future__ import annotations

import heapq
from typing import Final, final

_SPARE: Final = 64


def worth(inflation: float, *, tokens: int, nbytes: int) -> float:
    """What a state that saves `tokens` and takes `nbytes` is worth if it is used now."""
    return inflation + tokens / max(nbytes, 1)


@final
class GreedyDual:
    """What is kept, by worth."""

    def __init__(self) -> None:
        self.inflation = 0.0
        """What the last one that went was worth."""
        self._worth: dict[bytes, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, bytes]] = []
        self._serial = 0

    def use(self, key: bytes, *, tokens: int, nbytes: int) -> None:
        """A state is kept, or used again."""
        self._serial += 1
        self._worth[key] = (worth(self.inflation, tokens=tokens, nbytes=nbytes), self._serial)
        heapq.heappush(self._heap, (*self._worth[key], key))
        if len(self._heap) > 2 * len(self._worth) + _SPARE:
            self._heap = [(*value, name) for name, value in self._worth.items()]
            heapq.heapify(self._heap)

    def forget(self, key: bytes) -> None:
        """A state is not kept any more, for another reason."""
        del self._worth[key]

    def evict(self) -> bytes:
        """The one that goes; of equals, the one used longest ago. Raises IndexError where there is none."""
        while True:
            value, serial, key = heapq.heappop(self._heap)
            if self._worth.get(key) == (value, serial):
                del self._worth[key]
                self.inflation = value
                return key
