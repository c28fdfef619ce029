"""Parts of the stack that have no price: the total is a lower bound, and no budget can be judged on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from policies.resources import STACK_TYPE, Resource
from policies.rules.model import Context, Rule, Severity, Violation

SHOWN: Final = 5


def _check(stack: Resource, context: Context) -> Iterator[Violation]:
    found = context.estimate.resources
    missing = [f"{each.resource.name}: {part.reason}" for each in found for part in each.unpriced]
    hidden = [f"{each.resource.name}: {part.path}: {part.reason}" for each in found for part in each.unknown]
    if missing:
        yield Violation(message=f"the total is a lower bound, without a price: {_listed(missing)}")
    if hidden:
        yield Violation(message=f"the total is a lower bound: {_listed(hidden)}", decided=False)


def _listed(parts: Sequence[str]) -> str:
    more = len(parts) - SHOWN
    return "; ".join(parts[:SHOWN]) + (f"; and {more} more" if more > 0 else "")


RULE: Final = Rule(
    id="PRICE-MISSING",
    title="Everything that bills has a price",
    severity=Severity.WARNING,
    applies_to=(STACK_TYPE,),
    remediation=(
        "Give a book with --prices that has the row; what depends on a value that is known after the apply can be "
        "given in --usage or as a literal."
    ),
    url="https://cloud.google.com/billing/docs/how-to/get-pricing-information-api",
    check=_check,
)
