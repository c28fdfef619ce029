"""Labels of TPU hosts: the guard acts on ttl, the bill is split by owner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.estimate.node_counts import NODE_POOL
from policies.resources import Resource
from policies.rules.cluster_pools import CLUSTER, each_pool
from policies.rules.labels import REMEDIATION, URL, judge_labels
from policies.rules.machines import DESCRIBED, NODE, is_tpu
from policies.rules.model import Context, Rule, Severity, Violation


def _check(resource: Resource, context: Context) -> Iterator[Violation]:
    if is_tpu(resource, context.resources) is True:
        yield from judge_labels(resource, context.resources)


RULE: Final = Rule(
    id="TPU-LABELS",
    title="TPU hosts carry the labels owner, env, ttl and managed-by",
    severity=Severity.ERROR,
    applies_to=(NODE, *DESCRIBED, NODE_POOL, CLUSTER),
    remediation=REMEDIATION,
    url=URL,
    check=each_pool(_check),
)
