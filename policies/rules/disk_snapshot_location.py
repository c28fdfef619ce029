"""Snapshots without a location go to a multi-region: dearer by a third, and charged again when restored."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from policies.estimate.location import locate
from policies.hardware.zones import is_zone, region_of
from policies.money import Amount
from policies.prices.book import Price, PriceModel
from policies.resources import Opaque, Resource
from policies.rules.attachments import DISKS
from policies.rules.bills import a_month, bills, cost_of
from policies.rules.model import Context, Rule, Severity, Violation

ITEM: Final = "snapshot.standard.capacity"


def _check(snapshot: Resource, context: Context) -> Iterator[Violation]:
    stored = snapshot.items("storageLocations")
    if isinstance(stored, Opaque):
        yield Violation.hidden("storageLocations", stored)
    elif not stored:
        more = _more(snapshot, context)
        yield Violation(
            message=f"storageLocations is not set: Google takes the multi-region{_dearer(more)}", monthly=more
        )


def _dearer(more: Amount | None) -> str:
    return "" if more is None else f", {a_month(more)} more than the region of the disk"


def _more(snapshot: Resource, context: Context) -> Amount | None:
    amount = cost_of(snapshot, context, ITEM)
    home = _region(snapshot, context)
    if amount is None or home is None:
        return None
    places = (bills(context)[snapshot.urn].location, home)
    there, here = (context.book.find(ITEM, PriceModel.ON_DEMAND, place) for place in places)
    if not (isinstance(there, Price) and isinstance(here, Price) and there.unit_price > here.unit_price):
        return None
    return amount * (1 - Fraction(here.unit_price) / Fraction(there.unit_price))


def _region(snapshot: Resource, context: Context) -> str | None:
    disks = context.resources.references(snapshot, "sourceDisk", *DISKS)
    for found in (locate(other, context.resources, "zone") for other in (snapshot, *disks)):
        if isinstance(found, str) and is_zone(found):
            return region_of(found)
    return None


RULE: Final = Rule(
    id="DISK-SNAPSHOT-LOCATION",
    title="A snapshot is stored in the region of its disk",
    severity=Severity.INFO,
    applies_to=("gcp:compute/snapshot:Snapshot",),
    remediation="Set storageLocations to the region in which the snapshot is restored.",
    url="https://docs.cloud.google.com/compute/docs/disks/snapshots#selecting_a_storage_location",
    check=_check,
)
