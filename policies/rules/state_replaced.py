"""A plan that replaces what holds data: the new one is empty, or has other data, and the old one is gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.changes import Op
from policies.resources import Resource
from policies.rules.model import Context, Rule, Severity, Violation
from policies.rules.stateful import STATEFUL, bucket_refusal, refusal, staying


def _check(resource: Resource, context: Context) -> Iterator[Violation]:
    step = context.step_of[resource.urn]
    if step.op is not Op.REPLACE:
        return
    why = ", ".join(step.replace_reasons) or "the preview names no reason"
    said = f"the plan replaces it (because of: {why})"
    if kept := staying(resource):
        message = f"{said}; by {kept} the old one stays in the cloud, outside the stack, and goes on billing"
        yield Violation(message=message, severity=Severity.WARNING)
        return
    loss = refusal(resource) or bucket_refusal(resource) or "what it holds is deleted with it"
    yield Violation(message=f"{said}: {loss}")


RULE: Final = Rule(
    id="STATE-REPLACED",
    title="A plan replaces nothing that holds data",
    severity=Severity.ERROR,
    applies_to=STATEFUL,
    remediation=(
        "Make the new version under a new name beside it (a model volume is named by its digest), let its readers "
        "change over, then delete the old one; or waive the rule for this URN until it is done."
    ),
    url="https://www.pulumi.com/docs/iac/concepts/options/protect/",
    check=_check,
    gate=True,
)
