"""Where prompts part: the places of the prompts that were seen, whether or not a state is kept there.

Where a prompt shares a known place and no state is kept there, two prompts have parted behind it, and a third may well
come. Bounded: the places used longest ago are forgotten first, and of one prompt the late ones before the early ones.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import final

from inference.state_cache.hash_chain import HashChain


@final
class KnownPlaces:
    """At most `most` places."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lost: OrderedDict[bytes, bool] = OrderedDict()

    def __len__(self) -> int:
        return len(self._lost)

    def deepest(self, chain: HashChain) -> int:
        """The last known place before the last token of a prompt; 0 where none is known."""
        for place in range(chain.usable, 0, -1):
            if chain.digests[place - 1] in self._lost:
                return place * chain.grid
        return 0

    def remember(self, chain: HashChain) -> None:
        """A prompt was seen."""
        for digest in reversed(tuple(islice(chain.digests, self._most))):
            self._lost.setdefault(digest, False)
            self._lost.move_to_end(digest)
        while len(self._lost) > self._most:
            self._lost.popitem(last=False)

    def mark(self, digest: bytes, *, lost: bool) -> None:
        """Whether a state was kept at a place and is not any more; nothing where the place is not known."""
        if digest in self._lost:
            self._lost[digest] = lost

    def lost(self, digest: bytes) -> bool:
        """Whether a state was kept at a place, and went."""
        return self._lost.get(digest, False)
