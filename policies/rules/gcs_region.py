"""Buckets in another region than the TPUs: every read of every epoch bills the transfer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from policies.estimate.location import locate
from policies.estimate.model import UnknownInput, total
from policies.estimate.readers import tpu_places
from policies.estimate.routes import transfer_item
from policies.hardware.zones import is_zone, region_of
from policies.money import Amount
from policies.resources import Opaque, Resource, texts
from policies.rules.bills import a_month, bills, lines_of
from policies.rules.buckets import BUCKET
from policies.rules.machines import may_have_tpus
from policies.rules.model import Context, Rule, Severity, Violation

TRANSFER: Final = "transfer."
INTERNET: Final = "transfer.internet."
MULTI_REGIONS: Final = ("us", "eu", "asia")


def _check(bucket: Resource, context: Context) -> Iterator[Violation]:
    hosts = _hosts(context)
    if not hosts:
        if may_have_tpus(context):
            yield Violation(message="the zone of the TPUs is not known", decided=False)
        return
    location = locate(bucket, context.resources, "location", decides="whether reads are billed")
    if isinstance(location, UnknownInput):
        yield Violation(message=f"{location.path}: {location.reason}", decided=False)
        return
    placed = bucket.value("customPlacementConfig", "dataLocations")
    if isinstance(placed, Opaque):
        yield Violation.hidden("customPlacementConfig.dataLocations", placed)
        return
    homes = frozenset(text.lower() for text in texts(placed))
    away = _away(location, homes, hosts)
    if away:
        money = _money(bucket, context)
        yield Violation(message=f"{_said(location, away)}. {_amount(bucket, money, context)}", monthly=money)


@lru_cache(maxsize=1)
def _hosts(context: Context) -> tuple[str, ...]:
    """Where the TPUs of the stack are. Read once a judgement."""
    return tpu_places(context.resources)


@lru_cache(maxsize=1024)
def _away(location: str, homes: frozenset[str], hosts: tuple[str, ...]) -> tuple[str, ...]:
    """The regions of the hosts from which a read of the bucket is billed. The same for most buckets of a stack."""
    regions = {_region(host) for host in hosts} - homes
    return tuple(sorted(region for region in regions if transfer_item(location, region)))


def _region(place: str) -> str:
    return region_of(place) if is_zone(place) else place


def _said(location: str, away: tuple[str, ...]) -> str:
    where = f"the bucket is in {location.upper()} and the TPUs are in {', '.join(away)}"
    if location in MULTI_REGIONS:
        return f"{where}: reads from a multi-region are billed too, even on its own continent"
    return f"{where}: cross-region reads are billed"


def _amount(bucket: Resource, money: Amount | None, context: Context) -> str:
    found = bills(context).get(bucket.urn)
    if money is None and not (found and any(_is_read(part.item) for part in found.unpriced)):
        return f"How much is not known: set usage.{bucket.name}.epochs, dataset_gib and readers"
    return "What a GiB costs on that way is not known" if money is None else a_month(money)


def _money(bucket: Resource, context: Context) -> Amount | None:
    lines = [line for line in lines_of(bucket, context) if _is_read(line.item)]
    return total(line.amount for line in lines) if lines else None


def _is_read(item: str) -> bool:
    return item.startswith(TRANSFER) and not item.startswith(INTERNET)


RULE: Final = Rule(
    id="GCS-REGION",
    title="Buckets are in the region of the TPUs that read them",
    severity=Severity.WARNING,
    applies_to=(BUCKET,),
    remediation=(
        "Set location to the region of the TPUs (the Buckets component takes that of spotrail:zone), or put a cache of "
        "the bucket in the zone."
    ),
    url="https://cloud.google.com/storage/pricing#network-buckets",
    check=_check,
)
