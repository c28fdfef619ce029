"""Labels of buckets: the storage bill is split by them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.resources import Resource
from policies.rules.buckets import BUCKET
from policies.rules.labels import REMEDIATION, URL, judge_labels
from policies.rules.model import Context, Rule, Severity, Violation


def _check(resource: Resource, context: Context) -> Iterator[Violation]:
    return judge_labels(resource, context.resources)


RULE: Final = Rule(
    id="GCS-LABELS",
    title="Buckets carry the labels owner, env, ttl and managed-by",
    severity=Severity.ERROR,
    applies_to=(BUCKET,),
    remediation=REMEDIATION,
    url=URL,
    check=_check,
)
