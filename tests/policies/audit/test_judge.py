"""The whole audit: worst first, the same from any order and any batch, and never a number that is none."""

from __future__ import annotations

import datetime
import math
import random
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.audit.judge import judge, minute_candidates
from policies.audit.model import Audit, Verdict, VerdictKind
from policies.audit.record import Item, Kind, Metric, Missing, Part, Record, Series
from policies.audit.registry import auditors
from policies.audit.terms import Terms
from tests.policies.audit.points import HOUR, MINUTE, at_rate, rates, series
from tests.policies.audit.worlds import END, NOW, URL, ZONE, book, context, disk, instance, node

OPENS, CLOSES = END.timestamp() - 7 * 24 * HOUR, END.timestamp()
INSTANCES = f"{URL}/zones/{ZONE}/instances"


def audit(record: Record) -> Audit:
    return judge(record, Terms(), book(), NOW.date())


def record(
    disks: Sequence[Item],
    instances: Sequence[Item] = (),
    reads: Sequence[Series] = (),
    *,
    missing: tuple[Missing, ...] = (),
    **metrics: Sequence[Series],
) -> Record:
    found: Mapping[Metric, Sequence[Series]] = {Metric.READ_BYTES: reads} | {
        Metric[name]: series for name, series in metrics.items()
    }
    return context({Part.DISKS: disks, Part.INSTANCES: instances}, found, missing=missing).record


def volume(name: str, mibps: int, *readers: str) -> dict[str, Any]:
    users = [f"{INSTANCES}/{reader}" for reader in readers]
    return disk(name, provisionedThroughput=str(mibps), users=users)


def machine(name: str, id: str, *disks: str) -> dict[str, Any]:
    attached = [{"source": f"{URL}/zones/{ZONE}/disks/{each}", "deviceName": each} for each in disks]
    return instance(name, id=id, disks=attached)


def read(device: str, mibps: float, instance: str = "1", step: float = HOUR) -> Series:
    return series(at_rate(mibps, OPENS, CLOSES, step), instance=instance, device=device, zone=ZONE)


DISKS = [
    volume("idle", 2400, "a"),
    volume("loose", 12_000),
    volume("over", 2400, "a", "b"),
    volume("blind", 2400, "b"),
    volume("fine", 400, "a"),
]
MACHINES = [machine("a", "1", "idle", "over", "fine"), machine("b", "2", "over", "blind")]
READS = [read("idle", 0), read("over", 100), read("over", 200, "2"), read("fine", 350)]


def test_worst_first() -> None:
    found = audit(record(DISKS, MACHINES, READS))
    volumes = [verdict for verdict in found.verdicts if verdict.type == "compute.disk"]
    assert [(verdict.name, verdict.kind) for verdict in volumes] == [
        ("loose", VerdictKind.IDLE_UNATTACHED),
        ("idle", VerdictKind.IDLE_ATTACHED),
        ("over", VerdictKind.OVERPROVISIONED),
        ("blind", VerdictKind.UNKNOWN_TELEMETRY),
        ("fine", VerdictKind.IN_USE),
    ]
    assert found.waste.monthly >= 1448 + 240 + 240
    assert not found.complete


def test_the_same_from_any_order() -> None:
    whole = record(DISKS, MACHINES, READS)
    expected = audit(whole)
    for seed in range(5):
        chance = random.Random(seed)
        parts = {part: tuple(chance.sample(items, len(items))) for part, items in whole.inventory.items()}
        metrics = {
            metric: tuple(shuffled(each, chance) for each in chance.sample(found, len(found)))
            for metric, found in whole.metrics.items()
        }
        assert audit(replace(whole, inventory=parts, metrics=metrics)) == expected


def test_the_same_in_any_batch() -> None:
    """Each volume with its own readers and series alone is judged as it is among the others."""
    together = {verdict.name: verdict for verdict in audit(record(DISKS, MACHINES, READS)).verdicts}
    for each in DISKS:
        alone = audit(
            record([each], MACHINES, [found for found in READS if found.metric_labels["device_name"] == each["name"]])
        )
        assert next(verdict for verdict in alone.verdicts if verdict.type == "compute.disk") == together[each["name"]]


def test_a_disk_that_is_listed_twice_is_one() -> None:
    assert audit(record([*DISKS, DISKS[1]], MACHINES, READS)) == audit(record(DISKS, MACHINES, READS))


