"""Kept states of prompts: a prefix of any length is one blob, and a prompt that begins with it need not read it again.

    chain    what a prompt is known by at each place of the grid (see hash_chain.py), under a salt of the weights, the
             tenant and the request: what differs in any of them shares nothing
    lookup   the longest kept prefix of a prompt that leaves its last token to be read
    wanted   where the reading of a prompt should stop to keep its state:
             - the last place before its end, from which the same prompt, or one that goes on, starts,
             - the ends of its turns, rounded down to the grid,
             - the place up to which another prompt was the same, where nothing is kept (see known_places.py)
    put      keep a state; what saves least a byte makes room (see eviction.py)

A state is kept and found whole, at the place it was taken, or not at all. Only what was prefilled is kept: a token that
was generated went another way through the model, and its state has other bits. Used by one thread, but for `chain` and
`statistics`.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, final

from inference.engine.abstract_engine import Snapshot
from inference.scheduling.generation import Generation
from inference.state_cache.eviction import GreedyDual
from inference.state_cache.hash_chain import HashChain, hash_chain
from inference.state_cache.known_places import KnownPlaces

KNOWN_PLACES: Final = 1 << 17
"""Places of prompts that are remembered by default: about 24 MiB."""


@final
class MissReason(enum.Enum):
    """Why a prompt is read from its beginning."""

    SHORT = "short"
    """It has no place on the grid before its last token."""
    NEW = "new"
    """No place of it was seen before."""
    NOT_KEPT = "not_kept"
    """It was seen, and no state was kept at any of its places."""
    EVICTED = "evicted"
    """A state was kept, and had to make room."""
    TOO_LARGE = "too_large"
    """One state is larger than all that may be kept."""
    DAMAGED = "damaged"
    """The engine refused the state, which is not kept any more."""


@final
@dataclass(frozen=True, kw_only=True)
class CacheStatistics:
    """What the cache holds, and what it has done since it was made."""

    capacity: int
    """Bytes that it may hold."""
    nbytes: int
    """Bytes that it holds."""
    count: int
    """States that it holds."""
    known_places: int
    """Places of prompts that are remembered."""
    hits: int
    """Prompts for which a state was found and restored."""
    misses: Mapping[MissReason, int]
    """Prompts for which none was."""
    queried_tokens: int
    """Of all those prompts."""
    saved_tokens: int
    """Of those, the ones that were not read."""
    kept: int
    """States that were taken in."""
    evictions: int
    """States that made room."""
    too_large: int
    """States that were not taken in, for one is larger than the capacity."""


@final
class StateCache:
    """Kept states of at most `capacity_bytes` together."""

    def __init__(self, capacity_bytes: int, *, fingerprint: str, grid: int, known_places: int = KNOWN_PLACES) -> None:
        """`fingerprint` is of all that makes the bits of a state: weights, tokenizer, dtype, grid."""
        if min(capacity_bytes, known_places) < 0 or grid < 1:
            raise ValueError(f"capacity {capacity_bytes}, {known_places} places, grid {grid}: at least 0, 0 and 1")
        self._capacity = capacity_bytes
        self._fingerprint = fingerprint
        self.grid = grid
        """Tokens between two places."""
        self._snapshots: dict[bytes, Snapshot] = {}
        self._nbytes = 0
        self._order = GreedyDual()
        self._known = KnownPlaces(known_places)
        self._misses: Counter[MissReason] = Counter()
        self._hits = self._queried = self._saved = self._kept = self._evictions = self._too_large = 0

    def chain(self, generation: Generation) -> HashChain:
        """What the prompt is known by. Takes a while for a long one; from any thread."""
        salt = (self._fingerprint, generation.tenant, generation.cache_salt)
        return hash_chain(generation.prompt, grid=self.grid, salt=salt, turn_ends=generation.turn_ends)

    def longest(self, chain: HashChain) -> int:
        """The tokens that `lookup` would find kept, which is not counted as a question."""
        for place in range(chain.usable, 0, -1):
            if chain.digests[place - 1] in self._snapshots:
                return place * self.grid
        return 0

    def holds(self, chain: HashChain, position: int) -> bool:
        """Whether the state of the first `position` tokens is kept."""
        return chain.digest(position) in self._snapshots

    def lookup(self, chain: HashChain) -> Snapshot | None:
        """The longest kept prefix."""
        self._queried += chain.length
        position = self.longest(chain)
        if not position:
            self._misses[self._why_not(chain)] += 1
            return None
        digest = chain.digest(position)
        snapshot = self._snapshots[digest]
        self._order.use(digest, tokens=position, nbytes=snapshot.nbytes)
        self._hits += 1
        self._saved += position
        return snapshot

    def wanted(self, chain: HashChain) -> tuple[int, ...]:
        """Places, rising, at which the state of this prompt should be kept and is not; the prompt is remembered."""
        places = {chain.usable * self.grid, self._known.deepest(chain)}
        places.update(end // self.grid * self.grid for end in chain.turn_ends)
        self._known.remember(chain)
        if self._too_large or not self._capacity:  # all states of an engine are of one size
            return ()
        return tuple(place for place in sorted(places) if 0 < place < chain.length and not self.holds(chain, place))

    def put(self, chain: HashChain, snapshot: Snapshot) -> None:
        """Keep the state of a prefix. Raises ValueError where its position is no place of the prompt."""
        digest = chain.digest(snapshot.position)
        if snapshot.nbytes > self._capacity:
            self._too_large += 1
            return
        if digest not in self._snapshots:
            self._make_room(snapshot.nbytes)
            self._snapshots[digest] = snapshot
            self._nbytes += snapshot.nbytes
            self._kept += 1
            self._known.mark(digest, lost=False)
        self._order.use(digest, tokens=snapshot.position, nbytes=self._snapshots[digest].nbytes)

    def damaged(self, chain: HashChain, snapshot: Snapshot) -> None:
        """The engine has refused what `lookup` found: it goes, and what was a hit was none."""
        digest = chain.digest(snapshot.position)
        self._order.forget(digest)
        self._drop(digest)
        self._hits -= 1
        self._saved -= snapshot.position
        self._misses[MissReason.DAMAGED] += 1

    def statistics(self) -> CacheStatistics:
        """The numbers of now; from any thread."""
        return CacheStatistics(
            capacity=self._capacity,
            nbytes=self._nbytes,
            count=len(self._snapshots),
            known_places=len(self._known),
            hits=self._hits,
            misses=MappingProxyType({reason: self._misses[reason] for reason in MissReason}),
            queried_tokens=self._queried,
            saved_tokens=self._saved,
            kept=self._kept,
            evictions=self._evictions,
            too_large=self._too_large,
        )

    def _why_not(self, chain: HashChain) -> MissReason:
        if not chain.usable:
            return MissReason.SHORT
        if not self._known.deepest(chain):
            return MissReason.NEW
        if self._too_large:
            return MissReason.TOO_LARGE
        lost = any(self._known.lost(digest) for digest in chain.digests[: chain.usable])
        return MissReason.EVICTED if lost else MissReason.NOT_KEPT

    def _make_room(self, nbytes: int) -> None:
        while self._nbytes + nbytes > self._capacity:
            digest = self._order.evict()
            self._drop(digest)
            self._evictions += 1
            self._known.mark(digest, lost=True)

    def _drop(self, digest: bytes) -> None:
        self._nbytes -= self._snapshots.pop(digest).nbytes
