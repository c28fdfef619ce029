"""Caches of buckets: they bill for what they hold whether it is read or not, until it has been unread for their ttl."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from policies.estimate.location import locate
from policies.estimate.model import UnknownInput
from policies.estimate.readers import tpu_places
from policies.hardware.zones import region_of
from policies.prices.book import Price, PriceModel
from policies.resources import Opaque, Resource
from policies.rules.bills import a_month, cost_of
from policies.rules.machines import may_have_tpus
from policies.rules.model import Context, Rule, Severity, Violation

ITEM: Final = "storage.rapid-cache.capacity"
DAY: Final = 86_400
"""Seconds that a cache keeps what nobody reads, where no ttl is set."""


def _check(cache: Resource, context: Context) -> Iterator[Violation]:
    zone, ttl = locate(cache, context.resources, "zone"), cache.text("ttl")
    if isinstance(zone, UnknownInput):
        yield Violation(message=f"{zone.path}: {zone.reason}", decided=False)
    else:
        yield from _place(cache, zone, context)
    if isinstance(ttl, Opaque):
        yield Violation.hidden("ttl", ttl)
    elif ttl and (seconds := ttl.removesuffix("s")).isdecimal() and int(seconds) > DAY:
        days = f"{int(seconds) / DAY:.3g}"
        message = f"ttl is {ttl}: what is read once is kept for {days} days{_rate(zone, context)}"
        yield Violation(message=message, severity=Severity.INFO)


def _place(cache: Resource, zone: str, context: Context) -> Iterator[Violation]:
    places = _places(context)
    if zone in places or region_of(zone) in places:
        return
    if not places and may_have_tpus(context):
        yield Violation(message="the zone of the TPUs is not known", decided=False)
        return
    where = f"the TPUs are in {', '.join(places)}" if places else "the stack has no TPU"
    cost = cost_of(cache, context)
    worth = _rate(zone, context) if cost is None else f": {a_month(cost)}"
    yield Violation(message=f"the cache is in {zone} and {where}, so nobody reads it{worth}", monthly=cost)


@lru_cache(maxsize=1)
def _places(context: Context) -> tuple[str, ...]:
    """Where the TPUs of the stack are. Read once a judgement."""
    return tpu_places(context.resources)


def _rate(zone: str | UnknownInput, context: Context) -> str:
    price = context.book.find(ITEM, PriceModel.ON_DEMAND, zone) if isinstance(zone, str) else None
    return f", at {price.unit_price:f} a {price.unit}" if isinstance(price, Price) else ""


RULE: Final = Rule(
    id="GCS-CACHE",
    title="A cache of a bucket is in the zone of the TPUs and forgets within a day",
    severity=Severity.WARNING,
    applies_to=("gcp:storage/anywhereCache:AnywhereCache",),
    remediation="Put the cache into the zone of the TPUs, set ttl to 86400s or less, and delete it when the run ends.",
    url="https://docs.cloud.google.com/storage/docs/anywhere-cache",
    check=_check,
    absence=True,
)
