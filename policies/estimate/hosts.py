"""The price of virtual machines, wherever they are declared: chips or vCPUs and memory, disks, external addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Final, final

from policies.estimate.capacity import Capacity
from policies.estimate.location import last_segment
from policies.estimate.market import ADDRESS_TYPES, Market, Part, joined, unknown
from policies.estimate.model import UnknownInput, Unpriced
from policies.hardware.discounts import sustained_share
from policies.hardware.machines import machine, series_of
from policies.hardware.slices import chips_of_machine
from policies.money import decimal_of
from policies.resources import Opaque, Resource, Value, dig
from policies.usage import ResourceUsage

CHIP: Final = "tpu.v6e.chip"
INCLUDED: Final = "vCPUs and memory of the TPU hosts are included"
SCRATCH_GIB: Final = 375
"""Size of a local SSD where none is said."""
DEAR_SSD_SERIES: Final = ("c4", "c4a", "c4d")
"""Series whose local SSDs have an item of their own, at up to twice the usual price."""


@final
@dataclass(frozen=True, kw_only=True)
class Terms:
    """Where, on what terms and for how long machines run."""

    location: str
    capacity: Capacity
    share: Fraction
    """Of the hours of a month, the part that bills; above 1 where spot work is done twice."""
    said: str = ""
    """How long that is, for a reader; empty for a whole month."""

    @classmethod
    def of(cls, location: str, capacity: Capacity, usage: ResourceUsage) -> Terms:
        """The terms of a resource that is used like that."""
        share = usage.share(spot=capacity is Capacity.SPOT)
        said = "" if share == 1 else f"{round(share * 100)} % of the hours of a month"
        return cls(location=location, capacity=capacity, share=share, said=said)

    def sustained(self, series: str) -> Terms:
        """The terms with the discount that the series gives for long use; it is for on-demand capacity only."""
        if self.capacity is not Capacity.ON_DEMAND or not self.share:
            return self
        paid = sustained_share(series, self.share)
        if paid == self.share:
            return self
        off = f"{decimal_of(round((1 - paid / self.share) * 100, 1)):f} % off for sustained use"
        return replace(self, share=paid, said=joined(self.said, off))

    def line(self, market: Market, name: str, item: str, quantity: Decimal | int, unit: str, *, note: str = "") -> Part:
        """A line that bills while the machines run."""
        if self.capacity is Capacity.FLEX_START:
            reason = f"flex-start has prices of its own, and the book has none for {item}"
            return Unpriced(item=item, reason=reason, quantity=Decimal(quantity), unit=unit)
        return market.line(
            f"{name}, spot" if self.capacity is Capacity.SPOT else name,
            item,
            quantity,
            unit,
            self.location,
            model=self.capacity.model,
            share=self.share,
            note=joined(self.said, self.capacity.note, note),
        )


@final
@dataclass(frozen=True, kw_only=True)
class Fleet:
    """So many equal VMs."""

    machine_type: str
    terms: Terms
    count: int = 1

    @property
    def chips(self) -> int | None:
        """TPU chips of all of them together; None where they have none."""
        each = chips_of_machine(self.machine_type)
        return None if each is None else each * self.count

    @property
    def title(self) -> str:
        """What they are: `4 × ct6e-standard-8t · 32 chips · spot`, `e2-standard-4 · not spot`."""
        many = f"{self.count} × " if self.count != 1 else ""
        spot = self.terms.capacity is Capacity.SPOT
        if self.chips is None:
            return f"{many}{self.machine_type} · {'spot' if spot else 'not spot'}"
        return f"{many}{self.machine_type} · {self.chips} chips · {self.terms.capacity.value}"


def machine_type_of(resource: Resource) -> str | UnknownInput:
    """The machine type of an instance or a template."""
    found = resource.text("machineType")
    if isinstance(found, Opaque):
        return unknown(found, "machineType", decides="what the machine costs")
    if not found:
        return UnknownInput(path="machineType", reason="not set; it decides what the machine costs")
    return last_segment(found)


def fleet_parts(market: Market, resource: Resource, fleet: Fleet) -> Iterator[Part]:
    """Everything about `fleet` that bills while it runs; `resource` is the instance or template that describes it."""
    yield from machine_parts(market, fleet)
    yield from accelerator_parts(resource, fleet.count)
    yield from _scratch_parts(market, resource, fleet)
    yield from _address_parts(market, resource, fleet)


def machine_parts(market: Market, fleet: Fleet) -> Iterator[Part]:
    """Chips of TPU hosts; of other machines the vCPUs and the memory."""
    if fleet.chips is not None:
        yield chip_line(market, fleet.chips, fleet.terms, note=INCLUDED)
        return
    found = machine(fleet.machine_type)
    if found is None:
        yield Unpriced(
            item=f"instance.{fleet.machine_type}",
            reason=f'machine type "{fleet.machine_type}" is not known; no other type stands in for it',
            quantity=Decimal(fleet.count),
            unit="VM-hour",
        )
        return
    series = f"{found.series}-custom" if found.custom else found.series
    vcpus, memory = found.vcpus * fleet.count, found.memory_gib * fleet.count
    terms = fleet.terms.sustained(found.series)
    yield terms.line(market, "vCPU", f"instance.{series}.vcpu", vcpus, "vCPU-hour")
    yield terms.line(market, "memory", f"instance.{series}.memory", memory, "GiB-hour")


def chip_line(market: Market, chips: int, terms: Terms, *, name: str = "TPU v6e chip", note: str = "") -> Part:
    """The line of so many v6e chips. A chip-hour is one chip for one hour: hosts do not multiply it."""
    label = name if terms.capacity is Capacity.SPOT else f"{name}, {terms.capacity.value}"
    return terms.line(market, label, CHIP, chips, "chip-hour", note=note)


def address_line(market: Market, count: int, terms: Terms) -> Part:
    """The line of `count` external addresses that come and go with their machines; flex-start has no other price."""
    if terms.capacity is Capacity.FLEX_START:
        terms = replace(terms, capacity=Capacity.ON_DEMAND)
    return terms.line(market, "external address", "network.ip.in-use", count, "IP-hour")


def _address_parts(market: Market, resource: Resource, fleet: Fleet) -> Iterator[Part]:
    """One address for each access configuration that no address resource of the stack pays for."""
    interfaces = resource.items("networkInterfaces")
    if isinstance(interfaces, Opaque):
        yield unknown(interfaces, "networkInterfaces", decides="whether the VM has an external address")
        return
    static = bool(market.resources.references(resource, "networkInterfaces", *ADDRESS_TYPES))
    count = 0
    for index, interface in enumerate(interfaces):
        configs = dig(interface, "accessConfigs")
        if isinstance(configs, Opaque):
            yield unknown(configs, "networkInterfaces", index, "accessConfigs", decides="its external addresses")
        elif isinstance(configs, tuple):
            count += sum(not _paid(market, config, static=static) for config in configs)
    if count:
        yield address_line(market, count * fleet.count, fleet.terms)


def _scratch_parts(market: Market, resource: Resource, fleet: Fleet) -> Iterator[Part]:
    disks = resource.items("scratchDisks")
    if isinstance(disks, Opaque):
        yield unknown(disks, "scratchDisks", decides="the local SSDs")
        return
    gib = 0
    for index in range(len(disks)):
        size = resource.integer("scratchDisks", index, "size")
        if isinstance(size, Opaque):
            yield unknown(size, "scratchDisks", index, "size", decides="how much local SSD bills")
        else:
            gib += SCRATCH_GIB if size is None else size
    if gib:
        yield local_ssd_line(market, gib, fleet)


def local_ssd_line(market: Market, gib: int, fleet: Fleet) -> Part:
    """The line of local SSDs, `gib` on each VM: they bill while the VM runs, on some series at a price of their own."""
    series = series_of(fleet.machine_type)
    item = f"disk.local-ssd-{series}.capacity" if series in DEAR_SSD_SERIES else "disk.local-ssd.capacity"
    return fleet.terms.line(market, "local SSD", item, gib * fleet.count, "GiB-month")


def accelerator_parts(resource: Resource, count: int, *at: str | int) -> Iterator[Part]:
    """GPUs of `count` machines, described at the path `at`: counted and unpriced, since the book has none."""
    path = (*at, "guestAccelerators")
    found = resource.items(*path)
    if isinstance(found, Opaque):
        yield unknown(found, *path, decides="the GPUs")
        return
    for index in range(len(found)):
        kind, number = (resource.value(*path, index, key) for key in ("type", "count"))
        name = last_segment(kind) if isinstance(kind, str) else "unknown"
        yield Unpriced(
            item=f"accelerator.{name}",
            reason=f"spotrail has no price for the accelerator {name}",
            quantity=Decimal(number * count) if isinstance(number, int) else None,
            unit="accelerator-hour" if isinstance(number, int) else "",
        )


def _paid(market: Market, config: Value, *, static: bool) -> bool:
    """Whether an address resource pays for the address of an access configuration."""
    address = config.get("natIp") if isinstance(config, Mapping) else None
    return address is not None and (static or market.reserves(address))
