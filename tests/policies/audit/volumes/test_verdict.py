"""The first verdict that holds, as a table of facts."""

from __future__ import annotations

import datetime
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from policies.audit.model import VerdictKind
from policies.audit.telemetry.spans import MICRO, micros
from policies.audit.terms import Terms
from policies.audit.volumes.facts import STRANGER, VolumeFacts
from policies.audit.volumes.flow import Flow
from policies.audit.volumes.joins import Host, Standing
from policies.audit.volumes.verdict import decide, hours_leave_open, ratio

NOW = datetime.datetime(2026, 11, 15, 10, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
HOUR = datetime.timedelta(hours=1)
MINUTE = datetime.timedelta(minutes=1)
WEEK = 7 * 24 * 3600 * MICRO
WINDOW = (micros(NOW) - WEEK, micros(NOW))

RUNS = Host(name="vm", standing=Standing.RUNS, status="RUNNING")
OFF = Host(name="off", standing=Standing.OFF, status="TERMINATED")
LOST = Host(name="lost", standing=Standing.UNSURE)
POD = Host(name="pod", standing=Standing.RUNS, status="READY", tpu=True)


def seen(mean: float = 1000, p99: float = 1500, active: float = 1, blocks: int = 29, **more: Any) -> Flow:
    """A week that was seen whole, minute by minute; `active` is the part of it in which the volume was read."""
    made = Flow(
        coverage=Fraction(1),
        due=WEEK,
        looked=WEEK,
        first=WINDOW[0],
        mean=Fraction(mean),
        p99=Fraction(p99),
        peak=Fraction(max(mean, p99)),
        active=int(WEEK * active),
        blocks=blocks,
        resolution=MINUTE,
    )
    return replace(made, **more)


def facts(flow: Flow | None = None, **changes: Any) -> VolumeFacts:
    """A volume of 100 GiB with 2,400 MiB/s, read by one machine as it should be."""
    flow = flow or seen()
    made = VolumeFacts(
        type="hyperdisk-ml",
        gib=100,
        known=True,
        sized=True,
        provisioned=2400,
        floor=400,
        included=0,
        created=NOW - 90 * DAY,
        attached=None,
        detached=None,
        hosts=(RUNS,),
        most=1,
        now=NOW,
        window=WINDOW,
        flow=flow,
        peak=flow.peak,
    )
    hosts = changes.get("hosts", made.hosts)
    return replace(made, **({"most": sum(host.machines for host in hosts)} | changes))


QUIET = seen(0, 0, 0, 0)
BLIND = Flow(coverage=Fraction(3, 100), blind="vm", due=WEEK, looked=WEEK, first=WINDOW[0], unseen=WEEK)
SHORT = seen(due=2 * 3600 * MICRO, looked=2 * 3600 * MICRO)


@pytest.mark.parametrize(
    ("found", "kind", "target"),
    [
        (facts(), VerdictKind.IN_USE, None),
        # Age comes first, whatever else holds.
        (facts(created=NOW - 6 * DAY, hosts=()), VerdictKind.TOO_NEW, None),
        (facts(created=NOW - 6 * DAY, hosts=(LOST,)), VerdictKind.TOO_NEW, None),
        (facts(created=NOW - 7 * DAY, flow=QUIET), VerdictKind.IDLE_ATTACHED, 400),
        (facts(created=None, flow=QUIET), VerdictKind.IDLE_ATTACHED, 400),
        # Attached to nothing: the inventory alone decides, from the grace on.
        (facts(hosts=(), flow=Flow()), VerdictKind.IDLE_UNATTACHED, None),
        (facts(hosts=(), detached=NOW - DAY), VerdictKind.IDLE_UNATTACHED, None),
        (facts(hosts=(), detached=NOW - DAY + MINUTE), VerdictKind.IN_USE, None),
        (facts(hosts=(), detached=NOW - 9 * DAY, attached=NOW - HOUR), VerdictKind.IN_USE, None),
        (facts(hosts=(), created=None), VerdictKind.UNKNOWN_STATE, None),
        (facts(hosts=(), provisioned=None), VerdictKind.IDLE_UNATTACHED, None),
        # A user that nobody knows may read.
        (facts(hosts=(LOST,)), VerdictKind.UNKNOWN_STATE, None),
        (facts(hosts=(LOST, OFF)), VerdictKind.UNKNOWN_STATE, None),
        (facts(hosts=(OFF, OFF), flow=Flow()), VerdictKind.IDLE_STOPPED_HOST, 400),
        (facts(hosts=(OFF,), detached=NOW - 60 * DAY), VerdictKind.IDLE_STOPPED_HOST, 400),
        (facts(hosts=(OFF, RUNS)), VerdictKind.IN_USE, None),
        # No telemetry is not idleness.
        (facts(BLIND), VerdictKind.UNKNOWN_TELEMETRY, None),
        (facts(replace(QUIET, coverage=Fraction(899, 1000))), VerdictKind.UNKNOWN_TELEMETRY, None),
        (facts(replace(QUIET, coverage=Fraction(9, 10))), VerdictKind.IDLE_ATTACHED, 400),
        (facts(replace(seen(), mean=None)), VerdictKind.UNKNOWN_TELEMETRY, None),
        (facts(BLIND, hosts=(POD,)), VerdictKind.UNKNOWN_TPU_HOST, None),
        (facts(replace(BLIND, blind=STRANGER), hosts=(POD, RUNS)), VerdictKind.UNKNOWN_TPU_HOST, None),
        (facts(QUIET, hosts=(POD,)), VerdictKind.IDLE_ATTACHED, 400),
        # A reader that has only just come is not missed, and proves no waste.
        (facts(Flow(coverage=Fraction(), due=4 * 60 * MICRO)), VerdictKind.TOO_NEW, None),
        (facts(replace(QUIET, due=4 * 3600 * MICRO, looked=4 * 3600 * MICRO)), VerdictKind.TOO_NEW, None),
        (facts(replace(QUIET, due=4 * 3600 * MICRO)), VerdictKind.IDLE_ATTACHED, 400),
        (facts(SHORT), VerdictKind.TOO_NEW, None),
        (facts(replace(BLIND, due=2 * 3600 * MICRO)), VerdictKind.UNKNOWN_TELEMETRY, None),
        # Half a ratio is none.
        (facts(provisioned=None), VerdictKind.UNKNOWN_STATE, None),
        (facts(provisioned=0), VerdictKind.UNKNOWN_STATE, None),
        (facts(QUIET, provisioned=None), VerdictKind.UNKNOWN_STATE, None),
        # What is read.
        (facts(seen(0.5, 0.9)), VerdictKind.IDLE_ATTACHED, 400),
        (facts(seen(0.5, 0.9), peak=Fraction(30)), VerdictKind.OVERPROVISIONED, 400),
        (facts(seen(0.5, 1)), VerdictKind.OVERPROVISIONED, 400),
        (facts(provisioned=10_000), VerdictKind.UNREACHABLE, 2400),
        (facts(provisioned=10_000, hosts=(RUNS, OFF)), VerdictKind.UNREACHABLE, 4800),
        (facts(provisioned=4800, hosts=(RUNS, OFF)), VerdictKind.OVERPROVISIONED, 1800),
        (facts(provisioned=2401), VerdictKind.UNREACHABLE, 2400),
        (facts(provisioned=9000, floor=9000), VerdictKind.IN_USE, None),
        (facts(seen(1, 0, 0.049)), VerdictKind.BURSTY, 400),
        (facts(seen(1, 0, 0.05)), VerdictKind.OVERPROVISIONED, 400),
        (facts(seen(100, 300)), VerdictKind.OVERPROVISIONED, 400),
        (facts(seen(100, 1000)), VerdictKind.OVERPROVISIONED, 1200),
        (facts(seen(100, 1000.25)), VerdictKind.OVERPROVISIONED, 1201),
        (facts(seen(100, 1199)), VerdictKind.OVERPROVISIONED, 1439),
        (facts(seen(100, 1200)), VerdictKind.IN_USE, None),
        (facts(seen(100, 100), provisioned=400), VerdictKind.IN_USE, None),
        # What has no throughput of its own is not measured.
        (facts(Flow(), sized=False, type="pd-balanced"), VerdictKind.IN_USE, None),
        (facts(Flow(), sized=False, hosts=(OFF,), floor=None), VerdictKind.IDLE_STOPPED_HOST, None),
        (facts(Flow(), sized=False, known=False, type="hyperdisk-next"), VerdictKind.UNKNOWN_STATE, None),
    ],
)
def test_the_first_that_holds(found: VolumeFacts, kind: VerdictKind, target: int | None) -> None:
    decision = decide(found, Terms())
    assert (decision.kind, decision.target) == (kind, target)


def test_terms_move_the_thresholds() -> None:
    assert decide(facts(hosts=(), detached=NOW - 10 * DAY), Terms(grace=15 * DAY)).kind is VerdictKind.IN_USE
    assert decide(facts(provisioned=10_000), Terms(per_vm_mibps=10_000)).kind is VerdictKind.OVERPROVISIONED
    assert decide(facts(BLIND), Terms(coverage=Fraction(2, 100))).kind is VerdictKind.UNKNOWN_TELEMETRY


def test_a_schedule_saves_in_steps_of_six_hours() -> None:
    """Read in 1 % of a week, in 7 of its 29 blocks (the window starts within one): 22 of them can be lowered."""
    decision = decide(facts(seen(20, 0, 0.01, blocks=7)), Terms())
    assert (decision.kind, decision.share, decision.saved) == (VerdictKind.BURSTY, Fraction(99, 100), Fraction(22, 29))


@pytest.mark.parametrize(
    ("used", "provisioned", "expected"),
    [(100, None, None), (None, 2400, None), (0, 2400, 0), (100, 0, None), (400, 2400, Fraction(1, 6))],
)
def test_half_a_ratio_is_none(used: int | None, provisioned: int | None, expected: Fraction | None) -> None:
    assert ratio(None if used is None else Fraction(used), provisioned) == expected


HOURLY = {"resolution": HOUR}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (facts(seen(100, 300, **HOURLY)), True),
        (facts(seen(100, 300)), False),
        # Nothing was ever read faster than 320: 384 would do, the floor is more, and 100 on average is no burst.
        (facts(seen(100, 300, **HOURLY), peak=Fraction(320), gauged=True), False),
        (facts(seen(100, 300, **HOURLY), peak=Fraction(350), gauged=True), True),
        (facts(seen(10, 300, **HOURLY), peak=Fraction(320), gauged=True), True),
        (facts(seen(0, 0, 0, **HOURLY)), False),
        (facts(seen(0.5, 0.6, **HOURLY)), True),
        (facts(seen(0.5, 0.6, **HOURLY), gauged=True), False),
        (facts(seen(1000, 1500, **HOURLY)), False),
        (facts(seen(100, 1500, **HOURLY)), True),
        (facts(seen(10, 0, 0.01, **HOURLY)), False),
        (facts(provisioned=10_000, flow=seen(**HOURLY)), False),
        (facts(BLIND), False),
        (facts(Flow(), hosts=()), False),
    ],
)
def test_what_hours_leave_open(found: VolumeFacts, expected: bool) -> None:
    assert hours_leave_open(found, decide(found, Terms()), Terms()) is expected