@pytest.mark.parametrize("key", [Part.DISKS, Part.INSTANCES, Part.NODES, Metric.READ_BYTES])
def test_no_remedy_from_a_half_seen_world(key: Part | Metric) -> None:
    gap = Missing(part=f"{key.value} us-east1-d", why="HTTP 503")
    found = audit(record(DISKS, MACHINES, READS, missing=(gap,)))
    by_name = {verdict.name: verdict for verdict in found.verdicts}
    assert found.missing == (gap,)
    assert not found.complete
    assert by_name["idle"].remedy is None
    assert key.value in by_name["idle"].message
    # What does not rest on that part neither: what is missing may use it.
    assert all(verdict.remedy is None for verdict in found.verdicts)
    assert found.notes[0] == "no remedy is proposed: 1 part of the project could not be read"


def test_what_the_figures_rest_on_is_noted() -> None:
    lost = replace(read("fine", 350), unreadable=3)
    notes = audit(record(DISKS, MACHINES, [*READS[:3], lost])).notes
    assert notes[:2] == (
        "p99 of 3 volumes is over points longer than a minute: bursts within them are averaged",
        "3 points had no finite number and count as not seen",
    )
    assert notes[2].endswith("volumes are judged by what is read of them")
    told = replace(record(DISKS, MACHINES, READS), notes=("minute points are read of 3 of 9",))
    assert audit(told).notes[0] == "minute points are read of 3 of 9"
    minutes = [read("fine", 350, step=MINUTE)]
    assert audit(record([DISKS[4]], MACHINES, minutes, WRITE_BYTES=[read("fine", 0, step=MINUTE)])).notes == ()


def test_stale_prices_are_used_and_noted() -> None:
    found = judge(record(DISKS, MACHINES, READS), Terms(), book(), datetime.date(2027, 11, 15))
    assert found.waste == audit(record(DISKS, MACHINES, READS)).waste
    assert "the list price of disk.hyperdisk-ml.throughput is of 2026-11-01: stale" in found.notes
    fine = judge(record([DISKS[4]], MACHINES, READS), Terms(), book(), datetime.date(2027, 11, 15))
    assert not any("hyperdisk-ml" in note for note in fine.notes)


def test_minutes_are_asked_for_where_hours_leave_it_open() -> None:
    assert minute_candidates(record(DISKS, MACHINES, READS), Terms()) == (("1", "over"), ("2", "over"))
    minutes = [read("over", 100, step=MINUTE), read("over", 200, "2", MINUTE)]
    with_minutes = record(DISKS, MACHINES, [*READS, *minutes])
    assert minute_candidates(with_minutes, Terms()) == ()
    over = next(verdict for verdict in audit(with_minutes).verdicts if verdict.name == "over")
    assert over.usage.resolution == datetime.timedelta(minutes=1)
    cheap = record([DISKS[2], volume("cheap", 2000, "a")], MACHINES, [*READS, read("cheap", 100)])
    assert minute_candidates(cheap, Terms()) == (("1", "over"), ("2", "over"), ("1", "cheap"))
    broken = disk("broken", sizeGb="?", users=[f"{INSTANCES}/a"])
    assert minute_candidates(record([broken], MACHINES), Terms()) == ()


def test_every_auditor_is_found() -> None:
    assert "volumes" in auditors()
    assert len({auditor.title for auditor in auditors().values()}) == len(auditors())


def test_an_empty_record() -> None:
    found = audit(context({}, {}).record)
    assert (found.verdicts, found.findings, found.complete) == ((), (), True)


def shuffled(found: Series, chance: random.Random) -> Series:
    order = chance.sample(range(len(found)), len(found))
    columns = {name: array("d", [getattr(found, name)[at] for at in order]) for name in ("starts", "ends", "values")}
    return replace(found, **columns)


