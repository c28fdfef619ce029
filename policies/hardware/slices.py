"""The eight shapes of a TPU v6e slice: v6e-8 is one host with 8 chips, from 16 chips up a host has 4."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final, final

from policies.hardware.errors import HardwareError, hint
from policies.hardware.tables import provenance, rows

DEFAULT_TPU: Final = "v2-8"
"""What the provider asks for when a TPU names neither an accelerator type nor a configuration. Not a v6e."""


@final
@dataclass(frozen=True, kw_only=True)
class Shape:
    """One shape of a slice."""

    accelerator_type: str
    """`v6e-16`; the number counts chips."""
    topology: str
    """`4x4`: the grid of chips, the shorter side first."""
    chips: int
    """All chips of the slice; what is billed."""
    hosts: int
    """TPU VMs that make up the slice."""
    chips_per_host: int
    """Chips that one VM sees, and that its Ray worker advertises."""
    machine_type: str
    """Machine type of each host on Compute Engine."""

    def __post_init__(self) -> None:
        if self.hosts * self.chips_per_host != self.chips:
            raise ValueError(f"{self.accelerator_type}: {self.hosts} x {self.chips_per_host} is not {self.chips}")

    @property
    def multi_host(self) -> bool:
        """Whether the slice has more than one VM: data disks are then read-only."""
        return self.hosts > 1


@cache
def shapes() -> Mapping[str, Shape]:
    """Every v6e shape by its accelerator type, smallest first. Source: slices.csv."""
    found = (
        Shape(
            accelerator_type=row["accelerator_type"],
            topology=row["topology"],
            chips=int(row["chips"]),
            hosts=int(row["hosts"]),
            chips_per_host=int(row["chips_per_host"]),
            machine_type=row["machine_type"],
        )
        for row in rows("slices")
    )
    return MappingProxyType({shape.accelerator_type: shape for shape in found})


def shape(name: str) -> Shape:
    """The shape of the accelerator type `name`, letter by letter.

    Raises HardwareError, which lists the valid names, for every other one.
    """
    found = shapes().get(name)
    if found is None:
        raise HardwareError(
            f'accelerator type "{name}" is not a v6e shape ({provenance("slices")}). '
            f"Valid: {', '.join(shapes())}.{hint(name, shapes())}"
        )
    return found


def shape_of_topology(topology: str) -> Shape:
    """The shape with that grid of chips; the shorter side stands first, so `4x2` is refused and told `2x4`.

    Raises HardwareError, which lists the valid grids.
    """
    by_grid = {shape.topology: shape for shape in shapes().values()}
    if topology in by_grid:
        return by_grid[topology]
    turned = "x".join(sorted(topology.lower().split("x"), key=_side))
    meant = f" Did you mean {turned}?" if turned in by_grid else hint(topology, by_grid)
    raise HardwareError(
        f'topology "{topology}" is not a v6e shape ({provenance("slices")}). Valid: {", ".join(by_grid)}.{meant}'
    )


def chips_of_machine(machine_type: str) -> int | None:
    """Chips of one VM of that machine type (`ct6e-standard-8t` has 8); None where it is not a v6e host."""
    for shape in shapes().values():
        if shape.machine_type == machine_type:
            return shape.chips_per_host
    return None


def _side(text: str) -> tuple[int, str]:
    return (int(text) if text.isdecimal() else 0, text)
