"""Which checkpoints stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.checkpoint.errors import CheckpointError
from training.checkpoint.retention import Retention, kept


@pytest.mark.parametrize(
    ("steps", "keep_last", "keep_every", "stay"),
    [
        (range(10, 1201, 10), 2, 1000, {1000, 1190, 1200}),
        (range(10, 1201, 10), 1, 0, {1200}),
        ([5], 3, 0, {5}),
        ([], 3, 100, set()),
        ([0, 100, 150, 200, 250], 1, 100, {0, 100, 200, 250}),
        ([300, 100, 200, 200], 2, 0, {200, 300}),
    ],
)
def test_known_sets(steps: list[int], keep_last: int, keep_every: int, stay: set[int]) -> None:
    assert kept(steps, Retention(keep_last=keep_last, keep_every=keep_every)) == stay


@given(
    steps=st.lists(st.integers(0, 10**9), max_size=60),
    keep_last=st.integers(1, 70),
    keep_every=st.integers(0, 1000),
)
def test_the_newest_always_stays_and_nothing_is_made_up(steps: list[int], keep_last: int, keep_every: int) -> None:
    retention = Retention(keep_last=keep_last, keep_every=keep_every)
    stay = kept(steps, retention)
    assert stay <= set(steps)
    assert not steps or max(steps) in stay
    assert len(stay) >= min(keep_last, len(set(steps)))
    assert all(step in stay for step in steps if keep_every and step % keep_every == 0)
    assert kept(stay, retention) == stay, "collecting again deletes nothing more"


@given(steps=st.lists(st.integers(1, 500), min_size=1, max_size=40, unique=True), keep_last=st.integers(1, 4))
def test_step_by_step_it_ends_with_what_it_would_keep_at_once(steps: list[int], keep_last: int) -> None:
    retention = Retention(keep_last=keep_last, keep_every=100)
    there: frozenset[int] = frozenset()
    for step in sorted(steps):
        there = kept(there | {step}, retention)
    assert there == kept(steps, retention)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"keep_last": 0}, "keep_last is 0; the newest checkpoint always stays"),
        ({"keep_every": -1}, "keep_every is -1"),
    ],
)
def test_rules_that_make_no_sense(fields: dict[str, int], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        Retention(**fields)
