"""Bytes of buckets, caches, storage pools, gateways."""

from __future__ import annotations

import datetime
from array import array
from decimal import Decimal
from typing import Any

import pytest

from policies.audit.context import Context
from policies.audit.model import RemedyKind, Since, VerdictKind
from policies.audit.pricing import GIB
from policies.audit.record import Item, Kind, Metric, Missing, Part, Series
from policies.money import Amount
from tests.policies.audit.worlds import (
    END,
    NOW,
    URL,
    ZONE,
    context,
    findings,
    gauge,
    instance,
    node,
    regional,
    told,
    verdict,
    zonal,
)

DAY, HOUR = 86_400, 3600
BUCKET: Item = {"name": "reef-dev-checkpoints", "location": "US-CENTRAL1", "storageClass": "STANDARD"}


def counted(kind: str, *gib: float, storage_class: str = "STANDARD", bucket: str = "reef-dev-checkpoints") -> Series:
    labels = {"type": kind, "storage_class": storage_class}
    where = {"bucket_name": bucket, "location": "us-central1"}
    return gauge(labels, where, [value * GIB for value in gib], step=DAY, resource_type="gcs_bucket")


def buckets(*series: Series, bucket: Item = BUCKET, **more: Any) -> Context:
    return context({Part.BUCKETS: [bucket]}, {Metric.BUCKET_BYTES: series}, **more)


@pytest.mark.parametrize(("soft", "count"), [(200.0, 0), (201.0, 1)])
def test_soft_deleted_bytes_above_a_fifth_of_the_live_ones(soft: float, count: int) -> None:
    seen = buckets(counted("live-object", 1000, 1000), counted("soft-deleted-object", 900, soft))
    assert len(told("buckets", seen)) == count


@pytest.mark.parametrize(("live", "soft"), [("live", "soft-deleted"), ("live-object", "soft-deleted-object")])
def test_soft_deleted_bytes_bill_as_live_ones(live: str, soft: str) -> None:
    found = verdict("buckets", buckets(counted(live, 1000.0), counted(soft, *[500.0] * 7)))
    assert (found.kind, found.waste) == (VerdictKind.ORPHANED, Amount.by_month(10))
    assert found.message == "500 GiB soft-deleted (50 % of the live bytes)"
    assert (found.since, found.since_confidence) == (END - datetime.timedelta(days=6), Since.AT_LEAST)
    assert found.remedy is not None
    assert (found.remedy.kind, found.remedy.monthly_saving) == (RemedyKind.SHORTEN_SOFT_DELETE, Amount.by_month(10))
    assert found.resource == "reef-dev-checkpoints"


def test_what_was_wasted_so_far_counts_the_bytes_that_there_were() -> None:
    found = verdict("buckets", buckets(counted("soft-deleted", 700.0, 0.0, 100.0, 400.0)))
    assert found.waste == Amount.by_month(8)
    assert found.since == END - datetime.timedelta(days=1)
    # 100 GiB for a day, 400 for the five minutes since, at 0.02 a month of 730 hours.
    assert found.wasted_so_far is not None
    expected = (100 * Decimal(24) + 400 * Decimal(5) / 60) * Decimal("0.02") / 730
    assert abs(found.wasted_so_far - expected) < Decimal("1e-9")


def test_where_soft_delete_is_off_already_the_bytes_go_by_themselves() -> None:
    off = {**BUCKET, "softDeletePolicy": {"retentionDurationSeconds": "0"}}
    found = verdict("buckets", buckets(counted("soft-deleted", 500.0), bucket=off))
    assert (found.kind, found.waste, found.remedy) == (VerdictKind.ORPHANED, Amount.by_month(10), None)


def test_soft_delete_stays_on_where_objects_are_written_once_and_lost_once() -> None:
    datasets = {**BUCKET, "labels": {"managed-by": "spotrail", "role": "datasets"}}
    found = verdict("buckets", buckets(counted("soft-deleted", 500.0), bucket=datasets))
    assert (found.waste, found.remedy) == (Amount.by_month(10), None)


