"""Storage pools with capacity or performance that their disks do not use: the pool bills what it provisions.

Source: https://docs.cloud.google.com/compute/docs/disks/storage-pools
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Final, final

from policies.audit.context import Auditor, Context
from policies.audit.links import last
from policies.audit.model import Verdict, VerdictKind
from policies.audit.pricing import GIB
from policies.audit.reading import at, said, shown, whole, word
from policies.audit.record import Item, Part
from policies.audit.subjects import Subject
from policies.audit.telling import Told, bill_of, each, if_seen, length, priced, tell
from policies.audit.ttl import created
from policies.estimate.model import Unpriced, total
from policies.estimate.priced.storage_pool import CAPACITY, PERFORMANCE
from policies.money import Amount

LEAST_GIB: Final = 10 * 1024
"""The smallest pool that Google makes."""
ADVANCED: Final = "ADVANCED"
_FIELDS: Final = MappingProxyType(
    {
        "capacity": ("capacityProvisioningType", "totalProvisionedDiskCapacityGb", "poolUsedCapacityBytes"),
        "IOPS": ("performanceProvisioningType", "totalProvisionedDiskIops", "poolUsedIops"),
        "throughput": ("performanceProvisioningType", "totalProvisionedDiskThroughput", "poolUsedThroughput"),
    }
)
"""How it is provisioned, and the fields of its status that count what is used: of standard ones what the disks have,
of advanced ones what they use (bytes of capacity)."""
_UNITS: Final = {"GiB-month": " GiB", "MiB/s-month": " MiB/s"}
_STATES: Final = ("", "CREATING", "DELETING", "FAILED", "READY")


@final
@dataclass(frozen=True, kw_only=True)
class _Dimension:
    """One thing that a pool provisions."""

    name: str
    unit: str
    provisioned: int
    used: int
    surplus: int
    """What could be given back."""
    item: str
    """Item of the price book."""
    billed_by: str
    """Its pricing unit."""


def _look(context: Context) -> Iterator[Told]:
    yield from each(context, Part.STORAGE_POOLS, lambda subject: _verdicts(context, subject))


def _verdicts(context: Context, subject: Subject) -> Iterator[Told]:
    state = word(subject.item, "state")
    if state not in _STATES:
        message = f"state is {shown(subject.item.get('state'))}, which spotrail does not know"
        yield tell(context, subject, VerdictKind.UNKNOWN_STATE, message)
        return
    age = context.now - created(subject.item)
    if age < context.terms.grace:
        yield tell(context, subject, VerdictKind.TOO_NEW, f"made {length(age)} ago")
        return
    status = at(subject.item, "resourceStatus")
    disks = whole(status, "diskCount") if isinstance(status, Mapping) else None
    if disks == 0:
        cost, why = bill_of(context.pricing.estimate(Part.STORAGE_POOLS, subject.item))
        found = tell(context, subject, VerdictKind.ORPHANED, priced("no disk in it", why), waste=cost)
        yield if_seen(context, found, Part.STORAGE_POOLS)
        return
    surplus = [each for each in _dimensions(context, subject.item) if each.surplus]
    if surplus:
        yield if_seen(context, _oversized(context, subject, surplus), Part.STORAGE_POOLS)


def _oversized(context: Context, subject: Subject, surplus: list[_Dimension]) -> Verdict:
    rates = [context.pricing.rate(each.item, each.billed_by, subject.location) for each in surplus]
    why = next((rate.reason for rate in rates if isinstance(rate, Unpriced)), "")
    waste: Amount | None = None
    if not why:
        waste = total(
            rate * each.surplus for rate, each in zip(rates, surplus, strict=True) if isinstance(rate, Amount)
        )
    parts = (f"{each.used:,} of {each.provisioned:,}{each.unit} {each.name} used" for each in surplus)
    return tell(context, subject, VerdictKind.OVERPROVISIONED, priced(", ".join(parts), why), waste=waste)


def _dimensions(context: Context, pool: Item) -> Iterator[_Dimension]:
    """Capacity, IOPS and throughput, as far as they bill and the pool says both what it has and what is used."""
    kind = last(said(pool, "storagePoolType")).lower()
    status = pool.get("resourceStatus")
    used = status if isinstance(status, Mapping) else {}
    for name, field, billed_by in (CAPACITY, *PERFORMANCE.get(kind, ())):
        way, thick, thin = _FIELDS[name]
        how = said(pool, way)
        provisioned, amount = whole(pool, field), whole(used, thin if how == ADVANCED else thick)
        if provisioned is None or amount is None:
            continue
        is_capacity = name == CAPACITY[0]
        amount = math.ceil(Fraction(amount, GIB)) if how == ADVANCED and is_capacity else amount
        enough = max(LEAST_GIB if is_capacity else 0, math.ceil(amount * context.terms.headroom))
        too_much = amount < context.terms.overprovisioned * provisioned
        yield _Dimension(
            name=name,
            unit=_UNITS.get(billed_by, ""),
            provisioned=provisioned,
            used=amount,
            surplus=max(0, provisioned - enough) if too_much else 0,
            item=f"storage-pool.{kind}-{how.lower()}.{name.lower()}",
            billed_by=billed_by,
        )


AUDITOR: Final = Auditor(title="storage pools larger than their disks need", look=_look)
