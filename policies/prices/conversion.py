"""From the units of the catalogue to those of the book. A unit that is not in the table is refused, never guessed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, final

from policies.money import HOURS_PER_MONTH
from policies.prices.sku import Pricing, Rate

DEAREST: Final = 10**6
"""Of one unit; the dearest thing of the catalogue is a machine by the hour, far below."""
FARTHEST: Final = 10**15
"""Where the last step of a graduated price may begin."""
_GIB_IN_GB: Final = Decimal(2**30) / Decimal(10**9)
"""1.073741824, exact."""
_FACTORS: Final = {
    # A month is a month: the catalogue's own is as long as the calendar's, ours has 730 hours; its price is the same.
    ("GiBy", "GiB"): Decimal(1),
    ("GiBy.h", "GiB-hour"): Decimal(1),
    # The catalogue has some memory by the decimal GB, while Google documents that a GB of memory is a GiB. Of the two
    # readings the dearer one is kept, so that no estimate is too low.
    ("GBy.h", "GiB-hour"): _GIB_IN_GB,
    ("GiBy.h", "GiB-month"): Decimal(HOURS_PER_MONTH),
    ("GiBy.mo", "GiB-month"): Decimal(1),
    ("count", "1000-operations"): Decimal(1000),
    ("h", "IP-hour"): Decimal(1),
    ("h", "VM-hour"): Decimal(1),
    ("h", "chip-hour"): Decimal(1),
    ("h", "hour"): Decimal(1),
    ("h", "vCPU-hour"): Decimal(1),
    ("mo", "IOPS-month"): Decimal(1),
    ("mo", "MiB/s-month"): Decimal(1),
}
"""How many usage units one unit of the book is, so what its price is multiplied by."""


@final
class ConversionError(ValueError):
    """A price of the catalogue that the book cannot take; the message is the reason."""


@final
@dataclass(frozen=True, kw_only=True)
class Steps:
    """A price in the unit of the book."""

    tiers: tuple[tuple[Decimal, Decimal], ...]
    """From which quantity on, and the price of one unit: rising from 0, at least one."""
    note: str = ""
    """What a reader of the book should know about the conversion."""


def steps_of(pricing: Pricing, unit: str, currency: str) -> Steps:
    """The price `pricing` by `unit`, its free steps at the start left out. Raises ConversionError.

    Free steps are granted once for a billing account and not to every resource, so the first step that costs
    something begins at 0.
    """
    factor = _FACTORS.get((pricing.usage_unit, unit))
    if factor is None:
        known = ", ".join(sorted(usage for usage, ours in _FACTORS if ours == unit)) or "none"
        raise ConversionError(f'usage unit "{pricing.usage_unit}" is not known for a price by {unit}; known: {known}')
    charged = _charged(_checked(pricing.rates, currency))
    tiers = [(rate.start / factor, rate.price * factor) for rate in charged]
    return Steps(
        tiers=((Decimal(0), tiers[0][1]), *tiers[1:]), note=_note(pricing.usage_unit, charged[0].price, tiers[0][1])
    )


def _checked(rates: Sequence[Rate], currency: str) -> Sequence[Rate]:
    """The steps in rising order."""
    if not rates:
        raise ConversionError("it has no price (tieredRates is empty)")
    for rate in rates:
        if rate.currency != currency:
            raise ConversionError(f'its currency is "{rate.currency}"; the book is in {currency}')
        if not (rate.price.is_finite() and 0 <= rate.price <= DEAREST):
            raise ConversionError(f"its price is {rate.price}; a price is at least 0 and at most {DEAREST:,}")
        if not (rate.start.is_finite() and 0 <= rate.start <= FARTHEST):
            raise ConversionError(f"a step begins at {rate.start:g}; steps begin from 0 to {FARTHEST:,}")
    rising = sorted(rates, key=lambda rate: rate.start)
    if rising[0].start:
        raise ConversionError(f"its first step begins at {rising[0].start}; the first step begins at 0")
    if any(before.start == after.start for before, after in itertools.pairwise(rising)):
        raise ConversionError("two of its steps begin at the same quantity")
    return rising


def _charged(rates: Sequence[Rate]) -> Sequence[Rate]:
    charged = tuple(itertools.dropwhile(lambda rate: not rate.price, rates))
    if not charged:
        raise ConversionError("its price is 0 at every quantity; a price that is not there is not 0")
    return charged


def _note(usage_unit: str, by_gb: Decimal, by_gib: Decimal) -> str:
    if usage_unit != "GBy.h":
        return ""
    return f"{by_gb:f} by decimal GB, so {by_gib:f} by GiB; the documentation reads GB as GiB: the larger is kept"