def test_each_class_bills_at_its_own_price() -> None:
    series = (counted("soft-deleted", 100.0), counted("soft-deleted", 300.0, storage_class="NEARLINE"))
    assert verdict("buckets", buckets(*series)).waste == Amount.by_month(5)  # 100 x 0.02 + 300 x 0.01
    dear = (counted("soft-deleted", 100.0), counted("soft-deleted", 300.0, storage_class="ARCHIVE"))
    found = verdict("buckets", buckets(*dear))
    assert found.waste is None
    assert "no on-demand price for storage.archive.capacity" in found.message


@pytest.mark.parametrize(
    ("kind", "rule", "said"),
    [
        ("multipart-upload", {"action": {"type": "AbortIncompleteMultipartUpload"}}, "80 GiB in unfinished uploads"),
        (
            "noncurrent-object",
            {"action": {"type": "Delete"}, "condition": {"daysSinceNoncurrentTime": 3}},
            "80 GiB in noncurrent versions",
        ),
    ],
)
def test_uploads_and_old_versions_that_no_rule_ends(kind: str, rule: Item, said: str) -> None:
    found = verdict("buckets", buckets(counted(kind, 80.0)))
    assert (found.message, found.waste) == (said, Amount.by_month(Decimal("1.6")))
    assert found.remedy is not None
    uploads = kind.startswith("multipart")
    assert found.remedy.kind is (RemedyKind.SET_LIFECYCLE if uploads else RemedyKind.EXPIRE_VERSIONS)
    other = {"action": {"type": "Delete"}, "condition": {"age": 30}}
    assert told("buckets", buckets(counted(kind, 80.0), bucket={**BUCKET, "lifecycle": {"rule": [other]}}))
    assert not told("buckets", buckets(counted(kind, 80.0), bucket={**BUCKET, "lifecycle": {"rule": [other, rule]}}))
    assert not told("buckets", buckets(counted(kind, 0.9)))
    assert not told("buckets", buckets(counted(kind, 80.0, 0.0)))


def test_one_change_a_bucket_the_one_that_saves_most() -> None:
    series = (counted("soft-deleted", 100.0), counted("noncurrent", 60.0), counted("multipart", 70.0))
    found = verdict("buckets", buckets(*series))
    assert found.waste == Amount.by_month(Decimal("4.6"))
    assert found.remedy is not None
    assert found.remedy.kind is RemedyKind.SHORTEN_SOFT_DELETE
    assert found.remedy.monthly_saving == Amount.by_month(Decimal("2.0"))


@pytest.mark.parametrize("gap", ["storage.buckets", Metric.BUCKET_BYTES.value])
def test_a_half_seen_world_changes_no_bucket(gap: str) -> None:
    found = verdict("buckets", buckets(counted("soft-deleted", 500.0), missing=(Missing(part=gap, why="503"),)))
    assert (found.kind, found.waste, found.remedy) == (VerdictKind.UNKNOWN_STATE, None, None)


CACHE: Item = {"name": "c", "bucket": "b", "zone": ZONE, "state": "running", "createTime": "2026-10-01T00:00:00Z"}


def hits(*ago: int, bucket: str = "b", zone: str = ZONE, value: float = 5.0, **labels: str) -> Series:
    """Requests in the hours that ended so many hours before the end."""
    ends = [END.timestamp() - HOUR * hours for hours in ago]
    return Series(
        metric_labels={"cache_zone": zone} | labels,
        resource_type="gcs_bucket",
        resource_labels={"bucket_name": bucket},
        kind=Kind.DELTA,
        starts=array("d", [end - HOUR for end in ends]),
        ends=array("d", ends),
        values=array("d", [value] * len(ends)),
    )


def caches(*series: Series, cache: Item = CACHE, **more: Any) -> Context:
    return context({Part.CACHES: [cache]}, {Metric.CACHE_HITS: series}, **more)


