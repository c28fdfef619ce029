"""Snapshot schedules: at most all the snapshots that they keep, each as large as its disk. Other policies are free."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Final

from policies.estimate.disk_sizes import DISK_TYPES, inherited_gib
from policies.estimate.location import locate, nearest_multi_region
from policies.estimate.market import Market, Part, bill, field_of, unknown
from policies.estimate.model import ResourceEstimate, UnknownInput
from policies.estimate.registry import Priced
from policies.resources import Opaque, Resource, ResourceError, ResourceSet, dotted

POLICY: Final = "gcp:compute/resourcePolicy:ResourcePolicy"
ATTACHMENTS: Final = (
    "gcp:compute/diskResourcePolicyAttachment:DiskResourcePolicyAttachment",
    "gcp:compute/regionDiskResourcePolicyAttachment:RegionDiskResourcePolicyAttachment",
)
SCHEDULE: Final = "snapshotSchedulePolicy"
RETENTION: Final = (SCHEDULE, "retentionPolicy", "maxRetentionDays")
STORED: Final = (SCHEDULE, "snapshotProperties", "storageLocations")
CAPACITY: Final = "snapshot.standard.capacity"


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """The snapshots that a schedule keeps of the disks of this stack."""
    schedule = resource.value(SCHEDULE)
    if isinstance(schedule, Opaque):
        return bill(resource, "", "resource policy", (unknown(schedule, SCHEDULE, decides="whether it bills"),))
    if not schedule:
        return bill(resource, "", "resource policy", (), free="a policy that takes no snapshots costs nothing")
    disks = _disks(resource, market.resources)
    if not disks:
        return bill(resource, "", "snapshot schedule", (), free="no disk of this stack follows it")
    return bill(resource, _place(resource), "snapshot schedule", _parts(resource, market, disks))


def _parts(policy: Resource, market: Market, disks: tuple[Resource, ...]) -> Iterator[Part]:
    held = market.usage_of(policy).gib
    if held:
        yield _line(policy, market, "snapshots", held, disks[0], "as usage says")
        return
    kept = _kept(policy)
    if isinstance(kept, UnknownInput):
        yield kept
        return
    for disk in disks:
        gib = disk.integer("size")
        size = inherited_gib(disk, market.resources)[0] if gib is None else gib
        if isinstance(size, Opaque):
            yield unknown(size, disk.name, "size", decides="how much its snapshots hold")
        elif isinstance(size, UnknownInput):
            yield UnknownInput(path=f"{disk.name}.{size.path}", reason=size.reason)
        else:
            note = f"at most: {kept} x {size:,} GiB; what bills is compressed changes: set {field_of(policy, 'gib')}"
            yield _line(policy, market, f"snapshots of {disk.name}", Decimal(kept * size), disk, note)


def _line(policy: Resource, market: Market, name: str, gib: Decimal, disk: Resource, note: str) -> Part:
    stored = policy.value(*STORED)
    if isinstance(stored, Opaque):
        return unknown(stored, *STORED, decides="the price of a GiB")
    place: str | UnknownInput
    if stored:
        place = _place(policy)
    else:
        origin = locate(disk, market.resources, "zone", "region", decides="where its snapshots are stored")
        place = origin if isinstance(origin, UnknownInput) else nearest_multi_region(origin)
    if isinstance(place, UnknownInput):
        return place
    return market.line(name, CAPACITY, gib, "GiB-month", place, note=note)


def _place(policy: Resource) -> str:
    """Where the schedule says that it stores; empty where it does not."""
    stored = policy.value(*STORED)
    first = stored[0] if isinstance(stored, tuple) and stored else stored
    return first.lower() if isinstance(first, str) else ""


def _disks(policy: Resource, resources: ResourceSet) -> tuple[Resource, ...]:
    """The disks that follow a schedule: by an attachment, or because they name it themselves."""
    attached = resources.referrers(policy, "name", *ATTACHMENTS)
    found = [disk for each in attached for disk in resources.references(each, "disk", *DISK_TYPES)]
    found += resources.referrers(policy, "resourcePolicies", *DISK_TYPES)
    return tuple({disk.urn: disk for disk in found}.values())


def _kept(policy: Resource) -> int | UnknownInput:
    """How many snapshots of a disk the schedule keeps."""
    days = policy.integer(*RETENTION)
    if isinstance(days, Opaque):
        return unknown(days, *RETENTION, decides="how many snapshots are kept")
    if days is None:
        reason = f"not set: it deletes nothing, so there is no upper bound; set {field_of(policy, 'gib')}"
        return UnknownInput(path=dotted(RETENTION), reason=reason)
    daily = _a_day(policy)
    return daily if isinstance(daily, UnknownInput) else math.ceil(daily * days)


def _a_day(policy: Resource) -> Fraction | UnknownInput:
    """How many snapshots of a disk it takes a day."""
    at = (SCHEDULE, "schedule")
    for name, key, snapshots in (("hourlySchedule", "hoursInCycle", 24), ("dailySchedule", "daysInCycle", 1)):
        path = (*at, name, key)
        cycle = policy.integer(*path)
        if isinstance(cycle, Opaque):
            return unknown(cycle, *path, decides="how many snapshots are kept")
        if cycle == 0:
            raise ResourceError(f"{policy.urn}: {dotted(path)} is 0; it must be at least 1")
        if cycle:
            return Fraction(snapshots, cycle)
    path = (*at, "weeklySchedule", "dayOfWeeks")
    week = policy.items(*path)
    if isinstance(week, Opaque):
        return unknown(week, *path, decides="how many snapshots are kept")
    if week:
        return Fraction(len(week), 7)
    return UnknownInput(path=dotted(at), reason="neither hourly, daily nor weekly; it decides how many are kept")


PRICED: Final = Priced(types=(POLICY,), price=price)
