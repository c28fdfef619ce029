"""What goes first when room is needed."""

from __future__ import annotations

import random

import pytest

from inference.state_cache.eviction import GreedyDual, worth


@pytest.mark.parametrize(
    ("inflation", "tokens", "nbytes", "value"), [(0.0, 512, 1024, 0.5), (2.0, 512, 1024, 2.5), (1.0, 8, 0, 9.0)]
)
def test_worth_is_tokens_a_byte_over_what_went_last(inflation: float, tokens: int, nbytes: int, value: float) -> None:
    assert worth(inflation, tokens=tokens, nbytes=nbytes) == value


def test_of_equals_the_one_used_longest_ago_goes() -> None:
    order = GreedyDual()
    for key in (b"a", b"b", b"c"):
        order.use(key, tokens=8, nbytes=4)
    order.use(b"a", tokens=8, nbytes=4)
    assert [order.evict() for _ in range(3)] == [b"b", b"c", b"a"]


def test_a_state_that_saves_more_a_byte_lies_longer() -> None:
    order = GreedyDual()
    order.use(b"long", tokens=32, nbytes=1)
    order.use(b"large", tokens=32, nbytes=16)
    went = []
    for number in range(20):
        order.use(b"%d" % number, tokens=8, nbytes=1)
        went.append(order.evict())
    # They are worth 2, then 8, 2 + 8, 8 + 8, 10 + 8, 16 + 8, 18 + 8; then 24 + 8, which is younger than 32.
    assert went[:8] == [b"large", b"0", b"1", b"2", b"3", b"4", b"5", b"long"]


def test_what_is_used_stays() -> None:
    order = GreedyDual()
    order.use(b"used", tokens=8, nbytes=1)
    for number in range(200):
        order.use(b"%d" % number, tokens=8, nbytes=1)
        order.use(b"used", tokens=8, nbytes=1)
        if number >= 3:
            assert order.evict() != b"used"


def test_what_is_forgotten_does_not_go() -> None:
    order = GreedyDual()
    order.use(b"a", tokens=1, nbytes=1)
    order.use(b"b", tokens=2, nbytes=1)
    order.forget(b"a")
    assert order.evict() == b"b"
    with pytest.raises(IndexError):
        order.evict()


def test_it_is_the_least_of_all_however_often_they_are_used() -> None:
    drawn, order = random.Random(3), GreedyDual()
    plain: dict[bytes, tuple[float, int]] = {}
    inflation, serial = 0.0, 0
    for _ in range(20_000):
        if plain and drawn.random() < 0.2:
            least = min(plain, key=plain.__getitem__)
            assert order.evict() == least
            inflation = plain.pop(least)[0]
            assert order.inflation == inflation
        else:
            key, tokens, nbytes = b"%d" % drawn.randint(0, 50), drawn.randint(1, 100), drawn.randint(1, 9)
            order.use(key, tokens=tokens, nbytes=nbytes)
            serial += 1
            plain[key] = (inflation + tokens / nbytes, serial)
    assert len(order._heap) <= 2 * len(plain) + 65
