"""Digests of prefixes: equal for what is equal, and for nothing else."""

from __future__ import annotations

import hashlib
import itertools
import struct

import pytest

from inference.state_cache.hash_chain import hash_chain


def test_a_chain_is_what_its_definition_says() -> None:
    root = hashlib.blake2b(struct.pack("<QQ", 2, 2), digest_size=32)
    for part in (b"weights", b""):
        root.update(struct.pack("<Q", len(part)) + part)
    first = hashlib.blake2b(root.digest() + struct.pack("<II", 5, 70000), digest_size=32).digest()
    second = hashlib.blake2b(first + struct.pack("<II", 7, 0), digest_size=32).digest()
    assert hash_chain([5, 70000, 7, 0, 9], grid=2, salt=("weights", "")).digests == (first, second)


@pytest.mark.parametrize(
    ("length", "places", "usable"), [(0, 0, 0), (1, 0, 0), (7, 0, 0), (8, 1, 0), (9, 1, 1), (16, 2, 1), (17, 2, 2)]
)
def test_the_last_token_is_always_left_to_be_read(length: int, places: int, usable: int) -> None:
    chain = hash_chain([1] * length, grid=8, salt=())
    assert (len(chain.digests), chain.usable) == (places, usable)


def test_prompts_share_the_places_before_they_part() -> None:
    one = hash_chain(range(64), grid=8, salt=("w",))
    for part in range(64):
        other = hash_chain([*range(part), 999, *range(part + 1, 64)], grid=8, salt=("w",))
        same = [a == b for a, b in zip(one.digests, other.digests, strict=True)]
        assert same == [8 * (place + 1) <= part for place in range(8)]


def test_no_two_salts_are_one() -> None:
    parts = ["", "a", "b", "ab", "ba", "\0", "a\0", "\udc80", "é"]
    salts = [(), *((part,) for part in parts), *itertools.product(parts, repeat=2), *itertools.product(parts, repeat=3)]
    roots = {hash_chain([1, 2], grid=2, salt=salt).digests for salt in salts}
    assert len(roots) == len(salts)


def test_another_grid_is_another_chain() -> None:
    digests = [set(hash_chain([0] * 48, grid=grid, salt=()).digests) for grid in (2, 4, 8)]
    assert not digests[0] & digests[1] | digests[1] & digests[2] | digests[0] & digests[2]


@pytest.mark.parametrize("position", [0, 4, 9, 24, -8])
def test_what_is_no_place_has_no_digest(position: int) -> None:
    with pytest.raises(ValueError, match=f"position {position}: is no place of 2 on a grid of 8"):
        hash_chain([1] * 20, grid=8, salt=()).digest(position)
