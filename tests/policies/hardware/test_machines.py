"""What machine types bill, and what they boot from."""

from decimal import Decimal

import pytest

from policies.hardware.disks import disk_types
from policies.hardware.machines import BootDiskStatus, MachineType, boot_disk_verdict, machine, series_of
from policies.hardware.slices import shapes
from policies.hardware.tables import rows

OK, REFUSED, UNKNOWN = BootDiskStatus.OK, BootDiskStatus.REFUSED, BootDiskStatus.UNKNOWN


@pytest.mark.parametrize(
    ("name", "series", "vcpus", "memory"),
    [
        ("e2-standard-4", "e2", "4", "16"),
        ("e2-medium", "e2", "1", "4"),
        ("e2-micro", "e2", "0.25", "1"),
        ("n1-standard-1", "n1", "1", "3.75"),
        ("n1-highcpu-2", "n1", "2", "1.8"),
        ("n2-standard-8", "n2", "8", "32"),
        ("n2-highmem-128", "n2", "128", "864"),
        ("c4-standard-8", "c4", "8", "30"),
        ("c4-standard-2", "c4", "2", "7"),
        ("c4d-highmem-8", "c4d", "8", "63"),
        ("c3d-highcpu-30", "c3d", "30", "59"),
        ("c2-standard-30", "c2", "30", "120"),
        ("t2d-standard-60", "t2d", "60", "240"),
        ("ct6e-standard-4t", "ct6e", "180", "720"),
    ],
)
def test_a_predefined_type(name: str, series: str, vcpus: str, memory: str) -> None:
    expected = MachineType(name=name, series=series, vcpus=Decimal(vcpus), memory_gib=Decimal(memory))
    assert machine(name) == expected


@pytest.mark.parametrize(
    ("name", "series", "vcpus", "memory"),
    [
        ("n2-custom-4-8192", "n2", "4", "8"),
        ("custom-2-7680", "n1", "2", "7.5"),
        ("e2-custom-2-4096", "e2", "2", "4"),
        ("n4-custom-2-4352", "n4", "2", "4.25"),
    ],
)
def test_a_custom_type(name: str, series: str, vcpus: str, memory: str) -> None:
    expected = MachineType(name=name, series=series, vcpus=Decimal(vcpus), memory_gib=Decimal(memory), custom=True)
    assert machine(name) == expected


@pytest.mark.parametrize(
    "name",
    ["n2-standard-7", "n9-standard-4", "c3-standard-8-lssd", "c4-custom-4-8192", "n2-custom-4-8192-ext", "", "n2"],
)
def test_what_the_table_does_not_have_is_none(name: str) -> None:
    assert machine(name) is None


def test_the_hosts_of_every_slice_are_machine_types() -> None:
    assert all(machine(shape.machine_type) for shape in shapes().values())


@pytest.mark.parametrize(
    ("name", "disk", "expected"),
    [
        ("c4-standard-8", "pd-balanced", REFUSED),
        ("n4-standard-2", "pd-ssd", REFUSED),
        ("n1-standard-1", "hyperdisk-balanced", REFUSED),
        ("c4-standard-8", "hyperdisk-balanced", OK),
        ("n2-standard-8", "pd-balanced", OK),
        ("c4-standard-8", "hyperdisk-ml", REFUSED),
        ("n2-standard-8", "hyperdisk-ml", REFUSED),
        ("z9-standard-8", "hyperdisk-ml", REFUSED),
        ("e2-standard-4", "pd-balanced", OK),
        ("ct6e-standard-8t", "pd-balanced", REFUSED),
        ("ct6e-standard-8t", "hyperdisk-balanced", OK),
        ("custom-4-8192", "hyperdisk-balanced", REFUSED),
        ("c2-standard-4", "pd-balanced", OK),
        ("c2-standard-4", "hyperdisk-balanced", UNKNOWN),
        ("z9-standard-8", "pd-balanced", UNKNOWN),
        ("e2-standard-4", "pd-extreme", UNKNOWN),
        ("e2-standard-4", "pd-future", UNKNOWN),
    ],
)
def test_what_a_machine_boots_from(name: str, disk: str, expected: BootDiskStatus) -> None:
    verdict = boot_disk_verdict(name, disk)
    assert verdict.status is expected
    assert verdict.reason


def test_a_refusal_says_what_the_series_boots_from() -> None:
    assert boot_disk_verdict("c4-standard-8", "pd-balanced").reason == (
        "c4-standard-8 does not boot from pd-balanced: "
        "c4 boots from hyperdisk-balanced (table of 2026-11, policies/hardware/boot_disks.csv)"
    )


def test_an_unknown_series_is_said_to_be_unknown() -> None:
    assert 'series "z9" is not in the table of 2026-11' in boot_disk_verdict("z9-standard-8", "pd-balanced").reason


def test_every_series_with_machine_types_has_boot_disks() -> None:
    assert {row["series"] for row in rows("machine_types")} == {row["series"] for row in rows("boot_disks")}


@pytest.mark.parametrize("row", rows("boot_disks"), ids=lambda row: row["series"])
def test_boot_disks_are_known_bootable_and_not_both(row: dict[str, str]) -> None:
    boots, refuses = row["boots"].split(), row["refuses"].split()
    assert boots
    assert all(disk_types()[name].bootable for name in boots)
    assert all(name in disk_types() for name in refuses)
    assert not set(boots) & set(refuses)


def test_the_series_of_a_name() -> None:
    assert series_of("c4-standard-8") == "c4"
    assert series_of("custom-4-8192") == "n1"
