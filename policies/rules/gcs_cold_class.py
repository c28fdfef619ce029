"""Datasets, models and checkpoints in a cold class: cheap to keep, and every pass over them pays retrieval."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.prices.book import Price, PriceModel
from policies.resources import Opaque, Resource, Value, dig
from policies.rules.bills import bills
from policies.rules.buckets import BUCKET, purpose_of
from policies.rules.model import Context, Rule, Severity, Violation

COLD: Final = ("NEARLINE", "COLDLINE", "ARCHIVE")


def _check(bucket: Resource, context: Context) -> Iterator[Violation]:
    purpose = purpose_of(bucket)
    if not purpose.read_often:
        return
    found = {"storageClass": bucket.value("storageClass"), "lifecycleRules": bucket.items("lifecycleRules")}
    for path, value in found.items():
        if isinstance(value, Opaque):
            yield Violation.hidden(path, value)
    kind = found["storageClass"]
    if isinstance(kind, str) and kind.upper() in COLD:
        yield Violation(
            message=f"it holds {purpose.value} in {kind.upper()}: each GiB read costs {_fee(bucket, kind, context)}"
        )
    for to in sorted(set(_moves(found["lifecycleRules"]))):
        yield Violation(
            message=f"a lifecycle rule moves its {purpose.value} to {to}: each GiB read then costs retrieval"
        )


def _moves(rules: Value) -> Iterator[str]:
    """The cold classes that lifecycle rules move live objects to."""
    for rule in rules if isinstance(rules, tuple) else ():
        to = dig(rule, "action", "storageClass")
        if to in COLD and dig(rule, "condition", "withState") != "ARCHIVED":
            yield str(to)


def _fee(bucket: Resource, kind: str, context: Context) -> str:
    bill = bills(context).get(bucket.urn)
    item = f"storage.{kind.lower()}.retrieval"
    price = context.book.find(item, PriceModel.ON_DEMAND, bill.location) if bill and bill.location else None
    return f"{price.unit_price:f}" if isinstance(price, Price) else "retrieval"


RULE: Final = Rule(
    id="GCS-COLD-CLASS",
    title="What TPUs read again and again is in Standard",
    severity=Severity.WARNING,
    applies_to=(BUCKET,),
    remediation="Set storageClass to STANDARD, and move only what no run reads any more to a colder class.",
    url="https://docs.cloud.google.com/storage/docs/storage-classes",
    check=_check,
)
