"""Object versions that nothing deletes: every overwrite bills twice, for ever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.resources import Opaque, Resource, Value, dig
from policies.rules.bills import a_month, lines_of
from policies.rules.buckets import BUCKET
from policies.rules.model import Context, Rule, Severity, Violation

BOUNDS: Final = ("daysSinceNoncurrentTime", "numNewerVersions", "noncurrentTimeBefore")
LINE: Final = "noncurrent versions"


def _check(bucket: Resource, context: Context) -> Iterator[Violation]:
    versioned, rules = bucket.flag("versioning", "enabled"), bucket.items("lifecycleRules")
    if isinstance(versioned, Opaque):
        yield Violation.hidden("versioning.enabled", versioned)
    if versioned is not True:
        return
    if isinstance(rules, Opaque):
        yield Violation.hidden("lifecycleRules", rules)
    elif not any(_deletes(rule) for rule in rules):
        if any(isinstance(dig(rule, key), Opaque) for rule in rules for key in ("action", "condition")):
            yield Violation.hidden("lifecycleRules", Opaque.UNKNOWN)
            return
        line = next((line for line in lines_of(bucket, context) if line.name == LINE and line.amount), None)
        money = f": {a_month(line.amount)} now, and growing" if line else ""
        yield Violation(
            message=f"versioning is on and no lifecycle rule deletes noncurrent versions{money}",
            monthly=line.amount if line else None,
        )


def _deletes(rule: Value) -> bool:
    bounded = any(dig(rule, "condition", bound) is not None for bound in BOUNDS)
    archived = dig(rule, "condition", "withState") == "ARCHIVED" and dig(rule, "condition", "age") is not None
    return dig(rule, "action", "type") == "Delete" and (bounded or archived)


RULE: Final = Rule(
    id="GCS-NONCURRENT",
    title="A versioned bucket deletes its noncurrent versions",
    severity=Severity.WARNING,
    applies_to=(BUCKET,),
    remediation="Add a lifecycle rule: action Delete with condition daysSinceNoncurrentTime or numNewerVersions.",
    url="https://docs.cloud.google.com/storage/docs/lifecycle",
    check=_check,
)
