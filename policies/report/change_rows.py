"""The rows of a change: each resource whose price it moves, before, after and the difference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from policies.changes import Op
from policies.estimate.change import ChangedResource, ChangeEstimate
from policies.estimate.model import Estimate, ResourceEstimate, total
from policies.report.figures import money
from policies.report.headline import difference, moved, signed
from policies.report.layout import NARROWEST, WIDEST, Page
from policies.report.names import name_of

SIGNS: Final = {Op.CREATE: "+", Op.DELETE: "-", Op.REPLACE: "±", Op.UPDATE: "~", Op.IMPORT: "+"}
"""Beside the name of a resource, as Pulumi has them; the other steps have none."""
WIDTH: Final = 14
"""Of a column of figures, in terminal cells."""
ROOMY: Final = 76
"""From this width on both sides are shown, not only the difference."""
NONE: Final = "-"
"""On the side where a resource does not stand."""


def change_rows(change: ChangeEstimate, page: Page) -> Iterator[Text]:
    """One row for each resource whose price moves, the dearest first, the count of the others, and the total."""
    yield from _row("Resource", ("Before", "After", "Difference"), page, "bold")
    rows = moved(change)
    for each in rows:
        yield from _row(f"{_title(each)}", (_side(each.before), _side(each.after), difference(each)), page)
    urns = {each.urn for each in rows}
    still = [each for each in change.resources if each.urn not in urns]
    if still:
        same = money(total(each.after.amount for each in still if each.after).monthly)
        yield from _row(f"{len(still)} of an unchanged price", (same, same, "0.00"), page, "dim")
    yield from _total(change, page)


def _total(change: ChangeEstimate, page: Page) -> Iterator[Text]:
    if change.before is None or change.delta is None:
        return
    name = "total" if change.whole else f"total of what is shown ({change.hidden} more stand)"
    least = "" if change.exact else ", of the lower bounds"
    figures = (_sum(change.before), _sum(change.after), "?" if change.nothing_known else signed(change.delta))
    yield from _row(f"{name}{least}", figures, page, "bold")


def _sum(estimate: Estimate) -> str:
    return "?" if estimate.nothing_known else money(estimate.amount.monthly)


def _title(each: ChangedResource) -> str:
    found = each.after or each.before
    title = found.title if found else ""
    return f"{SIGNS.get(each.op, ' ')} {name_of(each.urn)}  {title}".rstrip()


def _side(found: ResourceEstimate | None) -> str:
    if found is None:
        return NONE
    if found.nothing_known:
        return "?"
    return f"{'' if found.complete else '≥ '}{money(found.amount.monthly)}"


def _row(name: str, figures: tuple[str, ...], page: Page, style: str = "") -> Iterator[Text]:
    shown = figures if page.width >= ROOMY else figures[-1:]
    cells = "".join(f"{figure:>{WIDTH}}" for figure in shown)
    room = min(max(page.width, NARROWEST), WIDEST) - cell_len(cells)
    *above, last = Page(room).paragraph(name, " ", style, hanging="     ")
    yield from above
    if cell_len(last.plain) > room:
        yield last
        last = Text()
    yield last.append(" " * (room - last.cell_len)).append(cells, style)
