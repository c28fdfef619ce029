"""The answer in one sentence, and the figures of a change, as every report of a stack writes them."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from typing import Final

from policies.estimate.change import ChangedResource, ChangeEstimate
from policies.estimate.model import Estimate, ResourceEstimate
from policies.money import Amount, dearness, decimal_of
from policies.report.figures import CENT, money
from policies.report.stack import StackReport

ROUNDED: Final = "a month is 730 hours; shown to the cent, totals are of the exact parts"
"""What stands at the foot of a page, where a column may not add up to the last cent."""


def headline(report: StackReport) -> str:
    """`dev: 162.00 → 3,568.00 USD /month, +3,406.00 (+2,102.5 %)`, with `at least` where a side is a lower bound."""
    change, currency = report.change, report.change.after.currency
    if change.before is None:
        return f"{report.title}: {side(change.after, bare=True)} {currency} /month"
    if change.nothing_known or change.delta is None:
        return f"{report.title}: {side(change.before)} → {side(change.after)} {currency} /month, difference not known"
    if not change.delta and change.exact:
        return f"{report.title}: {side(change.after, bare=True)} {currency} /month, no change"
    sides = f"{side(change.before)} → {side(change.after)} {currency} /month"
    least = "" if change.exact else " between the lower bounds"
    return f"{report.title}: {sides}, {signed(change.delta)}{_percentage(change)}{least}"


def doubts(report: StackReport) -> Iterator[str]:
    """What keeps the sentence from being the whole truth; nothing where it is."""
    change = report.change
    if change.hidden:
        many = "1 resource is" if change.hidden == 1 else f"{change.hidden:,} resources are"
        yield f"{many} not shown by the source: these are not the totals of the stack"
    if not change.after.complete:
        yield "something has no price or is not known yet: the total is a lower bound"
    if not change.fresh:
        yield "some prices are stale or undated"


def moved(change: ChangeEstimate) -> tuple[ChangedResource, ...]:
    """The resources whose price the change moves, or whose difference nobody can tell; worst first."""
    if change.before is None:
        return ()
    found = [each for each in change.resources if each.delta or not each.exact]
    place = dearness(each.delta for each in found)
    return tuple(sorted(found, key=lambda each: (place(each.delta), each.urn)))


def standing(estimate: Estimate) -> tuple[ResourceEstimate, ...]:
    """What bills or may bill: the unknown first, then the dearest."""
    found = [each for each in estimate.resources if not each.free]
    place = dearness(each.amount for each in found)
    return tuple(sorted(found, key=lambda each: (not each.nothing_known, place(each.amount), each.resource.urn)))


def side(found: Estimate | ResourceEstimate | None, *, bare: bool = False) -> str:
    """`3,504.00`, `at least 160.00`, `?`, or `-` where nothing stands; `bare` writes `not known` for `?`."""
    if found is None:
        return "-"
    if found.nothing_known:
        return "not known" if bare else "?"
    return f"{'' if found.complete else 'at least '}{money(found.amount.monthly)}"


def difference(each: ChangedResource) -> str:
    """`+1,402.00`, or `?` where a side has no figure at all."""
    hidden = any(found is not None and found.nothing_known for found in (each.before, each.after))
    return "?" if hidden and not each.exact else signed(each.delta)


def signed(amount: Amount) -> str:
    """`+1,402.00`, `-96.00`, `0.00`; what is less than a cent keeps two digits that count: `+0.0034`."""
    value = decimal_of(amount.per_month)
    small = bool(value) and abs(value) < CENT
    step = Decimal(1).scaleb(value.adjusted() - 1) if small else CENT
    shown = money(value, step)
    return shown if value <= 0 else f"+{shown}"


def _percentage(change: ChangeEstimate) -> str:
    """` (+4.9 %)`; empty where there is nothing to compare with, or a bound would make it a guess."""
    if change.before is None or change.delta is None or not change.before.amount or not change.exact:
        return ""
    share = decimal_of(Fraction(change.delta.per_month * 100, change.before.amount.per_month))
    shown = share.quantize(Decimal("0.1"), rounding=ROUND_HALF_EVEN)
    return f" ({shown:+,f} %)" if shown else ""
