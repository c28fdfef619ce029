"""What the things of a record cost, from the same book and by the same code as an estimate."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Final, final

from policies.audit.as_pulumi import FORWARDING, INSTANCE, NAT, as_pulumi, urn_of
from policies.audit.links import last, location_of
from policies.audit.reading import link_of, linked, names, objects, said, shown, whole
from policies.audit.record import Item, Json, Part, Record
from policies.audit.states import BILLING_NODES, NODE_STATES, RUNNING, STOPPED
from policies.errors import InputError
from policies.estimate.capacity import Capacity, tpu_capacity, vm_capacity
from policies.estimate.engine import price_or_reason
from policies.estimate.market import Market
from policies.estimate.model import CostComponent, ResourceEstimate, UnknownInput, Unpriced
from policies.money import Amount, decimal_of
from policies.prices.book import PriceBook
from policies.resources import Resource, ResourceOptions, ResourceSet
from policies.usage import ResourceUsage, Usage

THROUGHPUT_UNIT: Final = "MiB/s-month"
GIB: Final = 1 << 30
UNUSED: Final = "RESERVED"
"""Status of an address that nothing uses."""
UNNAMED: Final = "a user that the record does not name"
HELD: Final = {Part.SNAPSHOTS: "storageBytes", Part.IMAGES: "archiveSizeBytes"}
"""The field that says how many bytes bill: never the size of the disk."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Pricing:
    """The prices of one audit."""

    record: Record
    """For joins: who uses an address, and on what terms it runs."""
    book: PriceBook
    as_of: datetime.date
    """The day from which the age of a price is counted."""

    def estimate(self, part: Part, item: Item) -> ResourceEstimate:
        """What one resource of the record bills now; what cannot be said is unknown or unpriced there, never 0.

        An instance comes without its disks, which are items of their own. A node bills while it is READY. A disk of a
        storage pool bills with its pool. Snapshots and images bill their bytes.
        """
        if part is Part.NODES and said(item, "state") not in BILLING_NODES:
            return _other_state(part, item, NODE_STATES, "its chips bill while it is READY")
        if part in HELD:
            return self._held(part, item, HELD[part])
        if part is Part.INSTANCES and said(item, "status") not in RUNNING:
            return _other_state(part, item, STOPPED, "its machine bills while it runs", key="status")
        if part in (Part.ADDRESSES, Part.INSTANCES):
            found = self._joined.get(_urn(part, item))
            return price_or_reason(found or as_pulumi(part, item), self._market)
        if part is Part.QUEUED_RESOURCES:
            return ResourceEstimate(resource=as_pulumi(part, item), free="only its nodes bill")
        return price_or_reason(as_pulumi(part, item), self._alone)

    def node(self, item: Item) -> ResourceEstimate:
        """What a node of the TPU API bills while it is READY, whatever its state is now."""
        return price_or_reason(as_pulumi(Part.NODES, item), self._alone)

    def bytes_of(self, bucket: Item, held: int, storage_class: str = "") -> ResourceEstimate:
        """What so many bytes bill in that bucket, in a class of storage where it is not the bucket's own."""
        changed = {**bucket, "storageClass": storage_class} if storage_class else bucket
        return price_or_reason(as_pulumi(Part.BUCKETS, changed), self._holding(held))

    def gateway(self, router: Item, vms: int) -> ResourceEstimate:
        """What a Cloud NAT gateway of that router bills for so many VMs, without the data."""
        place = as_pulumi(Part.ROUTERS, router)
        market = self._used(ResourceUsage(vms=Decimal(vms)))
        return price_or_reason(replace(place, type=NAT, urn=urn_of(NAT, link_of(router))), market)

    def capacity(self, part: Part, item: Item) -> Capacity | UnknownInput:
        """The terms on which a node or an instance runs. Raises InputError where they contradict each other."""
        terms = tpu_capacity if part is Part.NODES else vm_capacity
        return terms(as_pulumi(part, item), self._alone)

    def throughput_rate(self, disk: Item) -> Amount | Unpriced:
        """What 1 MiB/s of that volume costs, so that waste and saving are exact products."""
        return self.unit_rate(disk, "throughput", THROUGHPUT_UNIT)

    def unit_rate(self, disk: Item, dimension: str, unit: str) -> Amount | Unpriced:
        """What one unit of a dimension of that disk costs: `throughput` in MiB/s-month, `iops` in IOPS-month."""
        place = said(disk, "zone") or said(disk, "region") or location_of(link_of(disk))
        return self.rate(f"disk.{last(said(disk, 'type'))}.{dimension}", unit, last(place))

    def rate(self, item: str, unit: str, place: str) -> Amount | Unpriced:
        """What one unit of an item of the book costs in that place."""
        line = self._alone.line("one", item, 1, unit, place)
        return line.amount if isinstance(line, CostComponent) else line

    @cached_property
    def _alone(self) -> Market:
        """For what needs no joins; its lines are kept."""
        return Market(resources=ResourceSet(()), usage=Usage(), book=self.book, as_of=self.as_of)

    @cached_property
    def _market(self) -> Market:
        return replace(self._alone, resources=ResourceSet(tuple(self._joined.values())))

    @cached_property
    def _joined(self) -> Mapping[str, Resource]:
        """Addresses, instances and the other users of addresses, by URN, with who uses what."""
        users: dict[str, list[str]] = {}
        for address in self.record.items(Part.ADDRESSES):
            for user in _users(address):
                users.setdefault(user, []).append(_urn(Part.ADDRESSES, address))
        found = {urn: resource for resource in self._instances(users) if (urn := resource.urn)}
        for address in self.record.items(Part.ADDRESSES):
            found.setdefault(_urn(Part.ADDRESSES, address), as_pulumi(Part.ADDRESSES, address))
        for link, addresses in users.items():
            if urn_of(INSTANCE, link) not in found:
                found[urn_of(FORWARDING, link)] = _user(link, addresses)
        return found

    def _instances(self, users: Mapping[str, list[str]]) -> Iterator[Resource]:
        for item in self.record.items(Part.INSTANCES):
            used = tuple(users.get(link_of(item), ()))
            if not used:
                yield as_pulumi(Part.INSTANCES, item)
                continue
            paid = {**item, "networkInterfaces": _paid(item.get("networkInterfaces"), len(used))}
            yield as_pulumi(Part.INSTANCES, paid, depends={"networkInterfaces": used})

    def _held(self, part: Part, item: Item, field: str) -> ResourceEstimate:
        resource = as_pulumi(part, item)
        try:
            held = whole(item, field)
        except InputError as error:
            return ResourceEstimate(resource=resource, unknown=(UnknownInput(path=field, reason=str(error)),))
        if held is None:
            reason = "the record does not say it, and it decides how much bills"
            return ResourceEstimate(resource=resource, unknown=(UnknownInput(path=field, reason=reason),))
        if not held:
            return price_or_reason(replace(resource, inputs={**resource.inputs, "diskSizeGb": 0}), self._alone)
        return price_or_reason(resource, self._holding(held))

    def _holding(self, held: int) -> Market:
        return self._used(ResourceUsage(gib=decimal_of(Fraction(held, GIB))))

    def _used(self, usage: ResourceUsage) -> Market:
        return replace(self._alone, usage=Usage(defaults=usage))


