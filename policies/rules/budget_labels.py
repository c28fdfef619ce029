"""Labels of the small things that bill: a budget can only split what is labelled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.resources import Resource
from policies.rules.labels import REMEDIATION, URL, judge_labels
from policies.rules.model import Context, Rule, Severity, Violation

OTHERS: Final = (
    "gcp:cloudrunv2/job:Job",
    "gcp:artifactregistry/repository:Repository",
    "gcp:pubsub/topic:Topic",
    "gcp:compute/address:Address",
    "gcp:compute/globalAddress:GlobalAddress",
)
INTERNAL: Final = "INTERNAL"
"""An address of that type costs nothing."""


def _check(resource: Resource, context: Context) -> Iterator[Violation]:
    if resource.value("addressType") != INTERNAL:
        yield from judge_labels(resource, context.resources)


RULE: Final = Rule(
    id="BUDGET-LABELS",
    title="Jobs, registries, topics and addresses carry owner, env, ttl, managed-by",
    severity=Severity.ERROR,
    applies_to=OTHERS,
    remediation=REMEDIATION,
    url=URL,
    check=_check,
)
