"""Groups: the money of a template stands on the group that uses it, joined by dependency or by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

import pytest

from policies.estimate.model import Estimate, ResourceEstimate
from policies.resources import UNKNOWN, Resource, Value

GROUP = "gcp:compute/instanceGroupManager:InstanceGroupManager"
REGION_GROUP = "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager"
TEMPLATE = "gcp:compute/instanceTemplate:InstanceTemplate"
POLICY = "gcp:compute/resourcePolicy:ResourcePolicy"
AUTOSCALER = "gcp:compute/autoscaler:Autoscaler"
ZONE = "us-central1-b"
HOST: Mapping[str, Value] = {
    "name": "host",
    "machineType": "ct6e-standard-4t",
    "scheduling": {"provisioningModel": "SPOT"},
    "disks": (
        {
            "boot": True,
            "diskType": "hyperdisk-balanced",
            "diskSizeGb": 100,
            "provisionedIops": 3000,
            "provisionedThroughput": 140,
        },
        {"source": "model-volume", "mode": "READ_ONLY"},
    ),
}
BY_NAME: Mapping[str, Value] = {
    "zone": ZONE,
    "targetSize": 4,
    "versions": ({"instanceTemplate": "projects/p/global/instanceTemplates/host"},),
}

Make = Callable[..., Resource]
PriceFirst = Callable[..., ResourceEstimate]


def test_a_group_bills_its_template_times_its_size(make: Make, price_stack: Callable[..., Estimate]) -> None:
    template = make(TEMPLATE, "template", HOST)
    literal = make(GROUP, "literal", BY_NAME)
    joined = make(
        GROUP,
        "joined",
        {**BY_NAME, "versions": ({"instanceTemplate": UNKNOWN},)},
        property_dependencies={"versions": (template.urn,)},
    )
    found = price_stack(template, literal, joined)
    # 4 hosts x 4 chips x 0.60 x 730 = 7,008; 4 x 100 x 0.08 = 32. The shared volume is another resource.
    for group in found.resources[1:]:
        assert [(line.quantity, line.amount.monthly) for line in group.components] == [
            (Decimal(16), Decimal(7008)),
            (Decimal(400), Decimal(32)),
        ]
        assert group.title == "4 × ct6e-standard-4t · 16 chips · spot"
        assert group.complete
    assert found.resources[0].free.startswith("a template runs nothing")
    assert found.amount.monthly == 2 * Decimal(7040)


@pytest.mark.parametrize(
    ("topology", "title"),
    [("4x4", "v6e-16 · 4 hosts · 16 chips · spot"), ("8x8", "4 × ct6e-standard-4t · 16 chips · spot")],
)
def test_a_workload_policy_makes_a_slice_of_the_hosts(
    make: Make, price_first: PriceFirst, topology: str, title: str
) -> None:
    policy = make(POLICY, "torus", {"name": "torus", "workloadPolicy": {"acceleratorTopology": topology}})
    group = make(GROUP, inputs={**BY_NAME, "resourcePolicies": {"workloadPolicy": "torus"}})
    assert price_first(group, make(TEMPLATE, "template", HOST), policy).title == title


@pytest.mark.parametrize("size", [0, None])
def test_a_group_without_hosts_costs_nothing(make: Make, price_first: PriceFirst, size: Value) -> None:
    group = make(GROUP, inputs={**BY_NAME, "targetSize": size})
    for stack in ((group, make(TEMPLATE, "template", HOST)), (group,)):
        found = price_first(*stack)
        assert found.free == "its target size is 0"
        assert found.complete


@pytest.mark.parametrize(
    ("inputs", "path", "reason"),
    [
        ({"targetSize": UNKNOWN}, "targetSize", "known after the apply; it decides how many hosts bill"),
        ({"versions": ({"instanceTemplate": "elsewhere"},)}, "versions[0].instanceTemplate", "not in this stack"),
        ({"zone": None}, "zone", "set neither here nor on the provider"),
    ],
)
def test_what_cannot_be_seen_stays_unknown(
    make: Make, price_first: PriceFirst, inputs: Mapping[str, Value], path: str, reason: str
) -> None:
    found = price_first(make(GROUP, inputs={**BY_NAME, **inputs}), make(TEMPLATE, "template", HOST))
    assert [part.path for part in found.unknown] == [path]
    assert reason in found.unknown[0].reason
    assert found.nothing_known


def test_two_templates_in_one_group_are_not_guessed_at(make: Make, price_first: PriceFirst) -> None:
    versions = ({"instanceTemplate": "host"}, {"instanceTemplate": "other", "targetSize": {"fixed": 1}})
    templates = (make(TEMPLATE, "a", HOST), make(TEMPLATE, "b", {**HOST, "name": "other"}))
    found = price_first(make(GROUP, inputs={**BY_NAME, "versions": versions}), *templates)
    assert "2 templates" in found.unknown[0].reason


def test_an_autoscaler_sets_the_size(make: Make, price_first: PriceFirst) -> None:
    group = make(GROUP, inputs={**BY_NAME, "targetSize": None})
    scaler = make(AUTOSCALER, "scaler", {"target": UNKNOWN}, property_dependencies={"target": (group.urn,)})
    found = price_first(group, make(TEMPLATE, "template", HOST), scaler)
    assert found.unknown[0].reason == "set by the autoscaler scaler, hour by hour"


def test_a_template_of_another_series_with_scratch_disks_and_addresses(make: Make, price_first: PriceFirst) -> None:
    host = {
        "name": "host",
        "machineType": "e2-standard-4",
        "disks": (
            {"boot": True, "diskSizeGb": 20, "diskType": "pd-balanced"},
            {"type": "SCRATCH", "diskSizeGb": 375},
            {"diskSizeGb": 10, "diskType": "pd-ssd"},
        ),
        "networkInterfaces": ({"accessConfigs": ({},)},),
    }
    found = price_first(make(GROUP, inputs={**BY_NAME, "targetSize": 2}), make(TEMPLATE, "template", host))
    # Twice: 4 x 0.02 x 730 = 58.40; 16 x 0.003 x 730 = 35.04; 0.005 x 730 = 3.65; 375 x 0.08 = 30; 20 x 0.10; 10 x 0.17
    assert [(line.name, line.amount.monthly) for line in found.components] == [
        ("vCPU", Decimal("116.8")),
        ("memory", Decimal("70.08")),
        ("external address", Decimal("7.3")),
        ("local SSD", Decimal(60)),
        ("boot disk pd-balanced", Decimal(4)),
        ("disk 2 pd-ssd", Decimal("3.4")),
    ]
    assert found.title == "2 × e2-standard-4 · not spot"


@pytest.mark.parametrize(
    ("disk", "path"),
    [
        ({"boot": True, "diskType": "pd-ssd"}, "disks[0].diskSizeGb"),
        ({"boot": True, "diskType": UNKNOWN}, "disks[0].diskType"),
        ({"type": "SCRATCH"}, "disks[0].diskSizeGb"),
        ({"type": "SCRATCH", "diskSizeGb": UNKNOWN}, "disks[0].diskSizeGb"),
        ({"type": UNKNOWN, "diskSizeGb": 375}, "disks[0].type"),
        ((UNKNOWN,), "disks[0]"),
        (UNKNOWN, "disks"),
    ],
)
def test_an_unseen_disk_of_a_template_is_named(make: Make, price_first: PriceFirst, disk: Value, path: str) -> None:
    host = {**HOST, "disks": (disk,) if isinstance(disk, dict) else disk}
    found = price_first(make(GROUP, inputs=BY_NAME), make(TEMPLATE, "template", host))
    assert [part.path for part in found.unknown] == [path]
    assert found.amount.monthly == Decimal(7008)


def test_an_unseen_machine_leaves_the_disks_known(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(GROUP, inputs=BY_NAME), make(TEMPLATE, "template", {**HOST, "machineType": UNKNOWN}))
    assert (found.amount.monthly, [part.path for part in found.unknown]) == (Decimal(32), ["machineType"])


def test_a_regional_group_has_no_zone_to_price_spot_in(make: Make, price_first: PriceFirst) -> None:
    inputs = {"region": "us-central1", "targetSize": 4, "versions": ({"instanceTemplate": "host"},)}
    found = price_first(make(REGION_GROUP, inputs=inputs), make(TEMPLATE, "template", HOST))
    # This book knows spot chips of the zone only; what it knows of the region is no price for them.
    assert [part.item for part in found.unpriced] == ["tpu.v6e.chip"]
    assert found.amount.monthly == Decimal(32)


def test_a_disk_of_a_template_may_stand_in_a_pool(make: Make, price_first: PriceFirst) -> None:
    disk: Mapping[str, Value] = {"boot": True, "diskType": "hyperdisk-balanced", "diskSizeGb": 100}
    template = make(TEMPLATE, "template", {**HOST, "disks": ({**disk, "storagePool": "pool"},)})
    found = price_first(make(GROUP, "hosts", BY_NAME), template)
    assert [line.name for line in found.components] == ["TPU v6e chip, spot"]
    assert found.notes == ("disk 0 of each host stands in a storage pool, which bills for it",)


def test_the_licence_of_a_template_bills_on_every_host(make: Make, price_first: PriceFirst) -> None:
    disks = (
        {"diskType": "pd-balanced", "diskSizeGb": 10, "sourceImage": "debian-cloud/debian-12"},
        {"boot": True, "diskType": "pd-balanced", "diskSizeGb": 50, "sourceImage": "windows-cloud/windows-2022"},
    )
    template = make(TEMPLATE, "template", {"name": "host", "machineType": "e2-standard-4", "disks": disks})
    found = price_first(make(GROUP, "hosts", BY_NAME), template)
    # 4 hosts of 4 vCPUs
    assert [(part.item, part.quantity) for part in found.unpriced] == [("license.windows", Decimal(16))]


@pytest.mark.parametrize(
    ("zones", "location", "priced"),
    [
        (("us-central1-b",), "us-central1-b", True),
        (("projects/p/zones/us-central1-b",), "us-central1-b", True),
        # In several zones the chips have several prices.
        (("us-central1-b", "us-central1-c"), "us-central1", False),
        ((), "us-central1", False),
    ],
)
def test_a_group_of_a_region_that_names_one_zone_has_its_prices(
    make: Make, price_first: PriceFirst, zones: tuple[str, ...], location: str, priced: bool
) -> None:
    inputs = {**BY_NAME, "zone": None, "region": "us-central1", "distributionPolicyZones": zones}
    found = price_first(make(REGION_GROUP, "hosts", inputs), make(TEMPLATE, "template", HOST))
    assert found.location == location
    assert ("tpu.v6e.chip" in {line.item for line in found.components}) is priced
    assert ("tpu.v6e.chip" in {part.item for part in found.unpriced}) is not priced


def test_a_zone_of_a_region_that_nobody_can_see_is_named(make: Make, price_first: PriceFirst) -> None:
    inputs = {**BY_NAME, "zone": None, "region": "us-central1", "distributionPolicyZones": (UNKNOWN,)}
    found = price_first(make(REGION_GROUP, "hosts", inputs), make(TEMPLATE, "template", HOST))
    assert [part.path for part in found.unknown] == ["distributionPolicyZones[0]"]