def _other_state(part: Part, item: Item, known: Collection[str], free: str, *, key: str = "state") -> ResourceEstimate:
    """The price of what does not bill in its state, or of a state that nobody knows."""
    resource, state = as_pulumi(part, item), said(item, key)
    if state in known:
        return ResourceEstimate(resource=resource, free=free)
    reason = f"{shown(item.get(key))} is no state that spotrail knows; it decides what bills"
    return ResourceEstimate(resource=resource, unknown=(UnknownInput(path=key, reason=reason),))


def _urn(part: Part, item: Item) -> str:
    return as_pulumi(part, item).urn


def _users(address: Item) -> Iterator[str]:
    """The self links of what uses an address; a stand-in where it is in use and does not say by what."""
    status = said(address, "status")
    if status != UNUSED:
        yield from map(linked, names(address, "users") or ((UNNAMED,) if status == "IN_USE" else ()))


def _user(link: str, addresses: Iterable[str]) -> Resource:
    """Something other than an instance of the record that uses addresses: a forwarding rule, a router, anything."""
    options = ResourceOptions(property_dependencies={"ipAddress": tuple(addresses)})
    return Resource(urn=urn_of(FORWARDING, link), type=FORWARDING, name=link.rpartition("/")[2], options=options)


def _paid(interfaces: Json, count: int) -> Json:
    """The interfaces with the mark of a reserved address on the first `count` of their access configurations."""
    left = count
    marked: list[Json] = []
    for interface in interfaces if isinstance(interfaces, list) else []:
        configs = len(objects(interface, "accessConfigs"))
        paid, left = min(left, configs), max(0, left - configs)
        marked.append({"accessConfigs": [*([{"natIp": "reserved"}] * paid), *([{}] * (configs - paid))]})
    return marked
