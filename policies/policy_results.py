"""What policy packs inside Pulumi said during a preview, as findings beside our own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from policies.changes import PolicyResult
from policies.resources import STACK_TYPE
from policies.rules.model import Finding, Rule, Severity
from policies.rules.waivers import PACKS

RULE: Final = Rule(
    id=PACKS,
    title="The policy packs inside Pulumi have nothing to say",
    severity=Severity.ERROR,
    applies_to=(STACK_TYPE,),
    remediation="Do what the policy says, or change its enforcement level where its pack is configured.",
    url="https://www.pulumi.com/docs/insights/policy/",
    check=lambda stack, context: (),
)
"""In no registry: others judged already, and only they can waive it."""


def policy_findings(results: Iterable[PolicyResult], stack: str) -> tuple[Finding, ...]:
    """An error for each mandatory result and a warning for each other one; `stack` is the URN where one has none."""
    return tuple(
        Finding(
            rule=RULE,
            severity=Severity.ERROR if result.mandatory else Severity.WARNING,
            urn=result.urn or stack,
            message=f"{result.pack}/{result.policy}: {result.message}",
        )
        for result in results
    )
