"""Limits, defaults and access modes of disk types."""

import pytest

from policies.hardware.disks import (
    ACCESS_MODES,
    DEFAULT_DISK_TYPE,
    check_disk,
    default_throughput,
    disk_type,
    disk_types,
    floor_throughput,
    tpu_attachable,
)
from policies.hardware.errors import HardwareError


@pytest.mark.parametrize(("gib", "throughput"), [(140, 400), (140, 12_000), (1000, 1_200_000), (4, 400)])
def test_a_hyperdisk_ml_within_its_limits_passes(gib: int, throughput: int) -> None:
    assert check_disk("hyperdisk-ml", gib, throughput) == ()


@pytest.mark.parametrize(
    ("gib", "throughput", "said"),
    [
        (140, 399, "throughput 399 MiB/s: hyperdisk-ml of 140 GiB takes 400 to 224,000 MiB/s"),
        (1000, 1_200_001, "hyperdisk-ml of 1,000 GiB takes 400 to 1,200,000 MiB/s"),
        (3, 400, "size 3 GiB: hyperdisk-ml takes 4 to 65,536 GiB"),
        (65_537, 8000, "size 65,537 GiB"),
        (None, 2400, "throughput 2,400 MiB/s without a size"),
        (700, 1_200_000, "takes 400 to 1,120,000 MiB/s"),
        (10_000, 1199, "takes 1,200 to 1,200,000 MiB/s"),
    ],
)
def test_a_hyperdisk_ml_out_of_range_is_told_the_range(gib: int | None, throughput: int, said: str) -> None:
    mistakes = check_disk("hyperdisk-ml", gib, throughput)
    assert len(mistakes) == 1
    assert said in mistakes[0]


def test_a_size_above_the_most_is_refused_whatever_the_throughput() -> None:
    assert any("65,537" in mistake for mistake in check_disk("hyperdisk-ml", 65_537, 400))


def test_the_limit_of_another_type_is_not_applied() -> None:
    """A generic 1..7124 rule would reject 12,000 and accept 300."""
    assert check_disk("hyperdisk-ml", 140, 12_000) == ()
    assert check_disk("hyperdisk-ml", 140, 300)
    assert check_disk("hyperdisk-balanced", 140, 300) == ()


@pytest.mark.parametrize(
    ("gib", "default", "floor", "most"),
    [
        (4, 400, 400, 6400),
        (16, 400, 400, 25_600),
        (17, 408, 400, 27_200),
        (500, 12_000, 400, 800_000),
        (750, 18_000, 400, 1_200_000),
        (2048, 49_152, 400, 1_200_000),
        (3334, 80_016, 401, 1_200_000),
        (65_536, 1_572_864, 7865, 1_200_000),
    ],
)
def test_throughput_of_hyperdisk_ml_by_size(gib: int, default: int, floor: int, most: int) -> None:
    assert (default_throughput(gib), floor_throughput(gib)) == (default, floor)
    assert check_disk("hyperdisk-ml", gib, most) == ()
    assert check_disk("hyperdisk-ml", gib, most + 1)


@pytest.mark.parametrize(("readers", "floor"), [(0, 400), (20, 400), (21, 420), (60, 1200), (2500, 50_000)])
def test_readers_raise_the_floor_from_21_up(readers: int, floor: int) -> None:
    assert floor_throughput(200, readers) == floor


def test_iops_of_hyperdisk_ml_cannot_be_set() -> None:
    assert check_disk("hyperdisk-ml", 140, 400, 6400) == (
        "IOPS 6,400: hyperdisk-ml has no IOPS of its own to set; leave it out",
    )


@pytest.mark.parametrize("mode", ["READ_WRITE_SINGLE", "READ_ONLY_MANY"])
def test_access_modes_of_hyperdisk_ml(mode: str) -> None:
    assert check_disk("hyperdisk-ml", 140, 400, access_mode=mode) == ()


