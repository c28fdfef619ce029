"""Hours that were seen in part cover as much as was seen of them, and hours without samples nothing."""

from array import array
from typing import Any

import pytest

from policies.audit.live.sampling import as_sampled
from policies.audit.record import Kind, Metric, Part, Point, Series
from tests.google_cloud.world import World
from tests.policies.audit.small_world import NOW, collected

T = 1_796_000_000.0


def series(*values: float, name: str = "d", kind: Kind = Kind.DELTA, skip: tuple[int, ...] = ()) -> Series:
    """Hourly, newest first; `skip` has the hours, counted back, that have no point."""
    ends = [T - 3600 * at for at in range(len(values) + len(skip)) if at not in skip]
    return Series(
        metric_labels={"device_name": name},
        resource_type="gce_instance",
        resource_labels={"instance_id": "17"},
        kind=kind,
        starts=array("d", [end - (3600 if kind is Kind.DELTA else 0) for end in ends]),
        ends=array("d", ends),
        values=array("d", values),
    )


def counts(*values: float, **how: Any) -> Series:
    return series(*values, kind=Kind.GAUGE, **how)


def test_whole_hours_stay_as_they_are() -> None:
    amounts = series(5, 6, 7)
    assert as_sampled([amounts], [counts(60, 61, 60)]) == (amounts,)


def test_an_hour_of_few_samples_covers_few_minutes() -> None:
    (found,) = as_sampled([series(5, 6, 7)], [counts(60, 2, 59)])
    assert list(found.points()) == [
        Point(T - 3600, T, 5),
        Point(T - 3600 - 120, T - 3600, 6),
        Point(T - 7200 - 59 * 60, T - 7200, 7),
    ]


def test_an_hour_without_a_sample_has_no_point() -> None:
    (found,) = as_sampled([series(5, 6, 7)], [counts(60, 60, skip=(1,))])
    assert list(found.values) == [5, 7]
    (found,) = as_sampled([series(5, 6)], [counts(60, 0)])
    assert list(found.values) == [5]


def test_what_was_not_counted_was_not_seen() -> None:
    (found,) = as_sampled([series(5, 6)], [])
    assert len(found) == 0
    (found,) = as_sampled([series(5, 6)], [counts(60, 60, name="other")])
    assert len(found) == 0


def test_no_points_stay_none() -> None:
    (found,) = as_sampled([series()], [counts()])
    assert len(found) == 0


@pytest.mark.parametrize("every", [1, 2])
def test_an_agent_that_reports_two_minutes_an_hour_covers_two_minutes(every: int) -> None:
    world = World(now=NOW)
    world.add(Part.DISKS, name="d", zone="us-central1-b")
    hours = range(0, 24 * 8, every)
    gaps = [[f"now-{60 * at + 63}m", f"now-{60 * at + 5}m"] for at in hours]
    world.observe("traffic", instance_id="7", zone="us-central1-b", device="d", read={"level": 10, "missing": gaps})
    (found,) = collected(world).record.series(Metric.READ_BYTES)
    lengths = {round(point.end - point.start) for point in found.points()}
    assert lengths == ({120} if every == 1 else {120, 3600})
    assert {point.value / (point.end - point.start) for point in found.points()} == {10 * 2**20}
