"""A plan that deletes what holds data: too easily, or in a way that Pulumi or Google will refuse half-way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.changes import Op
from policies.resources import Opaque, Resource
from policies.rules.buckets import BUCKET, Purpose, purpose_of
from policies.rules.model import Context, Rule, Severity, Violation
from policies.rules.stateful import STATEFUL, bucket_refusal, refusal, staying


def _check(resource: Resource, context: Context) -> Iterator[Violation]:
    if context.step_of[resource.urn].op is not Op.DELETE:
        return
    if kept := staying(resource):
        message = f"the plan lets go of it; by {kept} it stays in the cloud and goes on billing"
        yield Violation(message=message, severity=Severity.WARNING)
    elif refused := refusal(resource):
        yield Violation(message=f"the plan deletes it, and {refused}: the plan stops there")
    elif resource.type == BUCKET:
        yield from _bucket(resource)
    else:
        yield Violation(message="the plan deletes it and what it holds", severity=Severity.WARNING)


def _bucket(bucket: Resource) -> Iterator[Violation]:
    forced = bucket.flag("forceDestroy")
    if isinstance(forced, Opaque):
        yield Violation.hidden("forceDestroy", forced)
    elif not forced:
        yield Violation(message=f"the plan deletes it: {bucket_refusal(bucket)}", severity=Severity.WARNING)
    elif purpose_of(bucket) is Purpose.CHECKPOINTS:
        yield Violation(message="the plan deletes it, and by forceDestroy every checkpoint in it")
    else:
        message = "the plan deletes it, and by forceDestroy every object in it"
        yield Violation(message=message, severity=Severity.WARNING)


RULE: Final = Rule(
    id="STATE-DELETED",
    title="A plan deletes nothing that holds data",
    severity=Severity.ERROR,
    applies_to=STATEFUL,
    remediation=(
        "Copy what is still needed, then: of a protected resource take protect away and apply first; of a bucket set "
        "forceDestroy and apply first, or empty it; or take the deletion out of the plan."
    ),
    url="https://www.pulumi.com/docs/iac/concepts/options/protect/",
    check=_check,
    gate=True,
)
