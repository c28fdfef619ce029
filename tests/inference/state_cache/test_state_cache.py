"""The cache by itself: what is found, what is wanted, what goes, and that two keys never share."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from inference.engine.abstract_engine import Snapshot
from inference.engine.sampling_parameters import SamplingParameters
from inference.scheduling.generation import Generation
from inference.state_cache.hash_chain import HashChain
from inference.state_cache.known_places import KnownPlaces
from inference.state_cache.state_cache import MissReason, StateCache


def cache_of(capacity: int = 1000, **changes: Any) -> StateCache:
    given: dict[str, Any] = {"fingerprint": "w", "grid": 8} | changes
    return StateCache(capacity, **given)


def ask(prompt: list[int], **changes: Any) -> Generation:
    given: dict[str, Any] = {"request_id": "r", "parameters": SamplingParameters(), "max_tokens": 1} | changes
    return Generation(prompt=tuple(prompt), **given)


def state(position: int, *, nbytes: int = 10, what: object = None) -> Snapshot:
    return Snapshot(position=position, arrays=what, nbytes=nbytes, digest="")


def seen(cache: StateCache, prompt: list[int], *, kept: bool = True, **changes: Any) -> tuple[int, ...]:
    """Let a prompt be read as the scheduler does it; the places that were wanted."""
    chain = cache.chain(ask(prompt, **changes))
    cache.lookup(chain)
    wanted = cache.wanted(chain)
    if kept:
        for position in wanted:
            cache.put(chain, state(position))
    return wanted


@pytest.mark.parametrize(
    ("length", "turn_ends", "wanted"),
    [
        (7, (), ()),
        (8, (), ()),
        (9, (), (8,)),
        (40, (), (32,)),
        (41, (), (40,)),
        (41, (7,), (40,)),
        (41, (8,), (8, 40)),
        (41, (15, 15, 23, 41), (8, 16, 40)),
        (41, (16, 17, 18), (16, 40)),
        (40, (40,), (32,)),
    ],
)
def test_the_ends_of_turns_and_of_the_prompt_are_wanted(
    length: int, turn_ends: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    assert seen(cache_of(), list(range(length)), turn_ends=turn_ends) == wanted


def test_places_where_prompts_part_are_wanted_once() -> None:
    cache = cache_of()
    assert seen(cache, list(range(100))) == (96,)
    assert seen(cache, [*range(50), *[1] * 20]) == (48, 64)
    assert seen(cache, [*range(50), *[2] * 20]) == (64,)
    assert seen(cache, [*range(20), *[3] * 20]) == (16, 32)
    assert seen(cache, [*range(50), *[1] * 20, 5, 5, 5]) == (72,)
    assert seen(cache, list(range(100))) == ()


def test_a_shift_by_part_of_a_place_still_finds_where_they_part() -> None:
    # Prompts that share 300 tokens and are of any length: the third and all later ones start at 296.
    cache = cache_of(10_000)
    common, found = list(range(300)), []
    for shift in range(64):
        chain = cache.chain(ask(common + [900 + shift] * (10 + shift)))
        snapshot = cache.lookup(chain)
        found.append(0 if snapshot is None else snapshot.position)
        for position in cache.wanted(chain):
            cache.put(chain, state(position))
    assert found == [0, 0] + [296] * 62


def test_the_longest_that_leaves_a_token_is_found() -> None:
    cache = cache_of()
    chain = cache.chain(ask(list(range(100))))
    for position in (8, 40, 96):
        cache.put(chain, state(position))
    for length in range(1, 101):
        snapshot = cache.lookup(cache.chain(ask(list(range(length)))))
        right = max((place for place in (8, 40, 96) if place < length), default=0)
        assert (0 if snapshot is None else snapshot.position) == right
        assert cache.longest(cache.chain(ask(list(range(length))))) == right


def test_each_miss_has_its_reason() -> None:
    cache = cache_of(25)  # room for two
    reasons = []
    for prompt, kept in [([1] * 7, True), ([1] * 20, False), ([1] * 20, True), ([1] * 20, True)]:
        seen(cache, prompt, kept=kept)
        reasons.append({reason: n for reason, n in cache.statistics().misses.items() if n})
    assert reasons == [
        {MissReason.SHORT: 1},
        {MissReason.SHORT: 1, MissReason.NEW: 1},
        {MissReason.SHORT: 1, MissReason.NEW: 1, MissReason.NOT_KEPT: 1},
        {MissReason.SHORT: 1, MissReason.NEW: 1, MissReason.NOT_KEPT: 1},
    ]
    assert cache.statistics().hits == 1
    for other in (2, 3, 4):
        seen(cache, [other] * 20)
    seen(cache, [1] * 20)
    assert cache.statistics().misses[MissReason.EVICTED] == 1
    assert cache.statistics().evictions == 3


def test_two_keys_never_share() -> None:
    """Each key keeps a state of its own at every place of its prompt, and finds that of no other before or after."""
    names = ["", "a", "b", "ab", "a\0", "b\0a"]
    prompts = [[1] * 40, [2] + [1] * 39, [1] * 7 + [2] + [1] * 32]  # apart from the first place on
    keys = list(itertools.product(("w", "v"), names, names, prompts))
    cache = cache_of(10**6)
    chains = [
        StateCache(0, fingerprint=fingerprint, grid=8).chain(ask(prompt, tenant=tenant, cache_salt=salt))
        for fingerprint, tenant, salt, prompt in keys
    ]
    for number, chain in enumerate(chains):
        assert cache.longest(chain) == 0
        for position in (8, 16, 24, 32):
            cache.put(chain, state(position, what=number))
    for number, chain in enumerate(chains):
        found = cache.lookup(chain)
        assert found is not None
        assert found.arrays == number


def test_a_state_is_kept_at_a_place_of_its_prompt_or_not_at_all() -> None:
    cache = cache_of()
    chain = cache.chain(ask([1] * 20))
    for position in (0, 4, 24):
        with pytest.raises(ValueError, match=f"position {position}: is no place"):
            cache.put(chain, state(position))
    assert cache.statistics().count == 0


@pytest.mark.parametrize("capacity", [0, 9])
def test_what_does_not_fit_is_not_kept_and_not_wanted_again(capacity: int) -> None:
    cache = cache_of(capacity)
    chain = cache.chain(ask([1] * 20))
    assert cache.wanted(chain) == (() if capacity == 0 else (16,))
    cache.put(chain, state(16))
    assert cache.lookup(chain) is None
    assert cache.wanted(chain) == ()
    statistics = cache.statistics()
    assert (statistics.nbytes, statistics.count, statistics.too_large, statistics.kept) == (0, 0, 1, 0)
    assert statistics.misses[MissReason.TOO_LARGE] == 1


def test_the_capacity_is_never_exceeded_and_the_numbers_agree_with_a_list() -> None:
    drawn, cache = random.Random(4), cache_of(300, known_places=50)
    kept: dict[bytes, int] = {}
    chains: list[HashChain] = [cache.chain(ask([number % 30] * (9 + number % 90))) for number in range(200)]
    for _ in range(5000):
        chain = drawn.choice(chains)
        found = cache.lookup(chain)
        assert found is None or (chain.digest(found.position) in kept and found.position < chain.length)
        for position in cache.wanted(chain):
            nbytes = drawn.choice([1, 10, 50, 290])
            cache.put(chain, state(position, nbytes=nbytes))
            kept[chain.digest(position)] = nbytes
        kept = {digest: nbytes for digest, nbytes in kept.items() if digest in cache._snapshots}
        statistics = cache.statistics()
        assert statistics.nbytes == sum(kept.values()) <= 300
        assert statistics.count == len(kept)
        assert statistics.known_places <= 50
    statistics = cache.statistics()
    assert statistics.evictions == statistics.kept - statistics.count > 100
    assert statistics.hits + sum(statistics.misses.values()) == 5000


def test_what_saves_more_a_byte_is_found_longer() -> None:
    cache = cache_of(100)
    for prompt in ([1] * 90, [2] * 10):
        seen(cache, prompt)
    for number in range(3, 12):
        seen(cache, [number] * 10)
    assert cache.longest(cache.chain(ask([1] * 90))) == 88
    assert cache.longest(cache.chain(ask([2] * 10))) == 0


def test_the_same_state_twice_is_kept_once() -> None:
    cache = cache_of()
    chain = cache.chain(ask([1] * 20))
    for _ in range(3):
        cache.put(chain, state(16))
    assert (cache.statistics().count, cache.statistics().nbytes, cache.statistics().kept) == (1, 10, 1)


def test_known_places_are_bounded_and_forget_the_late_ones_first() -> None:
    cache = cache_of()
    known = KnownPlaces(5)
    first, second = cache.chain(ask([1] * 41)), cache.chain(ask([2] * 25))
    known.remember(first)
    assert (len(known), known.deepest(first)) == (5, 40)
    known.remember(second)
    assert (len(known), known.deepest(first), known.deepest(second)) == (5, 16, 24)
    known.remember(cache.chain(ask([3] * 1000)))
    assert (len(known), known.deepest(first)) == (5, 0)


@pytest.mark.parametrize(("capacity", "changes"), [(-1, {}), (1, {"grid": 0}), (1, {"known_places": -1})])
def test_what_makes_no_cache_is_refused(capacity: int, changes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 0, 0 and 1"):
        cache_of(capacity, **changes)
