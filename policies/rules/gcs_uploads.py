"""Incomplete multipart uploads: a preempted writer leaves parts that no listing shows and that bill for ever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.resources import Opaque, Resource, dig
from policies.rules.buckets import BUCKET, purpose_of
from policies.rules.model import Context, Rule, Severity, Violation

ABORT: Final = "AbortIncompleteMultipartUpload"


def _check(bucket: Resource, context: Context) -> Iterator[Violation]:
    if not purpose_of(bucket).churns:
        return
    rules = bucket.items("lifecycleRules")
    kinds = rules if isinstance(rules, Opaque) else [dig(rule, "action", "type") for rule in rules]
    if isinstance(kinds, Opaque):
        yield Violation.hidden("lifecycleRules", kinds)
    elif ABORT not in kinds:
        hidden = next((kind for kind in kinds if isinstance(kind, Opaque)), None)
        if hidden:
            yield Violation.hidden("the action of a lifecycle rule", hidden)
        else:
            yield Violation(message=f"no lifecycle rule with {ABORT}: parts of interrupted uploads bill for ever")


RULE: Final = Rule(
    id="GCS-UPLOADS",
    title="Buckets that preempted writers use abort incomplete uploads",
    severity=Severity.INFO,
    applies_to=(BUCKET,),
    remediation=f"Add a lifecycle rule with action {ABORT} and an age of a few days.",
    url="https://docs.cloud.google.com/storage/docs/lifecycle#abort-mpu",
    check=_check,
)