def test_the_mode_that_the_provider_invented() -> None:
    (mistake,) = check_disk("hyperdisk-ml", 140, 400, access_mode="READ_ONLY_SINGLE")
    assert "READ_ONLY_SINGLE" in mistake
    assert mistake.endswith("Did you mean READ_ONLY_MANY?")


@pytest.mark.parametrize("mode", ["read_only_many", "READ_ONLY_MANNY", "ReadOnlyMany"])
def test_a_misspelt_mode_is_told_the_near_one(mode: str) -> None:
    (mistake,) = check_disk("hyperdisk-ml", 140, 400, access_mode=mode)
    assert mistake.endswith("Did you mean READ_ONLY_MANY?")


def test_hyperdisk_ml_has_no_many_writers() -> None:
    assert check_disk("hyperdisk-ml", 140, 400, access_mode="READ_WRITE_MANY") == (
        "access mode READ_WRITE_MANY: hyperdisk-ml takes READ_WRITE_SINGLE or READ_ONLY_MANY",
    )


def test_there_are_three_access_modes() -> None:
    assert sorted(ACCESS_MODES) == ["READ_ONLY_MANY", "READ_WRITE_MANY", "READ_WRITE_SINGLE"]
    for found in disk_types().values():
        assert set(found.access_modes) <= set(ACCESS_MODES)


def test_a_persistent_disk_has_no_access_mode() -> None:
    (mistake,) = check_disk("pd-balanced", 100, access_mode="READ_ONLY_MANY")
    assert "no access mode" in mistake


def test_every_mistake_is_told() -> None:
    assert len(check_disk("hyperdisk-ml", 3, 399, 1, "READ_ONLY_SINGLE")) == 4


def test_an_unknown_type_is_told_the_known_ones() -> None:
    with pytest.raises(HardwareError, match=r'disk type "hyperdisk-lm".*Did you mean hyperdisk-ml\?'):
        disk_type("hyperdisk-lm")
    (mistake,) = check_disk("pd-future", 10)
    assert "pd-balanced" in mistake


@pytest.mark.parametrize(
    ("gib", "iops", "throughput"), [(10, 3060, 155), (100, 3600, 290), (50, 3300, 215), (4096, 27_576, 2400)]
)
def test_what_an_unset_hyperdisk_balanced_gets(gib: int, iops: int, throughput: int) -> None:
    found = disk_type("hyperdisk-balanced")
    assert found.iops is not None
    assert found.throughput is not None
    assert (found.iops.default_at(gib), found.throughput.default_at(gib)) == (iops, throughput)
    assert (found.iops.included, found.throughput.included) == (3000, 140)


def test_an_unknown_default_is_none_and_not_zero() -> None:
    found = disk_type("hyperdisk-extreme").iops
    assert found is not None
    assert found.default_at(1000) is None


@pytest.mark.parametrize(("gib", "iops", "right"), [(4, 2000, True), (4, 2001, False), (100, 2999, False)])
def test_iops_of_hyperdisk_balanced_by_size(gib: int, iops: int, right: bool) -> None:
    assert (check_disk("hyperdisk-balanced", gib, iops=iops) == ()) is right


def test_v6e_takes_two_types_only() -> None:
    assert [name for name in disk_types() if tpu_attachable(name)] == ["hyperdisk-ml", "hyperdisk-balanced"]


def test_what_boots_and_what_many_can_read() -> None:
    assert not disk_type("hyperdisk-ml").bootable
    assert disk_type("hyperdisk-balanced").bootable
    assert disk_type("hyperdisk-ml").read_only_many
    assert not disk_type("hyperdisk-balanced").read_only_many
    assert disk_type("hyperdisk-ml").max_readers == 2500


def test_the_default_of_the_provider_is_a_known_type() -> None:
    assert disk_type(DEFAULT_DISK_TYPE).name == "pd-standard"


def test_zonal_and_regional() -> None:
    assert disk_type("hyperdisk-ml").zonal
    assert not disk_type("hyperdisk-ml").regional
    assert disk_type("pd-balanced").regional
