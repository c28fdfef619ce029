"""Waivers whose last day is over: they cover nothing any more, and what they covered is back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.resources import STACK_TYPE, Resource
from policies.rules.model import Context, Rule, Severity, Violation


def _check(stack: Resource, context: Context) -> Iterator[Violation]:
    for waiver in context.waivers:
        if waiver.expired(context.as_of):
            yield Violation(
                message=f"the waiver of {waiver.rule} for {waiver.urn} ({waiver.reason}) ended on {waiver.until}"
            )


RULE: Final = Rule(
    id="STATE-WAIVER-EXPIRED",
    title="Every waiver is in force",
    severity=Severity.WARNING,
    applies_to=(STACK_TYPE,),
    remediation="Mend what it covered and remove it from spotrail:waivers, or decide again and set a new until.",
    url="https://docs.cloud.google.com/architecture/framework/cost-optimization",
    check=_check,
)
