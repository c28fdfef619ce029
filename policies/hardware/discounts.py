"""Sustained-use discounts: the longer an on-demand machine of some series runs in a month, the less an hour costs."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from types import MappingProxyType

from policies.hardware.tables import rows


def sustained_share(series: str, share: Fraction) -> Fraction:
    """What of a month's list price a machine pays that runs for `share` (0 to 1) of the month.

    Each part of the month has its own rate: on n2 the four quarters bill 1, 0.8678, 0.733 and 0.6, so a whole month
    comes to 0.8002. A series without the discount pays `share`. Google adds up machines of one series in a region, so
    for several that run for parts of a month this is an upper bound. Source: sustained_use.csv.
    """
    tiers = _tiers().get(series)
    if tiers is None:
        return share
    step = Fraction(1, len(tiers))
    parts = (min(max(share - step * place, Fraction(0)), step) * rate for place, rate in enumerate(tiers))
    return sum(parts, Fraction(0))


@cache
def _tiers() -> Mapping[str, tuple[Fraction, ...]]:
    found = {row["series"]: tuple(map(Fraction, row["tiers"].split())) for row in rows("sustained_use")}
    return MappingProxyType(found)