VALUES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 1 << 40).map(float), st.sampled_from([0.0, 1e308])
)
TIMES = st.floats(OPENS - 2 * HOUR, CLOSES + 2 * HOUR)
POINTS = st.lists(st.tuples(TIMES, TIMES, VALUES), max_size=12)
STAMPS = st.sampled_from(
    [None, "", "2026-09-01T00:00:00Z", "2026-11-14T23:00:00.123456789-07:00", "yesterday", 3, "9999-12-31T23:59:60Z"]
)
NUMBERS = st.sampled_from([None, "0", 0, "400", "2400", "12000", "NaN", -1, 1.5, True, "999999999999999999", [], "1e9"])
VOLUME = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["d", "e", ""]),
        "type": st.sampled_from(["hyperdisk-ml", "hyperdisk-balanced", "pd-balanced", "hyperdisk-extreme", "", 7]),
        "sizeGb": NUMBERS,
        "provisionedThroughput": NUMBERS,
        "provisionedIops": NUMBERS,
        "users": st.sampled_from(
            [None, [], ["a"], [f"{INSTANCES}/a", "b"], ["gone"], "a", [None, "https://[x/instances/a"]]
        ),
        "zone": st.sampled_from([None, ZONE, f"{URL}/zones/{ZONE}", "us-east1-d"]),
        "creationTimestamp": STAMPS,
        "lastAttachTimestamp": STAMPS,
        "lastDetachTimestamp": STAMPS,
        "accessMode": st.sampled_from([None, "READ_ONLY_MANY"]),
        "labels": st.sampled_from([None, {"ttl": "7d"}, {"a": 1}]),
    }
)
MACHINE = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["a", "b"]),
        "id": st.sampled_from(["1", "2", None]),
        "status": st.sampled_from(["RUNNING", "TERMINATED", "SUSPENDED", "??", None]),
        "lastStartTimestamp": STAMPS,
        "lastStopTimestamp": STAMPS,
        "disks": st.sampled_from([None, [], [{"source": "d", "deviceName": "x"}], [{"source": None}], "x"]),
    }
)
SERIES = st.builds(
    lambda points, kind, instance, device, whole: series(
        points, kind=kind, instance=instance, device=device, whole=whole, zone=ZONE
    ),
    POINTS,
    st.sampled_from(Kind),
    st.sampled_from(["1", "2", "9", ""]),
    st.sampled_from(["d", "e", "x", ""]),
    st.booleans(),
)


@settings(max_examples=150)
@given(
    disks=st.lists(VOLUME, max_size=3),
    machines=st.lists(MACHINE, max_size=3),
    metrics=st.dictionaries(st.sampled_from(Metric), st.lists(SERIES, max_size=3), max_size=5),
    chance=st.randoms(use_true_random=False),
)
def test_no_record_makes_a_traceback_or_no_number(
    disks: list[Any], machines: list[Any], metrics: dict[Metric, list[Series]], chance: random.Random
) -> None:
    made = context({Part.DISKS: disks, Part.INSTANCES: machines, Part.NODES: [node()]}, metrics).record
    found = audit(made)
    minute_candidates(made, Terms())
    for verdict in found.verdicts:
        assert all(math.isfinite(number) for number in numbers(verdict))
        assert verdict.waste is None or verdict.waste.per_month >= 0
        saving = verdict.remedy.monthly_saving if verdict.remedy else None
        assert saving is None or (verdict.waste is not None and saving <= verdict.waste)
    turned = {metric: tuple(shuffled(each, chance) for each in reversed(each)) for metric, each in metrics.items()}
    again = replace(made, metrics=turned, inventory=made.inventory | {Part.DISKS: tuple(reversed(disks))})
    assert audit(again).verdicts == found.verdicts


def numbers(verdict: Verdict) -> list[Fraction | Decimal]:
    usage = verdict.usage
    rates = (usage.coverage, usage.mean_mibps, usage.p99_mibps, usage.peak_mibps)
    return [number for number in (*rates, verdict.wasted_so_far) if number is not None]


@settings(max_examples=50)
@given(level=st.integers(0, 2400), gaps=st.sets(st.integers(0, 167), max_size=16))
def test_gaps_change_no_mean(level: int, gaps: set[int]) -> None:
    """Of a volume that is read evenly, any tenth of the points may be missing."""
    points = [point for at, point in enumerate(rates([float(level)] * 168, OPENS)) if at not in gaps]
    made = record([volume("idle", 2400, "a")], MACHINES, [series(points, device="idle", zone=ZONE)])
    (found,) = (verdict for verdict in audit(made).verdicts if verdict.type == "compute.disk")
    assert (found.usage.mean_mibps, found.usage.p99_mibps) == (level, level)
    assert found.usage.coverage == Fraction(168 - len(gaps), 168)
