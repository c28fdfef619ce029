"""Soft delete on a bucket that is rewritten all day: every deleted byte bills for seven days more."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from policies.estimate.priced.bucket import DAY, DEFAULT_RETENTION, RETENTIONS
from policies.resources import Opaque, Resource
from policies.rules.bills import a_month, lines_of
from policies.rules.buckets import BUCKET, purpose_of
from policies.rules.model import Context, Rule, Severity, Violation

LINE: Final = "soft-deleted"


def _check(bucket: Resource, context: Context) -> Iterator[Violation]:
    purpose = purpose_of(bucket)
    if not purpose.churns:
        return
    seconds = bucket.integer("softDeletePolicy", "retentionDurationSeconds")
    if isinstance(seconds, Opaque):
        yield Violation.hidden("softDeletePolicy.retentionDurationSeconds", seconds)
    elif seconds is None or RETENTIONS[0] <= seconds <= RETENTIONS[1]:
        yield _violation(bucket, purpose.value, seconds, context)


def _violation(bucket: Resource, purpose: str, seconds: int | None, context: Context) -> Violation:
    days = Decimal(DEFAULT_RETENTION if seconds is None else seconds) / DAY
    said = f"{days:,.4g} days of soft delete" + (", Google's default," if seconds is None else "")
    line = next((line for line in lines_of(bucket, context) if line.name == LINE and line.quantity), None)
    if line is None:
        return Violation(
            message=f"it holds {purpose} and has {said} on: each GiB of churn a day bills as {days:,.4g} GiB. "
            f"Set usage.{bucket.name}.churn_gib_per_day to see the money"
        )
    return Violation(
        message=f"{said} on {line.quantity / days:,.0f} GiB of churn a day hold {line.quantity:,.0f} GiB = "
        f"{a_month(line.amount)}",
        monthly=line.amount,
    )


RULE: Final = Rule(
    id="GCS-SOFT-DELETE",
    title="Buckets of checkpoints and temporary files have no soft delete",
    severity=Severity.WARNING,
    applies_to=(BUCKET,),
    remediation=(
        "Set softDeletePolicy.retentionDurationSeconds to 0; the Buckets component does. What is already soft-deleted "
        "stays, and bills, until its own time is over."
    ),
    url="https://docs.cloud.google.com/storage/docs/soft-delete",
    check=_check,
)