def test_a_cache_without_hits_for_a_day_is_disabled() -> None:
    found = verdict("caches", caches(hits(24, 30)))
    assert (found.kind, found.since_confidence) == (VerdictKind.ORPHANED, Since.ESTIMATED)
    assert found.since == END - datetime.timedelta(hours=24)
    assert (found.waste, found.wasted_so_far) == (None, None)
    assert found.message.endswith("bills 0.09 a month; how many, the record does not say")
    assert found.remedy is not None
    assert found.remedy.kind is RemedyKind.DISABLE_CACHE
    never = verdict("caches", caches())
    assert (never.since, never.since_confidence) == (END - datetime.timedelta(days=7), Since.AT_LEAST)


@pytest.mark.parametrize(
    ("series", "idle"),
    [
        (hits(23), False),
        (hits(1, value=0.0), True),
        (hits(1, cache_hit="true"), False),
        (hits(1, cache_hit="false"), True),
        (hits(1, bucket="other"), True),
        (hits(1, zone="us-central1-a"), True),
    ],
)
def test_only_hits_of_the_cache_itself_count(series: Series, idle: bool) -> None:
    assert len(told("caches", caches(series))) == idle


@pytest.mark.parametrize("state", ["disabled", "paused", "creating"])
def test_a_cache_that_is_off_is_no_waste(state: str) -> None:
    assert told("caches", caches(cache={**CACHE, "state": state})) == []


def test_a_cache_of_the_future_or_of_today_is_not_judged() -> None:
    assert verdict("caches", caches(cache={**CACHE, "state": "warming"})).kind is VerdictKind.UNKNOWN_STATE
    assert verdict("caches", caches(cache={**CACHE, "createTime": NOW.isoformat()})).kind is VerdictKind.TOO_NEW
    blind = verdict("caches", context({Part.CACHES: [CACHE]}))
    assert (blind.kind, blind.remedy) == (VerdictKind.UNKNOWN_STATE, None)


def pool(status: Item, **fields: Any) -> Item:
    own = {
        "storagePoolType": f"{URL}/zones/{ZONE}/storagePoolTypes/hyperdisk-balanced",
        "poolProvisionedCapacityGb": "40960",
        "poolProvisionedIops": "20000",
        "poolProvisionedThroughput": "4096",
        "capacityProvisioningType": "ADVANCED",
        "performanceProvisioningType": "STANDARD",
        "state": "READY",
    }
    return zonal("storagePools", "lagoon", resourceStatus=status, **own) | fields


def test_a_pool_larger_than_its_disks_need() -> None:
    status = {
        "diskCount": "3",
        "poolUsedCapacityBytes": str(10_000 * GIB),
        "totalProvisionedDiskCapacityGb": "60000",
        "totalProvisionedDiskIops": "5000",
        "totalProvisionedDiskThroughput": "2048",
    }
    found = verdict("storage_pools", context({Part.STORAGE_POOLS: [pool(status)]}))
    assert found.kind is VerdictKind.OVERPROVISIONED
    # (40960 - 12000) x 0.12 + (20000 - 6000) x 0.004; half of the throughput is used, which is enough.
    assert found.waste == Amount.by_month(Decimal("3475.2") + 56)
    assert found.message == "10,000 of 40,960 GiB capacity used, 5,000 of 20,000 IOPS used"
    assert found.remedy is None


def test_a_pool_keeps_the_least_that_google_makes() -> None:
    status = {"diskCount": "1", "poolUsedCapacityBytes": str(GIB)}
    found = verdict("storage_pools", context({Part.STORAGE_POOLS: [pool(status)]}))
    assert found.waste == Amount.by_month((40_960 - 10_240) * Decimal("0.12"))
    small = pool(status, poolProvisionedCapacityGb="10240")
    assert told("storage_pools", context({Part.STORAGE_POOLS: [small]})) == []


