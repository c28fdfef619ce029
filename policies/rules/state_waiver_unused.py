"""Waivers that cover nothing: a typing mistake in the pattern, or a finding that is mended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.resources import STACK_TYPE, Resource
from policies.rules.engine import judge, subjects_of
from policies.rules.model import Context, Rule, Severity, Violation, Waiver
from policies.rules.registry import rule


def _check(stack: Resource, context: Context) -> Iterator[Violation]:
    for waiver in context.waivers:
        if not waiver.expired(context.as_of) and _judged(waiver, context) and not _covers(waiver, context):
            what = f"{waiver.rule} for {waiver.urn} ({waiver.reason})"
            yield Violation(message=f"the waiver of {what} covers no finding of this stack")


def _judged(waiver: Waiver, context: Context) -> bool:
    """Whether its rule could find anything here: one about steps finds nothing in a program or a state."""
    return waiver.rule != RULE.id and (bool(context.changes) or not rule(waiver.rule).gate)


def _covers(waiver: Waiver, context: Context) -> bool:
    waived = rule(waiver.rule)
    subjects = (each for each in subjects_of(waived, context) if waiver.concerns(waived.id, each.urn))
    return any(True for each in subjects for _ in judge(waived, each, context))


RULE: Final = Rule(
    id="STATE-WAIVER-UNUSED",
    title="Every waiver covers a finding",
    severity=Severity.INFO,
    applies_to=(STACK_TYPE,),
    remediation="Remove it from spotrail:waivers, or mend its urn: a pattern over whole URNs, such as *eval-slice*.",
    url="https://docs.cloud.google.com/architecture/framework/cost-optimization",
    check=_check,
    absence=True,
)
