"""The engine: what is listed, what adds up, and the same number from every source."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.estimate.engine import compare_spot, estimate
from policies.estimate.model import Estimate, Freshness
from policies.money import plain
from policies.prices.book import PriceBook
from policies.resources import UNKNOWN, Resource, ResourceSet, Value
from policies.usage import Usage

AS_OF = datetime.date(2026, 11, 15)
VM = "gcp:tpu/v2Vm:V2Vm"
INSTANCE = "gcp:compute/instance:Instance"
GROUP = "gcp:compute/instanceGroupManager:InstanceGroupManager"
TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"
DISK = "gcp:compute/disk:Disk"
BUCKET = "gcp:storage/bucket:Bucket"
SNAPSHOT = "gcp:compute/snapshot:Snapshot"

Make = Callable[..., Resource]
PriceStack = Callable[..., Estimate]

SLICE: Mapping[str, Value] = {"acceleratorType": "v6e-8", "zone": "us-central1-b", "schedulingConfig": {"spot": True}}
HOST: Mapping[str, Value] = {
    "name": "host",
    "machineType": "ct6e-standard-4t",
    "scheduling": {"provisioningModel": "SPOT"},
    "disks": ({"boot": True, "diskSizeGb": 50, "diskType": "pd-balanced"},),
}
VOLUME: Mapping[str, Value] = {
    "name": "volume",
    "type": "hyperdisk-ml",
    "size": 200,
    "provisionedThroughput": 1200,
    "zone": "us-central1-b",
}
USED = {"checkpoints": {"gib": "100", "churn_gib_per_day": "50"}}


def program(make: Make) -> tuple[Resource, ...]:
    """A small stack as a program declares it, before anything exists."""
    template = make(TEMPLATE, "template", HOST)
    return (
        make("pulumi:pulumi:Stack", "p-dev"),
        make(VM, "trainer", SLICE),
        template,
        make(
            GROUP,
            "group",
            {"zone": "us-central1-b", "targetSize": 4, "versions": ({"instanceTemplate": UNKNOWN},)},
            property_dependencies={"versions": (template.urn,)},
        ),
        make(DISK, "volume", VOLUME),
        make(BUCKET, "checkpoints", {"location": "us-central1"}),
        make("gcp:compute/network:Network", "network", {"name": "net"}),
    )


def state(make: Make) -> tuple[Resource, ...]:
    """The same stack as a state file has it: literal names, answers of the provider, no recorded dependencies."""
    return (
        make("pulumi:pulumi:Stack", "p-dev"),
        make(
            VM, "trainer", SLICE, {**SLICE, "acceleratorConfig": {"type": "V6E", "topology": "2x4"}, "state": "READY"}
        ),
        make(TEMPLATE, "template", HOST, {**HOST, "selfLink": "https://x/global/instanceTemplates/host"}),
        make(
            GROUP,
            "group",
            {
                "zone": "us-central1-b",
                "targetSize": 4,
                "versions": ({"instanceTemplate": "https://x/global/instanceTemplates/host"},),
            },
        ),
        make(DISK, "volume", VOLUME, {**VOLUME, "users": ("a", "b")}),
        make(
            BUCKET, "checkpoints", {"location": "us-central1"}, {"location": "US-CENTRAL1", "storageClass": "STANDARD"}
        ),
        make("gcp:compute/network:Network", "network", {"name": "net"}, {"name": "net"}),
    )


def test_a_stack_has_one_price_before_and_after_it_exists(make: Make, price_stack: PriceStack) -> None:
    declared, deployed = price_stack(*program(make), **USED), price_stack(*state(make), **USED)
    # slice 8 x 0.60 x 730 = 3,504; group 16 x 0.60 x 730 = 7,008 and 4 x 50 x 0.10 = 20;
    # volume 200 x 0.08 + 1,200 x 0.12 = 160; bucket (100 + 7 x 50) x 0.020 = 9
    assert declared.amount.monthly == Decimal(10701)
    assert declared.complete
    assert declared.fresh
    assert deployed.amount == declared.amount
    assert [found.amount for found in deployed.resources] == [found.amount for found in declared.resources]
    assert [found.title for found in deployed.resources] == [found.title for found in declared.resources]


def test_the_stack_providers_and_components_are_not_listed(make: Make, price_stack: PriceStack) -> None:
    component = replace(make("spotrail:infra:TpuSlice", "slice"), custom=False)
    found = price_stack(*program(make), component, make("pulumi:providers:gcp", "default"))
    assert [each.resource.name for each in found.resources] == [
        "trainer",
        "template",
        "group",
        "volume",
        "checkpoints",
        "network",
    ]


@pytest.mark.parametrize(
    "token", ["gcp:redis/instance:Instance", "aws:ec2/instance:Instance", "gcp:sql/databaseInstance:DatabaseInstance"]
)
def test_a_type_that_nobody_knows_is_unpriced_and_never_free(make: Make, price_stack: PriceStack, token: str) -> None:
    found = price_stack(make(token))
    assert found.resources[0].unpriced[0].reason == f"spotrail has no estimate for {token}"
    assert not found.resources[0].free
    assert not found.complete


def test_parts_of_a_third_of_a_cent_add_up_exactly(make: Make, price_stack: PriceStack) -> None:
    # 16.75 GiB x 0.020 = 0.335; three of them are 1.005, not 1.00 and not 1.02.
    buckets = [make(BUCKET, name, {"location": "us-central1"}) for name in "abc"]
    found = price_stack(*buckets, **{name: {"gib": "16.75"} for name in "abc"})
    assert plain(found.amount.monthly) == "1.005"


def test_the_zone_may_come_from_the_provider(make: Make, price_stack: PriceStack) -> None:
    provider = make("pulumi:providers:gcp", "gcp", {"zone": "US-CENTRAL1-B", "region": "us-east5"})
    inputs = {key: value for key, value in VOLUME.items() if key != "zone"}
    disk = make(DISK, "volume", inputs, provider=f"{provider.urn}::id")
    assert price_stack(provider, disk).resources[0].location == "us-central1-b"
    assert not price_stack(disk).complete


def test_a_region_of_the_provider_is_no_zone_and_nothing_stands_in_for_a_location(
    make: Make, price_stack: PriceStack
) -> None:
    provider = make("pulumi:providers:gcp", "gcp", {"region": "us-central1"})
    by_region = f"{provider.urn}::id"
    disk = make(DISK, "volume", {**VOLUME, "zone": None}, provider=by_region)
    assert [part.path for part in price_stack(disk, provider).resources[0].unknown] == ["zone"]
    address = make("gcp:compute/address:Address", "front", provider=by_region)
    assert price_stack(address, provider).resources[0].location == "us-central1"
    bucket = make(BUCKET, "checkpoints", provider=by_region)
    assert [part.path for part in price_stack(bucket, provider).resources[0].unknown] == ["location"]


@pytest.mark.parametrize("zone", ["us-central1-b", "US-CENTRAL1-B", "projects/p/zones/us-central1-b"])
def test_a_zone_may_be_written_in_any_way(make: Make, price_stack: PriceStack, zone: str) -> None:
    assert price_stack(make(DISK, "volume", {**VOLUME, "zone": zone})).amount.monthly == Decimal(160)


@pytest.mark.parametrize(
    ("token", "inputs"),
    [(INSTANCE, {"machineType": 7, "zone": "us-central1-b"}), (VM, {"acceleratorType": "v6e-8", "zone": 5})],
)
def test_a_machine_that_cannot_be_read_takes_no_other_price_along(
    make: Make, price_stack: PriceStack, token: str, inputs: Mapping[str, Value]
) -> None:
    found = price_stack(make(token, "odd", inputs), make(DISK, "volume", VOLUME))
    assert [each.complete for each in found.resources] == [False, True]
    assert "it must be text" in found.resources[0].unknown[0].reason


def test_a_usage_key_that_matches_nothing_is_noted(make: Make, price_stack: PriceStack) -> None:
    found = price_stack(*program(make), chekpoints={"gib": "5"})
    assert "usage: chekpoints matches no resource of this stack. Did you mean checkpoints?" in found.notes


@pytest.mark.parametrize(
    ("day", "freshness", "fresh"),
    [
        # The prices are of 2026-11-01: spot is ageing after 30 days and stale after 45.
        (datetime.date(2026, 12, 1), Freshness.FRESH, True),
        (datetime.date(2026, 12, 2), Freshness.AGEING, True),
        (datetime.date(2026, 12, 17), Freshness.STALE, False),
    ],
)
def test_an_old_price_is_used_and_said_to_be_old(
    make: Make, book: PriceBook, day: datetime.date, freshness: Freshness, fresh: bool
) -> None:
    found = estimate(ResourceSet((make(VM, "trainer", SLICE),)), Usage(), book, day)
    assert found.resources[0].components[0].freshness is freshness
    assert found.fresh is fresh
    assert found.amount.monthly == Decimal(3504)
    assert ("the spot price of tpu.v6e.chip is of 2026-11-01: stale" in found.notes) is not fresh


def test_a_price_of_a_later_day_is_used_and_said_to_be_so(make: Make, price_stack: PriceStack) -> None:
    found = price_stack(make("gcp:compute/address:Address", inputs={"region": "africa-south1"}))
    # 0.02 x 730; the tests are of 2026-11-15
    assert found.amount.monthly == Decimal("14.6")
    assert found.complete
    assert not found.fresh
    assert found.notes == (
        "the list price of network.ip.unused is of 2026-11-16, later than the day that ages are counted from: "
        "it counts as stale",
    )


def test_an_undated_price_of_nothing_does_not_make_the_total_stale(make: Make, price_stack: PriceStack) -> None:
    assert price_stack(make("gcp:monitoring/alertPolicy:AlertPolicy", "idle", {"conditions": ()})).fresh


@given(data=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_book_without_a_price_gives_a_lower_bound(make: Make, book: PriceBook, data: st.DataObject) -> None:
    resources = ResourceSet(program(make))
    usage = Usage(entries={"checkpoints": {"gib": Decimal(100), "churn_gib_per_day": Decimal(50)}})
    whole = estimate(resources, usage, book, AS_OF)
    used = sorted({line.item for found in whole.resources for line in found.components if line.quantity})
    gone = data.draw(st.sets(st.sampled_from(used), min_size=1))
    poorer = replace(book, lines={key: lines for key, lines in book.lines.items() if key[0] not in gone})
    rest = estimate(resources, usage, poorer, AS_OF)
    assert not rest.complete
    assert rest.amount < whole.amount
    assert {part.item for found in rest.resources for part in found.unpriced} == gone
    # What is left is what was there before, line by line.
    kept = {(found.resource.urn, line.name): line for found in whole.resources for line in found.components}
    assert all(kept[found.resource.urn, line.name] == line for found in rest.resources for line in found.components)


@given(order=st.permutations(range(7)))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_order_of_resources_does_not_matter(make: Make, price_stack: PriceStack, order: list[int]) -> None:
    resources = program(make)
    assert price_stack(*(resources[index] for index in order), **USED).amount.monthly == Decimal(10701)


def test_spot_is_compared_with_the_same_chips_on_demand(make: Make, book: PriceBook) -> None:
    resources = ResourceSet((*program(make), make(VM, "dear", {**SLICE, "schedulingConfig": {}})))
    usage = Usage(entries={"trainer": {"hours_per_day": Decimal(12), "preemption_overhead": Decimal("0.10")}})
    found = compare_spot(estimate(resources, usage, book, AS_OF), resources, usage, book, AS_OF)
    assert found is not None
    # spot: 8 x 0.60 x 730 x 0.5 x 1.1 = 1,927.20 and 16 x 0.60 x 730 = 7,008
    assert found.spot.monthly == Decimal("8935.2")
    # on demand nothing is done twice: 8 x 2.70 x 730 x 0.5 = 7,884 and 16 x 2.70 x 730 = 31,536
    assert found.on_demand is not None
    assert found.on_demand.monthly == Decimal(39420)


def test_a_stack_without_spot_has_nothing_to_compare(make: Make, book: PriceBook) -> None:
    resources = ResourceSet((make(VM, "dear", {**SLICE, "schedulingConfig": {}}),))
    assert compare_spot(estimate(resources, Usage(), book, AS_OF), resources, Usage(), book, AS_OF) is None


def test_a_comparison_without_an_on_demand_price_says_so(make: Make, book: PriceBook) -> None:
    poorer = replace(book, lines={key: lines for key, lines in book.lines.items() if key[1].value == "spot"})
    resources = ResourceSet((make(VM, "trainer", SLICE),))
    found = compare_spot(estimate(resources, Usage(), poorer, AS_OF), resources, Usage(), poorer, AS_OF)
    assert found is not None
    assert found.on_demand is None


def large_stack(make: Make, count: int) -> ResourceSet:
    """`count` resources of ten kinds, each group with its template and each volume with its snapshot."""
    resources: list[Resource] = []
    for index in range(count // 10):
        name = f"{index:05}"
        host = make(TEMPLATE, f"host-{name}", {**HOST, "name": f"host-{name}"})
        literal = {"zone": "us-central1-b", "targetSize": 4, "versions": ({"instanceTemplate": f"x/host-{name}"},)}
        address = make("gcp:compute/address:Address", f"ip-{name}", {"region": "us-central1"})
        head = {"machineType": "e2-standard-4", "zone": "us-central1-b", "bootDisk": {"source": "boot"}}
        resources += [
            host,
            make(GROUP, f"group-{name}", literal),
            make(DISK, f"staging-{name}", {**VOLUME, "name": f"staging-{name}"}),
            make(SNAPSHOT, f"snap-{name}", {"sourceDisk": f"staging-{name}", "storageLocations": ("us",)}),
            make(DISK, f"volume-{name}", {**VOLUME, "size": None, "snapshot": f"snap-{name}"}),
            address,
            make(INSTANCE, f"head-{name}", head, property_dependencies={"networkInterfaces": (address.urn,)}),
            make(BUCKET, f"bucket-{name}", {"location": "us-central1"}),
            make(VM, f"slice-{name}", SLICE),
            make("gcp:pubsub/topic:Topic", f"topic-{name}"),
        ]
    return ResourceSet(tuple(resources))


def test_the_price_of_a_large_stack_is_linear(make: Make, book: PriceBook) -> None:
    def seconds(count: int) -> float:
        resources = large_stack(make, count)
        usage = Usage(entries={"bucket-*": {"epochs": Decimal(1), "dataset_gib": Decimal(1)}})
        start = time.thread_time()
        estimate(resources, usage, book, AS_OF)
        return time.thread_time() - start

    seconds(500)
    # Ten times the resources: a quadratic step anywhere would take a hundred times as long.
    assert min(seconds(5000), seconds(5000)) < 30 * seconds(500)


def test_pools_on_demand_are_no_part_of_what_spot_saves(make: Make, book: PriceBook) -> None:
    config = {"machineType": "ct6e-standard-4t", "diskType": "pd-balanced", "diskSizeGb": 50}
    pools = tuple(
        {"name": name, "nodeCount": 4, "nodeConfig": {**config, "spot": name == "cheap"}} for name in ("cheap", "dear")
    )
    cluster = make("gcp:container/cluster:Cluster", "gke", {"location": "us-central1-b", "nodePools": pools})
    resources = ResourceSet((cluster,))
    found = compare_spot(estimate(resources, Usage(), book, AS_OF), resources, Usage(), book, AS_OF)
    assert found is not None
    assert found.on_demand is not None
    # 16 x 0.60 x 730, and the same 16 x 2.70 x 730
    assert (found.spot.monthly, found.on_demand.monthly) == (Decimal(7008), Decimal(31536))
