"""Rates from points, and the sum over readers: by hand, and against a count of every single second."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.audit.record import Kind, Series
from policies.audit.telemetry.series import Strand, highest
from policies.audit.telemetry.spans import MICRO
from policies.audit.volumes.flow import Flow, at_once, flow
from tests.policies.audit.points import HOUR, MIB, MINUTE, Points, at_rate, rates, series

ACTIVE = Fraction(1)


def seconds(*spans: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple((start * MICRO, end * MICRO) for start, end in spans)


def strand(*found: Series, due: tuple[int, int] | None = None, window: tuple[int, int] = (0, 24 * HOUR)) -> Strand:
    return Strand(reader="vm", series=found, window=seconds(window)[0], due=seconds(due if due is not None else window))


def of(points: Points, kind: Kind = Kind.DELTA, window: tuple[int, int] = (0, 24 * HOUR)) -> Flow:
    return flow([strand(series(points, kind=kind), window=window)], ACTIVE)


def test_a_delta_is_divided_by_its_own_length() -> None:
    minutes, hours = of(at_rate(100, 0, 24 * HOUR, MINUTE)), of(at_rate(100, 0, 24 * HOUR, HOUR))
    assert (minutes.mean, minutes.p99, minutes.peak, minutes.coverage) == (100, 100, 100, 1)
    assert (hours.mean, hours.p99, hours.peak, hours.coverage) == (100, 100, 100, 1)
    assert (minutes.resolution, hours.resolution) == (datetime.timedelta(minutes=1), datetime.timedelta(hours=1))


def test_a_gauge_is_a_rate_and_covers_the_time_before_it() -> None:
    found = of([(at * HOUR, at * HOUR, 7 * MIB) for at in range(1, 25)], Kind.GAUGE)
    assert (found.mean, found.peak, found.coverage) == (7, 7, 1)


def test_a_gap_between_gauges_is_no_long_point() -> None:
    found = of([(at * HOUR, at * HOUR, 7 * MIB) for at in range(1, 25) if at != 10], Kind.GAUGE)
    assert (found.mean, found.coverage) == (7, Fraction(23, 24))
    apart = of([(HOUR, HOUR, 1), (24 * HOUR, 24 * HOUR, 1)], Kind.GAUGE)
    assert apart.coverage == Fraction(2, 24)


def test_percentiles_are_of_time() -> None:
    """Of a hundred minutes one lies above the 99th percentile; an hour point counts as sixty minutes."""
    window = (0, 100 * MINUTE)
    found = of(rates([*range(1, 101)], step=MINUTE), window=window)
    assert (found.mean, found.p99, found.peak, found.active) == (Fraction(101, 2), 99, 100, 100 * MINUTE * MICRO)
    mixed = of([(0, HOUR, 5 * MIB * HOUR), *rates([9] * 40, HOUR, MINUTE)], window=window)
    assert (mixed.mean, mixed.p99, mixed.resolution) == (Fraction(5 * 60 + 9 * 40, 100), 9, datetime.timedelta(hours=1))


@pytest.mark.parametrize("gap", [1, 7, 23])
def test_a_gap_does_not_change_the_mean_of_the_seen_time(gap: int) -> None:
    whole = rates([3] * 12 + [9] * 12)
    found = of([point for at, point in enumerate(whole) if at not in (gap % 12, 12 + gap % 12)])
    assert (found.mean, found.coverage) == (6, Fraction(22, 24))
    assert found.unseen == 2 * HOUR * MICRO


def test_order_and_repetition_of_points_do_not_matter() -> None:
    points = rates([float(at % 5) for at in range(24)])
    shuffled = [*points, *points[3:9]]
    random.Random(4).shuffle(shuffled)
    assert of(shuffled) == of(points)
    half = flow([strand(series(points[:15]), series(points[10:]))], ACTIVE)
    assert half == of(points)


def test_minutes_win_where_they_cover_an_hour() -> None:
    hours, minutes = rates([10] * 24), rates([20] * 60, 5 * HOUR, MINUTE)
    for found in (of([*hours, *minutes]), flow([strand(series(minutes), series(hours))], ACTIVE)):
        assert found.mean == Fraction(23 * 10 + 20, 24)
        assert (found.peak, found.coverage) == (20, 1)


def test_hours_that_minutes_replace_are_not_looked_at() -> None:
    found = flow([strand(series(at_rate(8, 0, 24 * HOUR)), series(at_rate(2, 0, 24 * HOUR, MINUTE)))], ACTIVE)
    assert (found.mean, found.resolution) == (2, datetime.timedelta(minutes=1))


def test_points_are_cut_to_the_window() -> None:
    """Half of the first hour lies before the window: it counts half, at its own rate."""
    found = of(rates([10, 20, 20, 1000]), window=(HOUR // 2, 3 * HOUR))
    assert (found.mean, found.coverage, found.peak) == (Fraction(10 + 40 + 40, 5), 1, 20)


def test_four_readers_of_100_are_400() -> None:
    """A shared volume: 400 of 2,400 MiB/s are 16.67 %, not the 4.17 % of one reader."""
    readers = [strand(series(at_rate(100, 0, HOUR, MINUTE)), window=(0, HOUR)) for _ in range(4)]
    found = flow(readers, ACTIVE)
    assert found.mean is not None
    assert (found.mean, found.p99, found.peak) == (400, 400, 400)
    assert round(100 * found.mean / 2400, 2) == Fraction("16.67")


def test_a_sum_with_a_part_missing_is_no_sum() -> None:
    """While one of two readers is not seen, the other one alone says nothing of both."""
    one, other = at_rate(100, 0, 24 * HOUR), at_rate(300, 0, 22 * HOUR)
    found = flow([strand(series(one)), strand(series(other))], ACTIVE)
    assert (found.mean, found.peak, found.coverage) == (400, 400, Fraction(22, 24))


def test_a_reader_that_was_not_due_is_no_gap() -> None:
    one, other = at_rate(100, 0, 24 * HOUR), at_rate(300, 12 * HOUR, 24 * HOUR)
    late = strand(series(other), due=(12 * HOUR, 24 * HOUR))
    found = flow([strand(series(one)), late], ACTIVE)
    assert (found.mean, found.peak, found.coverage) == (250, 400, 1)


def test_the_least_seen_reader_decides_the_coverage() -> None:
    """Nineteen readers that are seen do not make up for one that is not."""
    seen = [strand(series(at_rate(0, 0, 24 * HOUR))) for _ in range(19)]
    blind = Strand(reader="blind", series=(), window=seconds((0, 24 * HOUR))[0], due=seconds((0, 24 * HOUR)))
    found = flow([*seen, blind], ACTIVE)
    assert (found.coverage, found.blind, found.mean) == (0, "blind", None)


def test_a_reader_that_has_just_begun_is_not_missed_among_others() -> None:
    """Its ten minutes are no part of the figures, and blind nobody to the rest of the day."""
    fresh = strand(due=(24 * HOUR - 600, 24 * HOUR))
    found = flow([strand(series(at_rate(5, 0, 24 * HOUR))), fresh], ACTIVE)
    assert (found.coverage, found.mean, found.unseen) == (1, 5, 600 * MICRO)
    assert flow([fresh], ACTIVE).coverage == 0


def test_without_points_nothing_is_known() -> None:
    found = flow([strand()], ACTIVE)
    assert (found.coverage, found.mean, found.p99, found.peak, found.resolution) == (0, None, None, None, None)
    assert flow([], ACTIVE) == Flow()


@pytest.mark.parametrize("value", [-1.0, 2.0**63, 1e308])
def test_values_that_no_counter_has_count_as_not_seen(value: float) -> None:
    found = of([*rates([4] * 23), (23 * HOUR, 24 * HOUR, value)])
    assert (found.mean, found.peak, found.coverage) == (4, 4, Fraction(23, 24))


@pytest.mark.parametrize("point", [(5.0, 5.0, 1.0), (9.0, 5.0, 1.0)])
def test_points_without_length_count_as_not_seen(point: tuple[float, float, float]) -> None:
    assert of([*rates([4] * 24), point]) == of(rates([4] * 24))
    assert of([point]).mean is None


def test_counters_since_a_start_are_not_read() -> None:
    assert of(rates([4] * 24), Kind.CUMULATIVE).mean is None


def test_activity_is_of_the_sum_and_by_blocks_of_six_hours() -> None:
    """Two readers of half a MiB/s are one; hours 5 and 6 lie in two blocks."""
    quiet = [0.0] * 5 + [0.5, 0.5] + [0.0] * 17
    found = flow([strand(series(rates(quiet))), strand(series(rates(quiet)))], ACTIVE)
    assert (found.active, found.blocks) == (2 * HOUR * MICRO, 2)
    day = of([(0, 24 * HOUR, 5.0 * MIB * 24 * HOUR)])
    assert (day.active, day.blocks) == (24 * HOUR * MICRO, 4)


def test_the_peak_of_a_gauge_is_within_the_window() -> None:
    found = [series([(at * HOUR, at * HOUR, 10.0 * at) for at in range(1, 9)], kind=Kind.GAUGE)]
    assert highest(found, seconds((0, 5 * HOUR))[0]) == 50
    assert highest(found, seconds((20 * HOUR, 21 * HOUR))[0]) is None
    assert highest([], (0, 1)) is None


SECONDS = 240
PIECE = st.tuples(st.integers(0, SECONDS), st.sampled_from([10, 60, 120]), st.integers(0, 3)).map(
    lambda made: (float(made[0]), float(made[0] + made[1]), float(made[2] * made[1] * MIB))
)
STRAND = st.tuples(
    st.lists(st.lists(PIECE, max_size=6), max_size=3), st.tuples(st.integers(0, SECONDS), st.integers(0, SECONDS))
)


def counted(strands: Sequence[tuple[list[list[tuple[float, float, float]]], tuple[int, int]]]) -> tuple[object, ...]:
    """The same figures out of every single second of the window."""
    sums: list[Fraction] = []
    for second in range(SECONDS):
        total, seen, blind = Fraction(), 0, 0
        for found, (opens, closes) in strands:
            covering = [point for each in found for point in each if point[0] <= second < point[1]]
            seen += bool(covering)
            blind += opens <= second < closes and not covering
            if covering:
                start, end, value = min(covering, key=lambda point: (point[1] - point[0], -point[2]))
                total += Fraction(value) / Fraction(end - start) / MIB
        if seen and not blind:
            sums.append(total)
    if not sums:
        return None, None, None, 0
    ranked = sorted(sums)
    p99 = ranked[math.ceil(Fraction(99, 100) * len(ranked)) - 1]
    return Fraction(sum(sums), len(sums)), p99, max(sums), sum(rate >= 1 for rate in sums) * MICRO


@given(st.lists(STRAND, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_every_second_counts_once(
    strands: list[tuple[list[list[tuple[float, float, float]]], tuple[int, int]]], chance: random.Random
) -> None:
    made = [strand(*map(series, found), due=due, window=(0, SECONDS)) for found, due in strands]
    found = flow(made, ACTIVE)
    assert (found.mean, found.p99, found.peak, found.active) == counted(strands)
    for one in strands:
        chance.shuffle(one[0])
        for points in one[0]:
            chance.shuffle(points)
    chance.shuffle(strands)
    again = flow([strand(*map(series, each), due=due, window=(0, SECONDS)) for each, due in strands], ACTIVE)
    assert again == found


@pytest.mark.parametrize(
    ("spans", "most"),
    [
        ((), 0),
        (((0, 0),), 0),
        (((0, 9),), 1),
        (((0, 9), (0, 9), (0, 9)), 3),
        (((0, 9), (9, 18)), 1),
        (((0, 9), (8, 18)), 1),
        (((0, 9), (7, 18)), 2),
        (((0, 9), (8, 18), (17, 24), (0, 24)), 2),
        (((0, 12), (3, 9), (4, 8)), 3),
        (((0, 12), (3, 9), (4, 5)), 2),
        (((0, 24), (0, 6), (6, 12), (12, 18)), 2),
    ],
)
def test_how_many_read_at_once(spans: Sequence[tuple[int, int]], most: int) -> None:
    """In hours, with points of an hour: what overlaps for one of them may be one reader after another."""
    assert at_once(strand(series(at_rate(1, start * HOUR, end * HOUR))) for start, end in spans) == most
