"""No time series, however odd, breaks an auditor or makes a number that is none."""

from __future__ import annotations

from array import array

from hypothesis import given, settings
from hypothesis import strategies as st

from policies.audit.model import AuditFinding, VerdictKind
from policies.audit.record import Kind, Metric, Series
from tests.policies.audit.auditors.test_any_item import AUDITORS, GOOD
from tests.policies.audit.worlds import END, context, instance, told

LABELS = {
    "worker_id": ["4611686018427387904", "pod-w-0", "head", "-0", ""],
    "location": ["us-central1-b", "US-CENTRAL1-B", ""],
    "instance_id": [str(instance()["id"]), "?"],
    "bucket_name": ["b", ""],
    "type": ["live-object", "soft-deleted-object", "multipart", "noncurrent", "new-kind"],
    "storage_class": ["STANDARD", "NEARLINE", "ICE", ""],
    "gateway_name": ["n"],
    "cache_hit": ["true", "false", "maybe"],
}
VALUES = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, 1.0, 2.0, 5.0e12, -1.0, 1.0e308])
TIMES = st.floats(min_value=END.timestamp() - 9 * 86_400, max_value=END.timestamp() + 86_400)


@st.composite
def series(draw: st.DrawFn) -> Series:
    """Points in any order, backwards, twice, before and after the window."""
    points = draw(st.lists(st.tuples(TIMES, TIMES, VALUES), max_size=6))
    starts, ends, values = (array("d", [point[at] for point in points]) for at in range(3))
    labels = {key: draw(st.sampled_from(choices)) for key, choices in LABELS.items() if draw(st.booleans())}
    return Series(
        metric_labels=labels,
        resource_type="any",
        resource_labels=labels,
        kind=draw(st.sampled_from(Kind)),
        whole=draw(st.booleans()),
        starts=starts,
        ends=ends,
        values=values,
    )


@settings(max_examples=150)
@given(found=st.lists(series(), max_size=4))
def test_no_series_breaks_an_auditor(found: list[Series]) -> None:
    seen = context({part: [item] for part, item in GOOD.items()}, dict.fromkeys(Metric, found))
    for name in AUDITORS:
        for each in told(name, seen):
            if isinstance(each, AuditFinding):
                assert each.monthly is None or each.monthly.monthly.is_finite()
                continue
            assert each.waste is None or each.waste.per_month >= 0
            assert each.wasted_so_far is None or (each.wasted_so_far.is_finite() and each.wasted_so_far >= 0)
            assert "nan" not in each.message.lower().split()


@settings(max_examples=100)
@given(points=st.lists(st.tuples(TIMES, st.just(0.0)), max_size=5))
def test_a_handful_of_zeros_is_never_a_week_of_idleness(points: list[tuple[float, float]]) -> None:
    """Whatever a slice is called idle for, it is for at most the time that its points cover."""
    ends = array("d", [end for end, _ in points])
    quiet = Series(
        metric_labels={},
        resource_type="any",
        resource_labels={"worker_id": "pod-w-0", "location": "us-central1-b"},
        kind=Kind.DELTA,
        starts=array("d", [end - 60 for end in ends]),
        ends=ends,
        values=array("d", [0.0] * len(ends)),
    )
    seen = context({part: [item] for part, item in GOOD.items()}, {Metric.DUTY_CYCLE: [quiet]})
    kinds = {each.kind for each in told("nodes", seen) if not isinstance(each, AuditFinding)}
    # Its heartbeat is two weeks old, so it is idle by that alone: without one, five minutes of zeros prove nothing.
    assert kinds == {VerdictKind.IDLE_SLICE}
    without = context(
        {part: [item] for part, item in GOOD.items() if part.value != "storage.heartbeats"},
        {Metric.DUTY_CYCLE: [quiet]},
    )
    kinds = {each.kind for each in told("nodes", without) if not isinstance(each, AuditFinding)}
    assert kinds == {VerdictKind.UNKNOWN_TELEMETRY}
