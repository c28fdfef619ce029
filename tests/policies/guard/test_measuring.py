from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from policies.audit.model import Audit, Remedy, RemedyKind, Usage, Verdict, VerdictKind
from policies.audit.record import Item, Missing, Part, Record, Window
from policies.audit.remedies.applying import Outcome, Result
from policies.audit.remedies.model import Action, Condition, Measure, Step
from policies.audit.terms import Terms
from policies.guard.gauges import Gauge
from policies.guard.measuring import figures, idle_mibps
from policies.money import Amount

NOW = datetime.datetime(2026, 11, 29, 12, tzinfo=datetime.UTC)
WINDOW = Window(start=NOW - datetime.timedelta(days=7), end=NOW)
LOWER = Remedy(kind=RemedyKind.LOWER_THROUGHPUT, to_mibps=400, text="throughput to 400")
DELETE = Remedy(kind=RemedyKind.SNAPSHOT_THEN_DELETE, text="delete after snapshot")


def verdict(kind: VerdictKind, name: str = "x", mibps: int | None = 1200, **fields: Any) -> Verdict:
    return Verdict(
        resource=f"projects/p/zones/z/disks/{name}",
        type="compute.disk",
        location="z",
        kind=kind,
        usage=Usage(provisioned_mibps=mibps),
        message="m",
        **fields,
    )


def measured(
    *verdicts: Verdict, results: tuple[Result, ...] = (), beats: tuple[Item, ...] = (), gaps: tuple[Missing, ...] = ()
):
    record = Record(project="p", recorded_at=NOW, window=WINDOW, inventory={Part.HEARTBEATS: beats}, missing=gaps)
    audit = Audit(
        project="p",
        recorded_at=NOW,
        window=WINDOW,
        currency="USD",
        book_as_of=NOW.date(),
        book_sha256="0" * 64,
        verdicts=verdicts,
        missing=gaps,
    )
    return figures(audit, record, Terms(), results)


@pytest.mark.parametrize(
    ("found", "idle"),
    [
        (verdict(VerdictKind.IDLE_UNATTACHED, remedy=DELETE), 1200),
        (verdict(VerdictKind.IDLE_STOPPED_HOST), 1200),
        (verdict(VerdictKind.IDLE_ATTACHED, remedy=LOWER), 800),
        (verdict(VerdictKind.IDLE_ATTACHED), 1200),
        (verdict(VerdictKind.OVERPROVISIONED, remedy=LOWER), 800),
        (verdict(VerdictKind.UNREACHABLE, mibps=10_000, remedy=LOWER), 9600),
        (verdict(VerdictKind.IN_USE), 0),
        (verdict(VerdictKind.UNKNOWN_TELEMETRY), 0),
        (verdict(VerdictKind.BURSTY), 0),
        (verdict(VerdictKind.EXPIRED, mibps=None), 0),
    ],
)
def test_idle_is_what_nobody_reads_and_the_floor_does_not_ask_for(found: Verdict, idle: int) -> None:
    assert idle_mibps(found) == idle


def test_figures_of_a_project() -> None:
    found = measured(
        verdict(VerdictKind.IDLE_UNATTACHED, "a", waste=Amount(per_month=Fraction("144.25"))),
        verdict(VerdictKind.IDLE_UNATTACHED, "b", waste=None),
        verdict(VerdictKind.EXPIRED, "c", None, waste=Amount(per_month=Fraction(3000))),
        verdict(VerdictKind.IN_USE, "d"),
        gaps=(Missing(part="tpu.nodes", why="403"), Missing(part="compute.disks us-east1-d", why="503")),
    )
    assert found == {
        Gauge.IDLE_MIBPS: 2400,
        Gauge.IDLE_DOLLARS: Decimal("3144.25"),
        Gauge.UNATTACHED_VOLUMES: 2,
        Gauge.EXPIRED_SLICES: 1,
        Gauge.STALE_HEARTBEATS: 0,
        Gauge.UNSEEN_PARTS: 2,
        Gauge.LAST_RUN: int(NOW.timestamp()),
    }


@pytest.mark.parametrize(("outcome", "left"), [(Outcome.DONE, 0), (Outcome.FAILED, 1), (Outcome.CHANGED, 1)])
def test_what_was_ended_counts_no_more(outcome: Outcome, left: int) -> None:
    expired = verdict(VerdictKind.EXPIRED, "c", None, waste=Amount(per_month=Fraction(3000)))
    gone = Condition(resource=expired.resource, absent=True)
    step = Step(action=Action.DELETE_NODE, resource=expired.resource, requires=(), done=gone, text="delete")
    measure = Measure(
        resource=expired.resource,
        verdict=expired.kind,
        kind=RemedyKind.DELETE_NODE,
        saving=None,
        why="",
        steps=(step,),
    )
    found = measured(expired, results=(Result(measure=measure, step=step, outcome=outcome),))
    assert (found[Gauge.EXPIRED_SLICES], found[Gauge.IDLE_DOLLARS]) == (left, left * 3000)


@pytest.mark.parametrize(("minutes", "stale"), [(10, 0), (30, 0), (31, 1)])
def test_a_heartbeat_is_stale_after_its_time(minutes: int, stale: int) -> None:
    updated = (NOW - datetime.timedelta(minutes=minutes)).isoformat()
    beat = {"bucket": "b", "name": "r/heartbeat.json", "updated": updated, "content": {"run": "r1"}}
    idle = verdict(VerdictKind.IDLE_SLICE, mibps=None, labels=(("run", "r1"),))
    assert measured(idle, beats=(beat,))[Gauge.STALE_HEARTBEATS] == stale
    assert measured(verdict(VerdictKind.IN_USE, labels=(("run", "r1"),)), beats=(beat,))[Gauge.STALE_HEARTBEATS] == 0
    assert measured(idle)[Gauge.STALE_HEARTBEATS] == 0, "no heartbeat was ever written"
