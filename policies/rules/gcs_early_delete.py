"""Lifecycle rules that delete before the least duration of a class: the rest of it is billed all the same.

Google counts the age from the creation of the object, also where a lifecycle rule has moved it to a colder class.
Source: https://cloud.google.com/storage/pricing#early-delete
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Final

from policies.estimate.location import locate
from policies.prices.book import Price, PriceModel
from policies.resources import Opaque, Resource, Value, dig
from policies.rules.buckets import BUCKET
from policies.rules.model import Context, Rule, Severity, Violation

DAYS: Final = MappingProxyType({"NEARLINE": 30, "COLDLINE": 90, "ARCHIVE": 365})
"""The least duration of a class; Standard has none."""
MONTH: Final = 30


def _check(bucket: Resource, context: Context) -> Iterator[Violation]:
    first, lifecycle = bucket.text("storageClass"), bucket.items("lifecycleRules")
    for path, value in (("storageClass", first), ("lifecycleRules", lifecycle)):
        if isinstance(value, Opaque):
            yield Violation.hidden(path, value)
            return
    if not isinstance(lifecycle, tuple):
        return
    start = first.upper() if isinstance(first, str) else "STANDARD"
    for place, rule in enumerate(lifecycle):
        age = dig(rule, "condition", "age")
        if dig(rule, "action", "type") != "Delete" or age is None:
            continue
        if isinstance(age, Opaque):
            yield Violation.hidden(f"lifecycleRules[{place}].condition.age", age)
        elif isinstance(age, int) and (found := _class_at(age, start, lifecycle)) in _meant(rule):
            yield from _judged(bucket, found, age, context)


def _class_at(age: int, start: str, lifecycle: Sequence[Value]) -> str:
    """The class of an object of that many days: of the moves that are over, the one to the longest duration."""
    moves = (
        str(dig(rule, "action", "storageClass"))
        for rule in lifecycle
        if dig(rule, "action", "type") == "SetStorageClass" and _over(dig(rule, "condition", "age"), age)
    )
    return max((start, *moves), key=lambda name: DAYS.get(name, 0))


def _over(moved: Value, age: int) -> bool:
    return isinstance(moved, int) and moved < age


def _meant(rule: Value) -> Sequence[str]:
    """The classes that a rule deletes of: those that it names, else every one."""
    named = dig(rule, "condition", "matchesStorageClasses")
    return [name for name in named if isinstance(name, str)] if isinstance(named, tuple) and named else tuple(DAYS)


def _judged(bucket: Resource, kind: str, age: int, context: Context) -> Iterator[Violation]:
    rest = DAYS.get(kind, 0) - age
    if rest > 0:
        lost = "1 day" if rest == 1 else f"{rest} days"
        message = f"objects are deleted {age} days old in {kind}, which bills {DAYS[kind]}: {lost} of nothing"
        yield Violation(message=f"{message}{_worth(bucket, kind, rest, context)}")


def _worth(bucket: Resource, kind: str, rest: int, context: Context) -> str:
    place = locate(bucket, context.resources, "location")
    item = f"storage.{kind.lower()}.capacity"
    price = context.book.find(item, PriceModel.ON_DEMAND, place) if isinstance(place, str) else None
    return f", {price.unit_price * rest / MONTH:.4f} a GiB" if isinstance(price, Price) else ""


RULE: Final = Rule(
    id="GCS-EARLY-DELETE",
    title="Nothing is deleted before the least duration of its class",
    severity=Severity.WARNING,
    applies_to=(BUCKET,),
    remediation="Keep what lives shorter than 30 days in STANDARD, or delete it after 30, 90 or 365 days.",
    url="https://cloud.google.com/storage/pricing#early-delete",
    check=_check,
)
