"""The keyed permutation: a bijection for every size, another for every key, and no pattern that is left standing."""

from __future__ import annotations

import numpy as np
import pytest

from training.data.permutation import MOST, epoch_key, permute

SIZES = (*range(1, 400), *range(400, 5001, 23), 4999, 5000, 65_535, 65_536, 65_537)


@pytest.mark.parametrize("epoch", [0, 1])
def test_is_a_bijection_for_every_size(epoch: int) -> None:
    for n in SIZES:
        found = permute(np.arange(n), n, epoch_key(7, "a", epoch))
        assert np.array_equal(np.bincount(found, minlength=n), np.ones(n)), n


@pytest.mark.parametrize("n", [2**31 + 11, 2**33 + 5, 2**40 + 1, MOST])
def test_huge_sizes_stay_inside_and_do_not_collide(n: int) -> None:
    some = np.arange(100_000, dtype=np.int64)
    positions = np.concatenate([some, some + n // 2, n - 1 - some])
    found = permute(positions, n, epoch_key(0, "a", 0))
    assert found.min() >= 0
    assert found.max() < n
    assert len(np.unique(found)) == len(positions)
    # Neighbours are torn apart: the distances are those of a uniform choice, a third of n in the mean.
    assert np.abs(np.diff(found[: len(some)].astype(float))).mean() == pytest.approx(n / 3, rel=0.02)


def test_one_position_alone_is_what_it_is_among_others() -> None:
    key = epoch_key(3, "b", 9)
    n = 10_007
    together = permute(np.arange(n), n, key)
    for position in (0, 1, 5_000, n - 1):
        assert permute(np.array([position]), n, key).tolist() == [together[position]]


def test_the_order_is_pinned_so_that_a_run_can_go_on_under_a_later_version() -> None:
    key = epoch_key(0, "a", 0)
    assert permute(np.arange(10), 10, key).tolist() == [9, 6, 5, 4, 1, 3, 8, 2, 7, 0]
    assert permute(np.array([0, 1, 2**33]), 2**33 + 5, key).tolist() == [4_213_458_915, 957_748_845, 8_051_411_894]


def test_seeds_sources_and_epochs_give_unrelated_orders() -> None:
    n = 1000
    keys = [epoch_key(seed, source, epoch) for seed in (0, 1) for source in ("a", "b") for epoch in (0, 1, 2)]
    orders = [permute(np.arange(n), n, key) for key in keys]
    for number, one in enumerate(orders):
        for other in orders[:number]:
            # Two random permutations agree in one place in the mean.
            assert (one == other).sum() < 10
            assert abs(np.corrcoef(one, other)[0, 1]) < 0.15


@pytest.mark.parametrize("n", [2, 5, 10, 97])
def test_every_item_comes_to_every_place_equally_often(n: int) -> None:
    keys = 4000
    first = np.array([permute(np.array([0, n - 1]), n, epoch_key(seed, "a", 0)) for seed in range(keys)])
    for place in range(2):
        counts = np.bincount(first[:, place], minlength=n)
        chi_square = ((counts - keys / n) ** 2 / (keys / n)).sum()
        # Five standard deviations above the mean of a chi-square distribution with n - 1 degrees of freedom.
        assert chi_square < n - 1 + 5 * np.sqrt(2 * (n - 1))


def test_is_not_affine() -> None:
    n = 1 << 12
    found = permute(np.arange(n), n, epoch_key(0, "a", 0))
    steps = np.unique(np.diff(found) % n)
    assert len(steps) > n // 3


@pytest.mark.parametrize("n", [0, MOST + 1])
def test_other_sizes_are_refused(n: int) -> None:
    with pytest.raises(ValueError, match=r"1 to 2\^62 items"):
        permute(np.arange(1), n, b"key")
