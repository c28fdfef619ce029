"""A soft-delete retention that Google refuses: off, or from 7 to 90 days."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.estimate.priced.bucket import RETENTIONS
from policies.resources import Opaque, Resource
from policies.rules.buckets import BUCKET
from policies.rules.model import Context, Rule, Severity, Violation

LEAST, MOST = RETENTIONS
PATH: Final = ("softDeletePolicy", "retentionDurationSeconds")


def _check(bucket: Resource, context: Context) -> Iterator[Violation]:
    seconds = bucket.integer(*PATH)
    if isinstance(seconds, Opaque):
        yield Violation.hidden(".".join(PATH), seconds)
    elif seconds and not LEAST <= seconds <= MOST:
        yield Violation(
            message=f"{'.'.join(PATH)} is {seconds:,}; it must be 0 (off) or {LEAST:,} to {MOST:,} (7 to 90 days)"
        )


RULE: Final = Rule(
    id="GCS-SOFT-DELETE-RANGE",
    title="Soft delete is off or keeps for 7 to 90 days",
    severity=Severity.ERROR,
    applies_to=(BUCKET,),
    remediation="Set softDeletePolicy.retentionDurationSeconds to 0, or to 604800 (7 days) up to 7776000 (90 days).",
    url="https://docs.cloud.google.com/storage/docs/soft-delete",
    check=_check,
)
