"""Volumes from a record to verdicts with money: worlds of one or two volumes, computed by hand.

Prices of the book: 0.08 per GiB and 0.12 per MiB/s of Hyperdisk ML a month, 0.10 per GiB of pd-balanced.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from policies.audit.auditors.volumes import AUDITOR
from policies.audit.model import RemedyKind, Since, Verdict, VerdictKind
from policies.audit.record import Kind, Metric, Part, Series
from policies.audit.terms import Terms
from policies.money import ZERO
from tests.policies.audit.points import HOUR, MIB, MINUTE, at_rate, rates, series
from tests.policies.audit.worlds import END, NOW, OLD, URL, ZONE, context, disk, instance, node, zonal

OPENS, CLOSES = END.timestamp() - 7 * 24 * HOUR, END.timestamp()
WINDOW_START = datetime.datetime.fromtimestamp(OPENS, tz=datetime.UTC)
VM = f"{URL}/zones/{ZONE}/instances/head"


def look(
    volumes: Sequence[Any],
    instances: Sequence[Any] = (),
    metrics: Mapping[Metric, Sequence[Series]] | None = None,
    *,
    nodes: Sequence[Any] = (),
    terms: Terms | None = None,
) -> list[Verdict]:
    parts = {Part.DISKS: volumes, Part.INSTANCES: instances, Part.NODES: nodes}
    seen = {Metric.READ_BYTES: []} if metrics is None else metrics
    found = list(AUDITOR.look(context(parts, seen, terms=terms)))
    assert all(isinstance(each, Verdict) for each in found)
    return [each for each in found if isinstance(each, Verdict)]


def volume(name: str = "coral", mibps: int | None = 2400, **fields: Any) -> dict[str, Any]:
    made = disk(name, users=[VM], lastAttachTimestamp=OLD)
    return made | ({} if mibps is None else {"provisionedThroughput": str(mibps)}) | fields


def loose(**fields: Any) -> dict[str, Any]:
    return volume(users=[], lastDetachTimestamp="2026-11-02T10:00:00.5-00:00", **fields)


def head(device: str = "coral", **fields: Any) -> dict[str, Any]:
    attached = {"source": f"{URL}/zones/{ZONE}/disks/coral", "deviceName": device}
    return instance(id="1", disks=[attached]) | fields


def reads(mibps: float, start: float = OPENS, end: float = CLOSES, device: str = "coral", **more: Any) -> Series:
    return series(at_rate(mibps, start, end), device=device, zone=ZONE, **more)


def one(
    volumes: Sequence[Any], instances: Sequence[Any] = (), metrics: Mapping[Metric, Sequence[Series]] | None = None
) -> Verdict:
    (found,) = look(volumes, instances, metrics)
    return found


def test_throughput_and_capacity_of_what_is_attached_to_nothing() -> None:
    """100 GiB and 12,000 MiB/s: 8 + 1,440 a month, for 13 days less half a second."""
    found = one([loose(mibps=12_000)])
    assert found.kind is VerdictKind.IDLE_UNATTACHED
    assert found.waste is not None
    assert found.waste.monthly == 1448
    assert (found.since_confidence, found.since) == (
        Since.EXACT,
        datetime.datetime(2026, 11, 2, 10, 0, 0, 500_000, tzinfo=datetime.UTC),
    )
    assert found.wasted_so_far == pytest.approx(Decimal(1448) * 13 * 24 / 730, abs=Decimal("0.001"))
    assert found.remedy is not None
    assert (found.remedy.kind, found.remedy.monthly_saving) == (RemedyKind.SNAPSHOT_THEN_DELETE, found.waste)
    assert found.message == "12,000 MiB/s, no reader since 11-02"
    assert found.usage.coverage is None


@pytest.mark.parametrize(
    ("fields", "message", "confidence"),
    [
        ({"users": []}, "attached to nothing, and last attached on 09-01", Since.ESTIMATED),
        (
            {"users": [], "lastAttachTimestamp": None},
            "never attached since its creation on 09-01",
            Since.EXACT,
        ),
        (
            {
                "users": [],
                "lastDetachTimestamp": "2025-12-31T23:00:00-02:00",
                "creationTimestamp": "2025-01-01T00:00:00Z",
            }
            | {"lastAttachTimestamp": "2025-02-01T00:00:00Z"},
            "no reader since 01-01",
            Since.EXACT,
        ),
        (
            {"users": [], "lastDetachTimestamp": "2025-12-31T20:00:00Z", "creationTimestamp": "2025-01-01T00:00:00Z"}
            | {"lastAttachTimestamp": "2025-02-01T00:00:00Z"},
            "no reader since 2025-12-31",
            Since.EXACT,
        ),
        (
            {"users": [], "sourceSnapshot": f"{URL}/global/snapshots/llama-v3"},
            "made from llama-v3",
            Since.ESTIMATED,
        ),
    ],
)
def test_since_when_it_is_loose(fields: dict[str, Any], message: str, confidence: Since) -> None:
    found = one([volume(**fields)])
    assert (found.kind, found.since_confidence) == (VerdictKind.IDLE_UNATTACHED, confidence)
    assert message in found.message


def test_what_was_made_within_the_window_says_what_it_costs() -> None:
    """It is too new by the window, and its owner still wants to know that it lies there unattached."""
    found = one([volume(users=[], lastAttachTimestamp=None, creationTimestamp="2026-11-12T10:00:00Z")])
    assert (found.kind, found.waste, found.remedy) == (VerdictKind.TOO_NEW, None, None)
    assert "created 3 days ago, after the window began at 11-08 09:55Z" in found.message
    assert "never attached since its creation on 11-12, which a shorter --window would judge now" in found.message
    assert found.message.endswith("it costs 296.00 /month")
    (within,) = look(
        [volume(users=[], lastAttachTimestamp=None, creationTimestamp="2026-11-12T10:00:00Z")],
        terms=Terms(grace=datetime.timedelta(days=4)),
    )
    assert within.message == "created 3 days ago, after the window began at 11-08 09:55Z"
    (sooner,) = look(
        [volume(users=[], lastAttachTimestamp=None, creationTimestamp="2026-11-12T10:00:00Z")],
        terms=Terms(window=datetime.timedelta(days=1)),
    )
    assert sooner.kind is VerdictKind.IDLE_UNATTACHED


def test_within_the_grace_nothing_is_wasted() -> None:
    found = one([volume(users=[], lastDetachTimestamp="2026-11-15T07:00:00Z")])
    assert (found.kind, found.message) == (
        VerdictKind.IN_USE,
        "no reader since 11-15: within the grace of 24 hours",
    )
    assert found.waste is not None
    assert not found.waste


def test_a_stopped_host_reads_nothing() -> None:
    found = one([volume()], [head(status="TERMINATED", lastStopTimestamp="2026-11-05T10:00:00Z")])
    assert (found.kind, found.since_confidence) == (VerdictKind.IDLE_STOPPED_HOST, Since.EXACT)
    assert found.waste is not None
    assert found.waste.monthly == 288
    assert found.wasted_so_far == pytest.approx(Decimal(288) * 240 / 730, abs=Decimal("1e-9"))
    assert found.remedy is not None
    assert (found.remedy.kind, found.remedy.to_mibps) == (RemedyKind.LOWER_THROUGHPUT, 400)
    assert found.remedy.monthly_saving is not None
    assert found.remedy.monthly_saving.monthly == 240
    assert found.message == "2,400 MiB/s, unread since 11-05: head (TERMINATED)"


def test_a_host_that_has_just_stopped_is_left_alone() -> None:
    """Throughput that is lowered cannot be raised for six hours: a machine may be back before."""
    found = one([volume()], [head(status="TERMINATED", lastStopTimestamp="2026-11-15T09:00:00Z")])
    assert (found.kind, found.remedy) == (VerdictKind.IDLE_STOPPED_HOST, None)


def test_capacity_is_what_idles_where_no_throughput_bills() -> None:
    found = one([volume(mibps=None) | {"type": "pd-balanced"}], [head(status="SUSPENDED")])
    assert found.waste is not None
    assert (found.kind, found.waste.monthly, found.remedy) == (VerdictKind.IDLE_STOPPED_HOST, 10, None)
    assert (found.since_confidence, found.wasted_so_far) == (Since.UNKNOWN, None)
    assert found.message == "100 GiB pd-balanced, unread: head (SUSPENDED)"
    boot = one(
        [volume(mibps=140) | {"type": "hyperdisk-balanced", "provisionedIops": "3000"}], [head(status="STOPPED")]
    )
    assert boot.waste is not None
    assert (boot.waste.monthly, boot.message) == (8, "100 GiB hyperdisk-balanced, unread: head (STOPPED)")


def test_true_zeros_are_idle_and_absent_series_are_not() -> None:
    """One volume has a week of zeros, the other no series: alone or together, they are judged the same."""
    zeros = {Metric.READ_BYTES: [reads(0)]}
    blind = volume("reef", users=[f"{URL}/zones/{ZONE}/instances/tail"])
    tail = instance("tail", id="2")
    both = look([volume(), blind], [head(), tail], zeros)
    apart = [*look([volume()], [head(), tail], zeros), *look([blind], [head(), tail], {Metric.READ_BYTES: []})]
    assert both == apart
    assert [found.kind for found in both] == [VerdictKind.IDLE_ATTACHED, VerdictKind.UNKNOWN_TELEMETRY]
    assert both[1].waste is None
    assert both[1].message == "reader tail runs, and not one of its points is there"
    assert one([volume()], [head()], {}).kind is VerdictKind.UNKNOWN_TELEMETRY


def test_idle_while_attached() -> None:
    """(10,600 - 400) x 0.12, for at least the 7 days of the window and the 5 minutes after it."""
    found = one([volume(mibps=10_600)], [head()], {Metric.READ_BYTES: [reads(0)]})
    assert found.waste is not None
    assert (found.kind, found.waste.monthly) == (VerdictKind.IDLE_ATTACHED, 1224)
    assert (found.since, found.since_confidence) == (WINDOW_START, Since.AT_LEAST)
    assert found.wasted_so_far == pytest.approx(Decimal(1224) * (7 * 24 * 60 + 5) / 60 / 730, abs=Decimal("1e-9"))
    assert found.remedy is not None
    assert (found.remedy.text, found.remedy.monthly_saving) == ("throughput to 400", found.waste)
    assert found.message.startswith("peak 0.0 of 10,600 MiB/s, 100 % seen; ")
    assert (found.usage.coverage, found.usage.mean_mibps, found.usage.peak_mibps) == (1, 0, 0)


def test_at_the_floor_there_is_nothing_to_lower() -> None:
    found = one([volume(mibps=400)], [head()], {Metric.READ_BYTES: [reads(0)]})
    assert (found.kind, found.remedy) == (VerdictKind.IDLE_ATTACHED, None)
    assert "400 is the least for it, to pay nothing it has to go" in found.message


@pytest.mark.parametrize(
    ("group", "told"),
    [
        (zonal("instanceGroupManagers", "dev-serve", targetSize=0), True),
        (zonal("instanceGroupManagers", "dev-serve", targetSize="0"), True),
        (zonal("instanceGroupManagers", "dev-serve", targetSize=4), False),
        (zonal("instanceGroupManagers", "prod-serve", targetSize=0), False),
        (zonal("instanceGroupManagers", "dev-serve", targetSize=0, zone=f"{URL}/zones/us-east1-d"), False),
    ],
)
def test_a_group_at_no_machines_may_come_back_for_its_volume(group: dict[str, Any], told: bool) -> None:
    """Scaled to nothing for the weekend: its template names the volume, and a yes to its deletion would end it."""
    seen = context({Part.DISKS: [loose(labels={"env": "dev"})], Part.GROUPS: [group]})
    (found,) = AUDITOR.look(seen)
    assert found.message.endswith("groups at 0 machines that may come back for it: dev-serve") is told


def test_an_idle_volume_that_pays_nothing_for_its_throughput_need_not_go() -> None:
    """The boot disk of any machine: 140 MiB/s are free with it."""
    boot = volume(mibps=140) | {"type": "hyperdisk-balanced", "provisionedIops": "3000"}
    found = one([boot], [head()], {Metric.READ_BYTES: [reads(0)]})
    assert (found.kind, found.waste, found.remedy) == (VerdictKind.IDLE_ATTACHED, ZERO, None)
    assert "has to go" not in found.message


def test_a_peak_above_what_is_proposed_is_said() -> None:
    """Read at 100 MiB/s all week, and once for an hour at 1,900, which is less than 1 % of the week."""
    hours = series(rates([100.0] * 100 + [1900.0] + [100.0] * 67, OPENS), device="coral")
    found = one([volume()], [head()], {Metric.READ_BYTES: [hours]})
    assert found.remedy is not None
    assert (found.kind, found.remedy.to_mibps) == (VerdictKind.OVERPROVISIONED, 400)
    assert found.message == "p99 100 by the hour of 2,400 MiB/s, 1 reader; its peak of 1,900 takes longer then"


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({"goog-gke-volume": "", "goog-k8s-cluster-name": "bay"}, "a volume of the cluster bay, where"),
        ({"goog-gke-volume": ""}, "a volume of a cluster of Kubernetes Engine, where"),
    ],
)
def test_a_volume_of_a_cluster_goes_with_its_claim(labels: dict[str, str], said: str) -> None:
    """Its pods are scaled to none, and come back to it."""
    found = one([loose(labels=labels)])
    assert (found.kind, found.remedy) == (VerdictKind.IDLE_UNATTACHED, None)
    assert found.message.endswith(f"; {said} its PersistentVolumeClaim is what to delete")


def test_a_burst_between_the_points_is_no_idleness() -> None:
    """Half a MiB/s over the hour was 30 MiB/s for a minute: the gauge of the peak says so."""
    peak = series([(CLOSES, CLOSES, 30.0 * MIB)], kind=Kind.GAUGE, device="coral")
    found = one([volume()], [head()], {Metric.READ_BYTES: [reads(0.5)], Metric.MAX_READ_BYTES: [peak]})
    assert (found.kind, found.usage.peak_mibps) == (VerdictKind.BURSTY, 30)


def test_three_of_a_hundred_points_are_no_telemetry() -> None:
    found = one([volume()], [head()], {Metric.READ_BYTES: [reads(0, CLOSES - 5 * HOUR)]})
    assert (found.kind, found.usage.coverage) == (VerdictKind.UNKNOWN_TELEMETRY, Fraction(5, 168))
    assert found.message == "reader head runs, 2.97 % of its points present"
    assert (found.waste, found.remedy) == (None, None)


def test_points_are_due_while_the_machine_ran() -> None:
    """A machine that was started five days ago owes five days of points."""
    started = datetime.datetime.fromtimestamp(CLOSES - 120 * HOUR, tz=datetime.UTC)
    vm = head(lastStartTimestamp=started.isoformat())
    found = one([volume()], [vm], {Metric.READ_BYTES: [reads(0, CLOSES - 120 * HOUR)]})
    assert (found.kind, found.usage.coverage, found.since) == (VerdictKind.IDLE_ATTACHED, 1, started)


def test_a_reader_that_has_just_come_proves_no_waste() -> None:
    """Lowered for a machine that is still loading, the throughput would be missed for six hours."""
    started = datetime.datetime.fromtimestamp(CLOSES - 3 * HOUR, tz=datetime.UTC).isoformat()
    metrics = {Metric.READ_BYTES: [reads(0, CLOSES - 3 * HOUR)]}
    for volumes, machines in (
        ([volume()], [head(lastStartTimestamp=started)]),
        ([volume(lastAttachTimestamp=started)], [head()]),
    ):
        found = one(volumes, machines, metrics)
        assert (found.kind, found.remedy) == (VerdictKind.TOO_NEW, None)
        assert found.message == "its 1 reader could be seen for 3 hours only: too short to judge"


def test_a_machine_that_is_gone_has_read() -> None:
    """Its disk was read until the spot machine was taken back; the new one has only just begun."""
    started = CLOSES - 40 * HOUR
    vm = head(lastStartTimestamp=datetime.datetime.fromtimestamp(started, tz=datetime.UTC).isoformat())
    before = reads(1500, OPENS, started, instance="99")
    found = one([volume()], [vm], {Metric.READ_BYTES: [before, reads(0, started)]})
    assert (found.kind, found.usage.peak_mibps, found.usage.coverage) == (VerdictKind.IN_USE, 1500, 1)


def test_four_readers_of_one_volume() -> None:
    """4 x 100 of 2,400 MiB/s are 16.67 %; the volume is paid once, 296.00, 74.00 for each."""
    names = [f"vm{at}" for at in range(4)]
    shared = volume(
        "coral", accessMode="READ_ONLY_MANY", users=[f"{URL}/zones/{ZONE}/instances/{name}" for name in names]
    )
    machines = [
        head() | {"name": name, "id": str(at), "selfLink": f"{URL}/zones/{ZONE}/instances/{name}"}
        for at, name in enumerate(names)
    ]
    minutes = [
        series(at_rate(100, OPENS, CLOSES, MINUTE), instance=str(at), device="coral", zone=ZONE) for at in range(4)
    ]
    found = one([shared], machines, {Metric.READ_BYTES: minutes})
    assert found.usage.p99_mibps is not None
    assert round(100 * found.usage.p99_mibps / 2400, 2) == Fraction("16.67")
    assert (found.kind, found.usage.mean_mibps, found.usage.peak_mibps) == (VerdictKind.OVERPROVISIONED, 400, 400)
    assert found.message == "p99 400 of 2,400 MiB/s, 4 readers"
    assert found.remedy is not None
    assert found.remedy.to_mibps == 480
    assert found.waste is not None
    assert found.waste.monthly == Decimal("230.4")
    assert found.shares == tuple((name, Decimal("74.00")) for name in names)


def test_shares_of_three_readers_add_up_to_the_cent() -> None:
    names = [f"vm{at}" for at in range(3)]
    shared = volume(users=[f"{URL}/zones/{ZONE}/instances/{name}" for name in names])
    found = one([shared], [instance(name) for name in names])
    assert [share for _, share in found.shares] == [Decimal("98.67"), Decimal("98.67"), Decimal("98.66")]


def test_beyond_what_its_machines_can_read() -> None:
    """10,000 MiB/s for one machine that reads 2,400: 7,600 x 0.12 = 912 a month."""
    found = one([volume(mibps=10_000)], [head()], {Metric.READ_BYTES: [reads(500)]})
    assert found.waste is not None
    assert found.remedy is not None
    assert (found.kind, found.waste.monthly, found.remedy.to_mibps) == (VerdictKind.UNREACHABLE, 912, 2400)
    assert found.message == "10,000 MiB/s, of which 1 machine cannot read more than 2,400; p99 500 by the hour"


def fleet(size: int) -> list[dict[str, Any]]:
    """Machines of a managed group, each with the volume under the device name of their template."""
    made = {"items": [{"key": "created-by", "value": f"projects/1/zones/{ZONE}/instanceGroupManagers/wave"}]}
    links = [f"{URL}/zones/{ZONE}/instances/wave-{at:04}" for at in range(size)]
    return [
        head("persistent-disk-1") | {"id": str(at), "name": f"wave-{at:04}", "selfLink": link, "metadata": made}
        for at, link in enumerate(links)
    ]


def reader(at: int, mibps: float, start: float = OPENS, end: float = CLOSES) -> Series:
    labels = {"device_name": "persistent-disk-1", "instance_name": f"wave-{at:04}"}
    return replace(reads(mibps, start, end, instance=str(at)), metric_labels=labels)


def test_a_group_that_is_small_at_the_moment_has_needed_more() -> None:
    """Four machines read 8,000 MiB/s until spot capacity was taken back 30 hours ago: one of them is left.

    One machine reads 2,400 at the most, four 9,600, so nothing is beyond reach. p99 is that of four.
    """
    left = fleet(1)
    shared = volume(mibps=9_600, accessMode="READ_ONLY_MANY", users=[left[0]["selfLink"]])
    gone = [reader(at, 2000, end=CLOSES - 30 * HOUR) for at in range(1, 4)]
    found = one([shared], left, {Metric.READ_BYTES: [reader(0, 2000), *gone]})
    assert (found.kind, found.usage.p99_mibps, found.remedy) == (VerdictKind.IN_USE, 8000, None)


def test_the_floor_is_that_of_the_most_readers_at_once() -> None:
    """Of 30 readers five are left: at 400 MiB/s the 21st to come back would be refused; 30 of them need 600."""
    left = fleet(5)
    shared = volume(mibps=12_000, accessMode="READ_ONLY_MANY", users=[each["selfLink"] for each in left])
    gone = [reader(at, 1, end=CLOSES - 30 * HOUR) for at in range(5, 30)]
    found = one([shared], left, {Metric.READ_BYTES: [*(reader(at, 1) for at in range(5)), *gone]})
    assert found.remedy is not None
    assert (found.kind, found.remedy.to_mibps) == (VerdictKind.OVERPROVISIONED, 600)


def test_readers_that_follow_each_other_are_one_at_a_time() -> None:
    """A spot machine that is made anew every four hours, each hour of change with points of both: one reader."""
    now = fleet(1)
    now[0]["lastStartTimestamp"] = (END - datetime.timedelta(hours=4)).isoformat()
    shared = volume(mibps=10_000, accessMode="READ_ONLY_MANY", users=[now[0]["selfLink"]])
    turns = [reader(at, 900, CLOSES - (4 * at + 4) * HOUR, CLOSES - (4 * at - 1) * HOUR) for at in range(1, 41)]
    found = one([shared], now, {Metric.READ_BYTES: [reader(0, 900, CLOSES - 4 * HOUR), *turns]})
    assert found.remedy is not None
    assert (found.kind, found.remedy.to_mibps) == (VerdictKind.UNREACHABLE, 2400)


def test_spot_readers_that_nothing_is_read_by_are_idle_however_often_they_are_replaced() -> None:
    """None of them was there for a day, and together they were there for five: 2,000 x 0.12 idle since the first."""
    now = fleet(1)
    now[0]["lastStartTimestamp"] = (END - datetime.timedelta(hours=4)).isoformat()
    shared = volume(mibps=2_400, accessMode="READ_ONLY_MANY", users=[now[0]["selfLink"]])
    turns = [reader(at, 0, CLOSES - (4 * at + 4) * HOUR, CLOSES - 4 * at * HOUR) for at in range(1, 30)]
    found = one([shared], now, {Metric.READ_BYTES: [reader(0, 0, CLOSES - 4 * HOUR), *turns]})
    assert found.waste is not None
    assert (found.kind, found.waste.monthly) == (VerdictKind.IDLE_ATTACHED, 240)
    assert found.since == END - datetime.timedelta(hours=120)
    short = one([shared], now, {Metric.READ_BYTES: [reader(0, 0, CLOSES - 4 * HOUR), *turns[:3]]})
    assert (short.kind, short.message) == (
        VerdictKind.TOO_NEW,
        "its 1 reader could be seen for 16 hours only: too short to judge",
    )


def test_read_in_few_hours() -> None:
    """Read in 8 of 168 hours: 2,000 MiB/s lie idle for 160 of them, and a schedule could save 27 of 29 blocks."""
    hours = series(rates([0.0] * 160 + [1000.0] * 8, OPENS), device="coral")
    found = one([volume()], [head()], {Metric.READ_BYTES: [hours]})
    assert found.waste is not None
    assert found.waste.per_month == Fraction(240 * 160, 168)
    assert found.remedy is not None
    assert found.remedy.monthly_saving is not None
    assert (found.kind, found.remedy.kind) == (VerdictKind.BURSTY, RemedyKind.SCHEDULE_THROUGHPUT)
    assert found.remedy.monthly_saving.per_month == Fraction(240 * 27, 29)
    assert found.message == "read in 4.76 % of the time by the hour, peak 1,000 of 2,400 MiB/s"


def test_read_in_a_minute_of_every_block_no_schedule_helps() -> None:
    minutes = [0.0] * (7 * 24 * 60)
    minutes[::180] = [900.0] * 56
    found = one([volume()], [head()], {Metric.READ_BYTES: [series(rates(minutes, OPENS, MINUTE), device="coral")]})
    assert (found.kind, found.remedy) == (VerdictKind.BURSTY, None)
    assert "though in every six hours" in found.message


def test_writes_count_where_a_volume_can_be_written() -> None:
    both = {Metric.READ_BYTES: [reads(100)], Metric.WRITE_BYTES: [reads(1400)]}
    assert one([volume()], [head()], both).usage.mean_mibps == 1500
    shared = one([volume(accessMode="READ_ONLY_MANY")], [head()], both)
    assert shared.usage.mean_mibps == 100
    unseen = one([volume()], [head()], {Metric.READ_BYTES: [reads(0)], Metric.WRITE_BYTES: []})
    assert unseen.kind is VerdictKind.UNKNOWN_TELEMETRY


def test_a_tpu_host_without_series_is_unknown() -> None:
    pod = node(dataDisks=[{"sourceDisk": f"projects/reef/zones/{ZONE}/disks/coral"}])
    (found,) = look([volume(users=[])], nodes=[pod])
    assert (found.kind, found.waste, found.remedy) == (VerdictKind.UNKNOWN_TPU_HOST, None, None)
    assert "Cloud TPU host pod (READY)" in found.message
    (seen,) = look([volume(users=[])], nodes=[pod], metrics={Metric.READ_BYTES: [reads(0, instance="777")]})
    assert seen.kind is VerdictKind.IDLE_ATTACHED
    (gone,) = look([volume(users=[])], nodes=[pod | {"state": "PREEMPTED"}])
    assert gone.kind is VerdictKind.IDLE_STOPPED_HOST


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"users": ["zz"]}, "user not found in the record: zz"),
        ({"users": list("vwxyz")}, "user not found in the record: v, w, x and 2 more"),
        ({"provisionedThroughput": "0"}, "provisioned throughput 0 is invalid"),
        ({"provisionedThroughput": None}, "the record does not say what throughput is provisioned"),
        ({"provisionedThroughput": "much"}, 'provisionedThroughput is "much"; it must be a whole number'),
        ({"sizeGb": "NaN"}, 'sizeGb is "NaN"; it must be a whole number'),
        ({"sizeGb": None}, "sizeGb is None; a hyperdisk-ml volume has a size"),
        ({"creationTimestamp": "yesterday"}, '"yesterday" is no time'),
        ({"type": "hyperdisk-next"}, 'type "hyperdisk-next" is not known'),
    ],
)
def test_what_cannot_be_placed_is_unknown(fields: dict[str, Any], message: str) -> None:
    found = one([volume() | fields], [head()], {Metric.READ_BYTES: [reads(0)]})
    assert (found.kind, found.waste, found.remedy) == (VerdictKind.UNKNOWN_STATE, None, None)
    assert message in found.message


def test_a_host_in_a_state_of_the_future() -> None:
    found = one([volume()], [head(status="LEVITATING")])
    assert (found.kind, found.message) == (
        VerdictKind.UNKNOWN_STATE,
        "head (LEVITATING): a state that spotrail does not know",
    )


def test_without_a_price_the_waste_is_not_zero() -> None:
    far = {"zone": f"{URL}/zones/us-east9-z", "selfLink": f"{URL}/zones/us-east9-z/disks/coral"}
    for found in (one([loose() | far]), one([volume() | far], [head()], {Metric.READ_BYTES: [reads(0)]})):
        assert (found.waste, found.wasted_so_far) == (None, None)
        assert "its price is not known: no on-demand price for disk.hyperdisk-ml" in found.message
        assert found.remedy is not None
        assert found.remedy.monthly_saving is None


def test_a_disk_of_a_pool_wastes_nothing_of_its_own() -> None:
    found = one([loose(storagePool="pool")])
    assert found.waste is not None
    assert (found.kind, bool(found.waste), found.remedy) == (VerdictKind.IDLE_UNATTACHED, False, None)
    assert found.message.endswith("its storage pool bills for it")


@pytest.mark.parametrize("status", ["DELETING", "CREATING", "FAILED"])
def test_nothing_is_proposed_for_a_disk_on_its_way(status: str) -> None:
    assert one([loose(status=status)]).remedy is None


def test_only_what_bills_counts_for_a_balanced_volume() -> None:
    """600 MiB/s of hyperdisk-balanced, of which 140 are free: idle, 460 x 0.04 are wasted."""
    balanced = volume(mibps=600) | {"type": "hyperdisk-balanced", "provisionedIops": "3000"}
    found = one([balanced], [head()], {Metric.READ_BYTES: [reads(0)]})
    assert found.waste is not None
    assert found.remedy is not None
    assert (found.kind, found.waste.monthly, found.remedy.to_mibps) == (VerdictKind.IDLE_ATTACHED, Decimal("18.4"), 140)
    fast = balanced | {"provisionedIops": "100000"}
    found = one([fast], [head()], {Metric.READ_BYTES: [reads(0)]})
    assert found.remedy is not None
    assert found.remedy.to_mibps == 391


def test_a_disk_without_throughput_is_not_measured() -> None:
    found = one([volume(mibps=None) | {"type": "pd-balanced"}], [head()])
    assert (found.kind, found.message) == (VerdictKind.IN_USE, "attached to head (RUNNING)")


GRACE = Terms(grace=datetime.timedelta(days=15))
ASKED = NOW - datetime.datetime(2026, 5, 31, tzinfo=datetime.UTC)
"""What lies between the day of the cases, 2026-05-31, and the time of the record."""


def later(text: str) -> str:
    return (datetime.datetime.fromisoformat(text) + ASKED).isoformat()


ORPHANS: dict[str, tuple[dict[str, Any], VerdictKind]] = {
    "detached-20d": (
        {"lastAttachTimestamp": "2026-01-02T00:00:00+00:00", "lastDetachTimestamp": "2026-05-11T00:00:00+00:00"},
        VerdictKind.IDLE_UNATTACHED,
    ),
    "detached-10d": (
        {"lastAttachTimestamp": "2026-01-02T00:00:00+00:00", "lastDetachTimestamp": "2026-05-21T00:00:00+00:00"},
        VerdictKind.IN_USE,
    ),
    "never-attached-30d": ({"creationTimestamp": "2026-05-01T00:00:00+00:00"}, VerdictKind.IDLE_UNATTACHED),
    "never-attached-1d": ({"creationTimestamp": "2026-05-30T00:00:00+00:00"}, VerdictKind.TOO_NEW),
    "on-stopped": (
        {"lastAttachTimestamp": "2026-01-02T00:00:00+00:00", "users": ["vm-stopped"]},
        VerdictKind.IDLE_STOPPED_HOST,
    ),
    "on-suspended": ({"users": ["vm-suspended"]}, VerdictKind.IDLE_STOPPED_HOST),
    "reattached": (
        {
            "lastDetachTimestamp": "2026-03-01T00:00:00+00:00",
            "lastAttachTimestamp": "2026-03-02T00:00:00+00:00",
            "users": ["vm-running"],
        },
        VerdictKind.IN_USE,
    ),
    "user-gone": ({"users": ["vm-does-not-exist"]}, VerdictKind.UNKNOWN_STATE),
    "offset": ({"creationTimestamp": "2026-05-15T20:00:00.123-07:00"}, VerdictKind.IN_USE),
}


@pytest.mark.parametrize("form", ["{}", "zones/us-central1-b/instances/{}", URL + "/zones/us-central1-b/instances/{}"])
@pytest.mark.parametrize("scope", ["zonal", "regional"])
@pytest.mark.parametrize("name", ORPHANS)
def test_what_counts_as_an_orphan(name: str, scope: str, form: str) -> None:
    """Nine disks at a grace of 15 days: it is the time since the detachment that counts, and only without a user."""
    fields, expected = ORPHANS[name]
    found = {key: later(value) if isinstance(value, str) else value for key, value in fields.items()}
    users = [form.format(user) for user in fields.get("users", [])]
    made = (
        disk(name, type="pd-balanced", creationTimestamp=later("2026-01-01T00:00:00+00:00")) | found | {"users": users}
    )
    if scope == "regional":
        region = f"{URL}/regions/us-central1"
        made = made | {"zone": None, "region": region, "selfLink": f"{region}/disks/{name}"}
    states = {"vm-stopped": "TERMINATED", "vm-suspended": "SUSPENDED", "vm-running": "RUNNING"}
    (verdict,) = look([made], [instance(vm, status=status) for vm, status in states.items()], terms=GRACE)
    assert verdict.kind is expected
    assert verdict.waste is not None or expected in (VerdictKind.UNKNOWN_STATE, VerdictKind.TOO_NEW)
