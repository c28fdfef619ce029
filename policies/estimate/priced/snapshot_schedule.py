"""Snapshot schedules: at most all the snapshots that they keep, each as large as its disk. Other policies are free."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Final

from policies.estimate.location import nearest_multi_region
from policies.estimate.market import Market, Part, bill, field_of, unknown
from policies.estimate.model import ResourceEstimate, UnknownInput
from policies.estimate.registry import Priced
from policies.estimate.schedule_followers import Follower, followers
from policies.resources import Opaque, Resource, ResourceError, dotted

POLICY: Final = "gcp:compute/resourcePolicy:ResourcePolicy"
SCHEDULE: Final = "snapshotSchedulePolicy"
RETENTION: Final = (SCHEDULE, "retentionPolicy", "maxRetentionDays")
STORED: Final = (SCHEDULE, "snapshotProperties", "storageLocations")
CAPACITY: Final = "snapshot.standard.capacity"
NOWHERE: Final = "not set, and no disk of this stack follows it; it decides the price of a GiB"


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """The snapshots that a schedule keeps of the disks of this stack."""
    schedule = resource.value(SCHEDULE)
    if isinstance(schedule, Opaque):
        return bill(resource, "", "resource policy", (unknown(schedule, SCHEDULE, decides="whether it bills"),))
    if not schedule:
        return bill(resource, "", "resource policy", (), free="a policy that takes no snapshots costs nothing")
    follow = followers(resource, market.resources)
    if not follow and not market.usage_of(resource).gib:
        return bill(resource, "", "snapshot schedule", (), free="no disk of this stack follows it")
    stored = _stored(resource)
    place = stored if isinstance(stored, str) else ""
    return bill(resource, place, "snapshot schedule", _parts(resource, market, follow, stored))


def _parts(
    policy: Resource, market: Market, follow: tuple[Follower, ...], stored: str | UnknownInput
) -> Iterator[Part]:
    held = market.usage_of(policy).gib
    if held:
        place = _place(stored, follow[0].place if follow else UnknownInput(path=dotted(STORED), reason=NOWHERE))
        said = "as usage says"
        yield place if isinstance(place, UnknownInput) else _line(market, "snapshots", held, place, said)
        return
    kept = _kept(policy)
    if isinstance(kept, UnknownInput):
        yield kept
        return
    for disk in follow:
        place = _place(stored, disk.place)
        if (
            isinstance(disk.gib, UnknownInput)
            or isinstance(place, UnknownInput)
            or isinstance(disk.count, UnknownInput)
        ):
            seen = (disk.gib, place, disk.count)
            yield from dict.fromkeys(part for part in seen if isinstance(part, UnknownInput))
        elif disk.count:
            many = f"{disk.count:,} disks x " if disk.count > 1 else ""
            note = f"at most: {many}{kept} x {disk.gib:,} GiB; what bills is compressed changes"
            gib = Decimal(disk.count * kept * disk.gib)
            said = f"{note}: set {field_of(policy, 'gib')}"
            yield _line(market, f"snapshots of {disk.name}", gib, place, said)


def _line(market: Market, name: str, gib: Decimal, place: str, note: str) -> Part:
    return market.line(name, CAPACITY, gib, "GiB-month", place, note=note)


def _place(stored: str | UnknownInput, origin: str | UnknownInput) -> str | UnknownInput:
    """Where snapshots are stored: as the schedule says, else in the multi-region nearest to their disk."""
    if stored:
        return stored
    return origin if isinstance(origin, UnknownInput) else nearest_multi_region(origin)


def _stored(policy: Resource) -> str | UnknownInput:
    """Where the schedule says that it stores; empty where it does not."""
    found = policy.value(*STORED)
    first = found[0] if isinstance(found, tuple) and found else found
    if isinstance(first, Opaque):
        return unknown(first, *STORED, decides="the price of a GiB")
    return first.lower() if isinstance(first, str) else ""


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
