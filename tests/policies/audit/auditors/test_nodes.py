"""Nodes: what a state means for money, and when a READY node does nothing."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from policies.audit.context import Context
from policies.audit.model import RemedyKind, Since, VerdictKind
from policies.audit.record import Item, Metric, Missing, Part, Series
from policies.money import ZERO, Amount
from tests.policies.audit.worlds import END, NOW, context, duty, node, told, verdict

ID = "4611686018427387904"
HOURLY = Amount.by_hour(Decimal("4.80"))
"""Eight spot chips at 0.60."""
DAY, HOUR, MINUTE = datetime.timedelta(days=1), datetime.timedelta(hours=1), datetime.timedelta(minutes=1)


def world(item: Item, *series: Series, beats: tuple[Item, ...] = (), **more: Any) -> Context:
    return context({Part.NODES: [item], Part.HEARTBEATS: beats}, {Metric.DUTY_CYCLE: series}, **more)


def ago(span: datetime.timedelta) -> str:
    return (NOW - span).isoformat()


def beat(run: str, age: datetime.timedelta, bucket: str = "reef-dev-checkpoints") -> Item:
    return {"bucket": bucket, "name": f"{run}/heartbeat.json", "updated": ago(age), "content": {"run": run, "step": 7}}


def test_a_preempted_node_costs_nothing_and_is_deleted_and_made_again() -> None:
    found = verdict("nodes", world({"name": ".../nodes/pod", "state": "PREEMPTED"}))
    assert (found.kind, found.waste, found.name) == (VerdictKind.PREEMPTED, ZERO, "pod")
    assert found.message == "preempted: its chips cost nothing from then on; delete and recreate it"
    assert found.remedy is not None
    assert (found.remedy.kind, found.remedy.monthly_saving) == (RemedyKind.DELETE_NODE, ZERO)


@pytest.mark.parametrize("state", ["HIBERNATING", "UNKNOWN", "STATE_UNSPECIFIED", "", None, 7, ["READY"], "ready"])
def test_a_state_of_the_future_is_unknown_and_never_idle(state: Any) -> None:
    found = verdict("nodes", world(node(state=state), duty(ID, *[0.0] * 168)))
    assert found.kind is VerdictKind.UNKNOWN_STATE
    assert (found.waste, found.remedy) == (None, None)


@pytest.mark.parametrize(
    "state", ["CREATING", "STARTING", "RESTARTING", "REPAIRING", "REIMAGING", "DELETING", "HIDDEN"]
)
def test_a_node_on_its_way_bills_no_chips(state: str) -> None:
    found = verdict("nodes", world(node(state=state)))
    assert (found.kind, found.waste) == (VerdictKind.WAITING, ZERO)
    assert found.message == f"{state}: no chips bill until it is READY"


@pytest.mark.parametrize("state", ["STOPPED", "TERMINATED"])
def test_a_stopped_node_keeps_its_disks(state: str) -> None:
    found = verdict("nodes", world(node(state=state, dataDisks=[{"sourceDisk": "d"}])))
    assert (found.kind, found.waste, found.remedy) == (VerdictKind.IDLE_STOPPED_HOST, None, None)
    assert found.message.endswith("bills on; 1 data disk of it may bill on")


def test_a_node_that_never_worked_in_the_window_is_idle_at_least_since_its_start() -> None:
    found = verdict("nodes", world(node(), duty(ID, *[0.5] * 168, chip=0), duty(ID, *[1.5] * 168, chip=1)))
    assert (found.kind, found.waste) == (VerdictKind.IDLE_SLICE, HOURLY)
    assert (found.since, found.since_confidence) == (END - 7 * DAY, Since.AT_LEAST)
    # 168 hours and the five minutes between the window and the record.
    assert found.wasted_so_far == Decimal("4.80") * 168 + Decimal("0.40")
    assert found.message == "READY, duty cycle at most 1.5 % since 11-08 09:55Z, 100 % seen"
    assert found.remedy is not None
    assert (found.remedy.kind, found.remedy.monthly_saving) == (RemedyKind.DELETE_NODE, HOURLY)


@pytest.mark.parametrize(
    ("last_hours", "kind"),
    [
        ((0.0, 0.0), VerdictKind.IDLE_SLICE),
        ((0.0, 2.0), VerdictKind.IDLE_SLICE),
        ((0.0, 2.1), VerdictKind.IN_USE),
        ((95.0, 0.0), VerdictKind.IDLE_SLICE),
        ((0.0, 95.0), VerdictKind.IN_USE),
    ],
)
def test_two_percent_for_an_hour_decide(last_hours: tuple[float, float], kind: VerdictKind) -> None:
    found = verdict("nodes", world(node(), duty(ID, *[80.0] * 166, *last_hours)))
    assert found.kind is kind


def test_it_is_idle_since_its_last_work() -> None:
    found = verdict("nodes", world(node(), duty(ID, *[80.0] * 165, 0.1, 0.1, 0.1)))
    assert (found.since, found.since_confidence) == (END - 3 * HOUR, Since.ESTIMATED)
    assert found.wasted_so_far == Decimal("4.80") * 3 + Decimal("0.40")


@pytest.mark.parametrize(
    ("series", "said"),
    [
        ((), "no duty cycle in the window"),
        ((duty("other", 0.0, 0.0),), "no duty cycle in the window"),
        ((duty(ID, *[0.0] * 53, step=60),), "88 % of its duty cycles present in the last 60 minutes"),
        (
            (duty(ID, *[0.0] * 60, step=60, end=END - 2 * HOUR),),
            "0 % of its duty cycles present in the last 60 minutes",
        ),
    ],
)
def test_without_telemetry_nothing_is_idle(series: tuple[Series, ...], said: str) -> None:
    found = verdict("nodes", world(node(), *series))
    assert (found.kind, found.waste, found.remedy) == (VerdictKind.UNKNOWN_TELEMETRY, None, None)
    assert found.message == f"READY, {said}"


def test_nine_tenths_of_the_points_are_enough() -> None:
    found = verdict("nodes", world(node(), duty(ID, *[0.0] * 54, step=60)))
    assert (found.kind, found.since) == (VerdictKind.IDLE_SLICE, END - HOUR)


def test_every_worker_of_a_slice_must_be_seen_and_one_at_work_is_enough() -> None:
    large = node(accelerator="v6e-16", acceleratorConfig={"type": "V6E", "topology": "4x4"})
    quiet = [duty(f"pod-w-{index}", *[0.0] * 168) for index in range(4)]
    assert verdict("nodes", world(large, *quiet)).kind is VerdictKind.IDLE_SLICE
    three = verdict("nodes", world(large, *quiet[:3]))
    assert three.kind is VerdictKind.UNKNOWN_TELEMETRY
    assert three.message == "READY, duty cycles of 3 of 4 workers only"
    working = duty("pod-w-3", *[0.0] * 167, 70.0)
    assert verdict("nodes", world(large, *quiet[:3], working)).kind is VerdictKind.IN_USE


@pytest.mark.parametrize("worker", [ID, "pod", f"{ID}-0", "pod-w-0", "pod-0"])
def test_a_worker_goes_by_id_or_name(worker: str) -> None:
    assert verdict("nodes", world(node(), duty(worker, *[0.0] * 168))).kind is VerdictKind.IDLE_SLICE


def test_a_node_of_a_similar_name_is_another_one() -> None:
    assert verdict("nodes", world(node(), duty("pod-b-0", 0.0, 0.0))).kind is VerdictKind.UNKNOWN_TELEMETRY


@pytest.mark.parametrize(("age", "kind"), [(59 * MINUTE, VerdictKind.TOO_NEW), (61 * MINUTE, VerdictKind.IDLE_SLICE)])
def test_a_young_node_is_not_judged(age: datetime.timedelta, kind: VerdictKind) -> None:
    found = verdict("nodes", world(node(createTime=ago(age)), duty(ID, *[0.0] * 60, step=60)))
    assert found.kind is kind


def test_points_of_an_earlier_node_of_the_same_name_say_nothing() -> None:
    item = node(createTime=ago(90 * MINUTE))
    found = verdict("nodes", world(item, duty("pod", *[90.0] * 60, *[0.0] * 85, step=60)))
    assert (found.kind, found.since) == (VerdictKind.IDLE_SLICE, NOW - 90 * MINUTE)


@pytest.mark.parametrize(
    ("age", "kind"),
    [(29 * MINUTE, VerdictKind.IN_USE), (31 * MINUTE, VerdictKind.IDLE_SLICE), (9 * DAY, VerdictKind.IDLE_SLICE)],
)
def test_a_run_without_heartbeat_is_idle_whatever_its_chips_do(age: datetime.timedelta, kind: VerdictKind) -> None:
    item = node(labels={"run": "kite"})
    found = verdict("nodes", world(item, duty(ID, *[99.0] * 168), beats=(beat("kite", age), beat("other", MINUTE))))
    assert found.kind is kind
    if kind is VerdictKind.IDLE_SLICE:
        assert found.since == NOW - age
        assert found.since_confidence is Since.ESTIMATED
        assert found.message.startswith("READY, last heartbeat of run kite 11-")


def test_a_heartbeat_stands_in_for_telemetry_that_is_not_there() -> None:
    found = verdict("nodes", world(node(labels={"run": "kite"}), beats=(beat("kite", 2 * MINUTE),)))
    assert found.kind is VerdictKind.IN_USE
    assert found.message == "run kite, last heartbeat 11-15 09:58Z; no duty cycle in the window"


@pytest.mark.parametrize(
    ("percent", "kind"), [(0.0, VerdictKind.IDLE_SLICE), (90.0, VerdictKind.IN_USE), (None, VerdictKind.IDLE_SLICE)]
)
def test_the_heartbeats_of_a_stack_speak_where_no_chip_works(percent: float | None, kind: VerdictKind) -> None:
    item = node(labels={"env": "dev", "role": "train"})
    series = () if percent is None else (duty(ID, *[percent] * 168),)
    found = verdict("nodes", world(item, *series, beats=(beat("kite", 3 * HOUR), beat("kite", 9 * DAY))))
    assert found.kind is kind
    if kind is VerdictKind.IDLE_SLICE:
        assert found.since == NOW - 3 * HOUR


def test_an_old_heartbeat_says_its_run_by_where_it_lies() -> None:
    item = {"bucket": "reef-dev-checkpoints", "name": "runs/Kite/heartbeat.json", "updated": ago(9 * DAY)}
    found = verdict("nodes", world(node(labels={"run": "kite"}), beats=(item,)))
    assert (found.kind, found.message) == (VerdictKind.IDLE_SLICE, "READY, last heartbeat of run kite 11-06 10:00Z")


@pytest.mark.parametrize(
    ("fields", "age"),
    [
        ({"content": {"run": "kite", "time": (NOW - 5 * HOUR).timestamp()}}, 5 * HOUR),
        ({"content": {"run": "kite", "time": ago(5 * HOUR)}}, 5 * HOUR),
        ({"content": {"run": "kite", "time": ago(MINUTE)}, "updated": ago(5 * HOUR)}, 5 * HOUR),
        ({"content": {"run": "kite", "time": "yesterday"}}, None),
        ({"content": {"run": "kite", "time": 1e300}}, None),
        ({"content": {"run": "kite", "time": True}}, None),
        ({"content": "kite", "updated": ago(5 * HOUR)}, None),
    ],
)
def test_a_heartbeat_has_the_time_of_its_object_else_the_one_in_it(
    fields: Item, age: datetime.timedelta | None
) -> None:
    item = {"bucket": "reef-dev-checkpoints", "name": "heartbeat.json"} | fields
    found = verdict("nodes", world(node(labels={"run": "kite"}), beats=(item,)))
    assert found.since == (None if age is None else NOW - age)
    assert found.kind is (VerdictKind.UNKNOWN_TELEMETRY if age is None else VerdictKind.IDLE_SLICE)


@pytest.mark.parametrize("labels", [{}, {"env": "prod"}, {"env": "dev", "role": "serve"}])
def test_heartbeats_of_others_say_nothing(labels: dict[str, str]) -> None:
    found = verdict("nodes", world(node(labels=labels), beats=(beat("kite", 3 * HOUR),)))
    assert found.kind is VerdictKind.UNKNOWN_TELEMETRY


def test_a_stale_heartbeat_of_before_the_node_counts_from_the_node() -> None:
    item = node(labels={"run": "kite"}, createTime=ago(2 * HOUR))
    found = verdict("nodes", world(item, beats=(beat("kite", 9 * DAY),)))
    assert (found.kind, found.since) == (VerdictKind.IDLE_SLICE, NOW - 2 * HOUR)
    young = node(labels={"run": "kite"}, createTime=ago(20 * MINUTE))
    assert verdict("nodes", world(young, beats=(beat("kite", 9 * DAY),))).kind is VerdictKind.TOO_NEW


@pytest.mark.parametrize(("percent", "kept"), [(0.0, True), (None, True), (97.0, False)])
def test_a_silent_run_whose_chips_work_is_told_and_not_ended(percent: float | None, kept: bool) -> None:
    """It hangs, or its run has long finished and somebody works there without heartbeats."""
    series = () if percent is None else (duty(ID, *[percent] * 168),)
    found = verdict("nodes", world(node(labels={"run": "kite"}), *series, beats=(beat("kite", 3 * HOUR),)))
    assert (found.kind, found.waste) == (VerdictKind.IDLE_SLICE, HOURLY)
    assert (found.remedy is not None) is kept
    doubt = ", though a chip is up to 97 % busy: it hangs, or does something else; look at it"
    assert found.message == "READY, last heartbeat of run kite 11-15 07:00Z" + ("" if kept else doubt)


@pytest.mark.parametrize(("age", "kind"), [(31 * MINUTE, VerdictKind.TOO_NEW), (61 * MINUTE, VerdictKind.IDLE_SLICE)])
def test_a_run_that_was_preempted_has_an_hour_to_come_back(age: datetime.timedelta, kind: VerdictKind) -> None:
    item = node(labels={"run": "kite"}, createTime=ago(age))
    assert verdict("nodes", world(item, beats=(beat("kite", 5 * HOUR),))).kind is kind


def test_heartbeats_of_before_a_slice_say_nothing_of_it_but_of_their_run() -> None:
    """The last run of the stack ended weeks ago; this slice does something else, without heartbeats and telemetry."""
    item = node(labels={"env": "dev"}, createTime=ago(5 * HOUR))
    found = verdict("nodes", world(item, beats=(beat("kite", 6 * HOUR),)))
    assert (found.kind, found.remedy) == (VerdictKind.UNKNOWN_TELEMETRY, None)
    assert verdict("nodes", world(item, beats=(beat("kite", 4 * HOUR),))).kind is VerdictKind.IDLE_SLICE


@pytest.mark.parametrize(
    ("bucket", "labels", "idle"),
    [
        ("reef-dev-checkpoints", {}, True),
        ("reef-dev-eu-checkpoints", {}, False),
        ("reef-de-checkpoints", {}, False),
        ("anything", {"env": "dev"}, True),
        ("reef-dev-checkpoints", {"env": "lab"}, False),
        ("elsewhere-dev-checkpoints", {}, False),
    ],
)
def test_a_stack_of_a_similar_name_is_another_one(bucket: str, labels: dict[str, str], idle: bool) -> None:
    parts = {
        Part.NODES: [node(labels={"env": "dev"})],
        Part.HEARTBEATS: [beat("kite", 3 * HOUR, bucket)],
        Part.BUCKETS: [{"name": bucket, "labels": labels}],
    }
    found = verdict("nodes", context(parts, {Metric.DUTY_CYCLE: ()}))
    assert found.kind is (VerdictKind.IDLE_SLICE if idle else VerdictKind.UNKNOWN_TELEMETRY)


def test_of_two_runs_of_one_name_that_of_the_stack_counts() -> None:
    item = node(labels={"run": "kite", "env": "dev"})
    ours, theirs = beat("kite", 3 * HOUR), beat("kite", MINUTE, "reef-prod-checkpoints")
    assert verdict("nodes", world(item, beats=(ours, theirs))).kind is VerdictKind.IDLE_SLICE
    assert verdict("nodes", world(item, beats=(theirs,))).kind is VerdictKind.IN_USE


@pytest.mark.parametrize(
    ("hours", "kind"),
    [
        ((*[0.0] * 100, 40.0, *[0.0] * 67), VerdictKind.IN_USE),
        ((*[0.0] * 168,), VerdictKind.IDLE_SLICE),
        ((*[0.0] * 100,), VerdictKind.UNKNOWN_TELEMETRY),
    ],
)
def test_what_serves_is_idle_only_where_nobody_asked_for_the_whole_window(
    hours: tuple[float, ...], kind: VerdictKind
) -> None:
    """Nobody asks at night or on a Sunday, and on Monday it has to be there."""
    found = verdict("nodes", world(node(labels={"role": "serve", "env": "prod"}), duty(ID, *hours)))
    assert found.kind is kind
    assert (found.remedy is None) is (kind is not VerdictKind.IDLE_SLICE)


def test_what_serves_is_young_for_a_week() -> None:
    item = node(labels={"role": "serve"}, createTime=ago(3 * DAY))
    found = verdict("nodes", world(item, duty(ID, *[0.0] * 72)))
    assert (found.kind, found.waste) == (VerdictKind.TOO_NEW, None)
    assert found.message == "READY for 3 days; judged after 7 days, as it serves"


def test_past_its_ttl_a_slice_has_expired_though_it_works() -> None:
    item = node(labels={"ttl": "7d"}, createTime=ago(8 * DAY))
    found = verdict("nodes", world(item, duty(ID, *[99.0] * 168)))
    assert (found.kind, found.waste) == (VerdictKind.EXPIRED, HOURLY)
    assert (found.since, found.since_confidence) == (NOW - DAY, Since.EXACT)
    assert found.wasted_so_far == Decimal("115.20")
    assert found.message == "its ttl of 7d ended 11-14 10:00Z"
    assert found.remedy is not None
    assert found.remedy.kind is RemedyKind.DELETE_NODE


@pytest.mark.parametrize("ttl", ["9d", "soon", ""])
def test_before_its_ttl_or_without_one_it_has_not(ttl: str) -> None:
    item = node(labels={"ttl": ttl}, createTime=ago(8 * DAY))
    assert verdict("nodes", world(item, duty(ID, *[99.0] * 168))).kind is VerdictKind.IN_USE


def test_a_half_seen_world_has_no_idle_slice_and_no_remedy() -> None:
    idle = (node(), duty(ID, *[0.0] * 168))
    gaps = (Missing(part="tpu.nodes us-east1-d", why="503"), Missing(part=Metric.DUTY_CYCLE.value, why="429"))
    zone, metric = (verdict("nodes", world(*idle, missing=(gap,))) for gap in gaps)
    assert (zone.kind, zone.waste, zone.remedy) == (VerdictKind.UNKNOWN_STATE, None, None)
    assert zone.message.startswith("tpu.nodes could not be read whole, or it would be IDLE_SLICE: READY")
    assert (metric.kind, metric.waste, metric.remedy) == (VerdictKind.UNKNOWN_TELEMETRY, None, None)
    never_asked = verdict("nodes", context({Part.NODES: [node()]}))
    assert never_asked.message == "READY, duty cycles were not asked for"


def test_without_a_price_the_waste_is_not_known_and_not_zero() -> None:
    item = node(acceleratorType="v5litepod-16", acceleratorConfig=None)
    found = verdict("nodes", world(item, *(duty(f"pod-w-{index}", *[0.0] * 168) for index in range(4))))
    assert (found.kind, found.waste, found.wasted_so_far) == (VerdictKind.IDLE_SLICE, None, None)
    assert found.message.endswith("no price for v5litepod-16: spotrail prices v6e chips only")
    assert found.remedy is not None
    assert found.remedy.monthly_saving is None


def test_a_node_without_a_time_of_creation_is_unknown_with_the_reason() -> None:
    item = node()
    del item["createTime"]
    found = verdict("nodes", world(item))
    assert found.kind is VerdictKind.UNKNOWN_STATE
    assert "does not say when it was made" in found.message


def test_nothing_is_said_of_no_nodes() -> None:
    assert told("nodes", context({Part.NODES: []})) == []