def test_a_pool_without_disks_is_all_waste() -> None:
    found = verdict("storage_pools", context({Part.STORAGE_POOLS: [pool({"diskCount": "0"})]}))
    assert (found.kind, found.message) == (VerdictKind.ORPHANED, "no disk in it")
    assert found.waste == Amount.by_month(40_960 * Decimal("0.12") + 80 + 4096 * Decimal("0.03"))


@pytest.mark.parametrize("status", [{}, None, "x"])
def test_a_pool_that_does_not_say_its_use_is_not_idle(status: Any) -> None:
    assert told("storage_pools", context({Part.STORAGE_POOLS: [pool(status)]})) == []


ROUTER = regional("routers", "exit", id="5", network=f"{URL}/global/networks/default", nats=[{"name": "nat"}])


def received(gib: float, kind: Kind = Kind.DELTA, **labels: str) -> Series:
    """So many GiB a day, by the hour, over the whole window."""
    ends = [END.timestamp() - HOUR * hours for hours in range(168)]
    amount = gib * GIB / 24 if kind is Kind.DELTA else gib * GIB / DAY
    return Series(
        metric_labels={},
        resource_type="nat_gateway",
        resource_labels={"gateway_name": "nat", "region": "us-central1", "router_id": "5"} | labels,
        kind=kind,
        whole=False,
        starts=array("d", [end - HOUR if kind is Kind.DELTA else end for end in ends]),
        ends=array("d", ends),
        values=array("d", [amount] * len(ends)),
    )


def gateways(*series: Series, machines: tuple[Item, ...] = (), nodes: tuple[Item, ...] = (), **more: Any) -> Context:
    inventory = {Part.ROUTERS: [ROUTER], Part.INSTANCES: machines, Part.NODES: nodes}
    return context(inventory, {Metric.NAT_RECEIVED: series}, **more)


INSIDE = instance(networkInterfaces=[{"network": f"{URL}/global/networks/default"}])


@pytest.mark.parametrize("kind", [Kind.DELTA, Kind.GAUGE])
def test_bulk_downloads_through_nat(kind: Kind) -> None:
    (found,) = findings("nat", gateways(received(60, kind), received(60, kind, other="x"), machines=(INSIDE,)))
    assert found.rule == "NET-NAT-BULK"
    assert found.message == "nat takes in 120 GiB a day: 164.25 /month"  # 120 x 730 / 24 x 0.045
    assert found.monthly is not None
    assert round(found.monthly.monthly, 6) == Decimal("164.25")


@pytest.mark.parametrize(
    "series",
    [
        received(96),
        received(120, gateway_name="other"),
        received(120, region="us-east1"),
        received(120, router_id="6"),
    ],
)
def test_a_hundred_gib_a_day_and_what_goes_elsewhere_are_fine(series: Series) -> None:
    assert findings("nat", gateways(series, machines=(INSIDE,))) == []


@pytest.mark.parametrize(
    ("machines", "nodes", "idle"),
    [
        ((), (), True),
        ((INSIDE,), (), False),
        ((), (node(),), False),
        ((), (node(state="PREEMPTED"),), True),
        ((INSIDE | {"status": "TERMINATED"},), (), True),
        ((instance(networkInterfaces=[{"accessConfigs": [{"name": "External NAT"}]}]),), (), True),
        ((instance(networkInterfaces=[{"network": f"{URL}/global/networks/other"}]),), (), True),
        ((INSIDE | {"zone": f"{URL}/zones/us-east1-d"},), (), True),
    ],
)
def test_a_gateway_that_serves_nobody(machines: tuple[Item, ...], nodes: tuple[Item, ...], idle: bool) -> None:
    found = findings("nat", gateways(machines=machines, nodes=nodes))
    assert [each.rule for each in found] == ["NET-NAT-IDLE"] * idle
    gap = Missing(part="compute.instances us-east1-d", why="503")
    assert findings("nat", gateways(machines=machines, nodes=nodes, missing=(gap,))) == []
