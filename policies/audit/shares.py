"""Who carries how much of what is paid once: shares that add up to the cent."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final

CENT: Final = Decimal("0.01")


def split(whole: Fraction, weights: Sequence[int]) -> tuple[Decimal, ...]:
    """`whole`, rounded half-even to the cent, in shares by weight. They add up to it exactly.

    The cents that are left over go to the shares that lost most by rounding down, of equal ones to the first.
    """
    cents, parts = round(whole * 100), sum(weights)
    if not parts:
        return ()
    shares = [cents * weight // parts for weight in weights]
    lost = sorted(range(len(weights)), key=lambda at: (-(cents * weights[at] % parts), at))
    for at in lost[: cents - sum(shares)]:
        shares[at] += 1
    return tuple(share * CENT for share in shares)
