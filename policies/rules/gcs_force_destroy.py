"""A bucket of checkpoints that one `pulumi destroy` empties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.resources import Opaque, Resource
from policies.rules.buckets import BUCKET, Purpose, purpose_of
from policies.rules.model import Context, Rule, Severity, Violation


def _check(bucket: Resource, context: Context) -> Iterator[Violation]:
    if purpose_of(bucket) is not Purpose.CHECKPOINTS or bucket.options.protect:
        return
    forced = bucket.flag("forceDestroy")
    if isinstance(forced, Opaque):
        yield Violation.hidden("forceDestroy", forced)
    elif forced:
        yield Violation(
            message="forceDestroy is true and it is not protected: destroying the stack deletes checkpoints"
        )


RULE: Final = Rule(
    id="GCS-FORCE-DESTROY",
    title="A bucket of checkpoints is protected or is not emptied on destroy",
    severity=Severity.ERROR,
    applies_to=(BUCKET,),
    remediation="Take forceDestroy out, or set the resource option protect; the Buckets component does both.",
    url="https://www.pulumi.com/registry/packages/gcp/api-docs/storage/bucket/#forcedestroy",
    check=_check,
)
