"""The eight v6e shapes, and what is refused."""

import pytest

from policies.hardware.errors import HardwareError
from policies.hardware.slices import DEFAULT_TPU, chips_of_machine, shape, shape_of_topology, shapes

HOSTS_AND_CHIPS = {
    "v6e-1": (1, 1, "1x1", "ct6e-standard-1t"),
    "v6e-4": (1, 4, "2x2", "ct6e-standard-4t"),
    "v6e-8": (1, 8, "2x4", "ct6e-standard-8t"),
    "v6e-16": (4, 4, "4x4", "ct6e-standard-4t"),
    "v6e-32": (8, 4, "4x8", "ct6e-standard-4t"),
    "v6e-64": (16, 4, "8x8", "ct6e-standard-4t"),
    "v6e-128": (32, 4, "8x16", "ct6e-standard-4t"),
    "v6e-256": (64, 4, "16x16", "ct6e-standard-4t"),
}


def test_these_eight_and_no_other() -> None:
    assert list(shapes()) == list(HOSTS_AND_CHIPS)


@pytest.mark.parametrize("name", HOSTS_AND_CHIPS)
def test_hosts_chips_topology_and_machine(name: str) -> None:
    found = shape(name)
    assert (found.hosts, found.chips_per_host, found.topology, found.machine_type) == HOSTS_AND_CHIPS[name]
    assert found.chips == int(name.removeprefix("v6e-")) == found.hosts * found.chips_per_host
    rows, columns = (int(side) for side in found.topology.split("x"))
    assert rows * columns == found.chips
    assert found.multi_host is (found.hosts > 1)


@pytest.mark.parametrize("name", ["v6e-2", "v6e-3", "v6e-512", "v6e-08", "V6E-8", "", "v5e-8", "v2-8", "v6e-8 "])
def test_every_other_name_is_refused_with_the_valid_ones(name: str) -> None:
    with pytest.raises(HardwareError) as refusal:
        shape(name)
    assert f'"{name}"' in str(refusal.value)
    assert "v6e-1, v6e-4, v6e-8, v6e-16, v6e-32, v6e-64, v6e-128, v6e-256" in str(refusal.value)
    assert "policies/hardware/slices.csv" in str(refusal.value)


@pytest.mark.parametrize("name", ["v6e-08", "V6E-8", "v6e-8 "])
def test_a_near_miss_is_told_what_was_meant(name: str) -> None:
    with pytest.raises(HardwareError, match=r"Did you mean v6e-8\?"):
        shape(name)


def test_a_grid_is_a_shape() -> None:
    assert shape_of_topology("2x4") is shape("v6e-8")
    assert shape_of_topology("16x16") is shape("v6e-256")


@pytest.mark.parametrize(("turned", "meant"), [("4x2", "2x4"), ("8x4", "4x8"), ("16x8", "8x16"), ("2X4", "2x4")])
def test_the_shorter_side_stands_first(turned: str, meant: str) -> None:
    with pytest.raises(HardwareError, match=rf'topology "{turned}" .*Did you mean {meant}\?'):
        shape_of_topology(turned)


@pytest.mark.parametrize("grid", ["3x3", "2x2x1", "", "axb"])
def test_a_grid_without_a_shape_is_refused(grid: str) -> None:
    with pytest.raises(HardwareError, match="Valid: 1x1, 2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16"):
        shape_of_topology(grid)


@pytest.mark.parametrize(
    ("machine", "chips"),
    [("ct6e-standard-1t", 1), ("ct6e-standard-4t", 4), ("ct6e-standard-8t", 8), ("n2-standard-8", None), ("", None)],
)
def test_chips_of_a_host(machine: str, chips: int | None) -> None:
    assert chips_of_machine(machine) == chips


def test_the_default_of_the_provider_is_no_v6e() -> None:
    assert DEFAULT_TPU == "v2-8"
    assert DEFAULT_TPU not in shapes()
