"""Rules about node pools, applied to the pools that stand inside a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import wraps

from policies.estimate.inner_pools import inner_pools
from policies.estimate.node_counts import CLUSTER as CLUSTER
from policies.resources import Opaque, Resource
from policies.rules.model import Check, Context, Violation


def each_pool(check: Check) -> Check:
    """The check for clusters too: each pool inside is judged as a node pool would be, and named in the message."""

    @wraps(check)
    def judged(resource: Resource, context: Context) -> Iterable[Violation]:
        return _inside(check, resource, context) if resource.type == CLUSTER else check(resource, context)

    return judged


def _inside(check: Check, cluster: Resource, context: Context) -> Iterator[Violation]:
    pools = inner_pools(cluster)
    if isinstance(pools, Opaque):
        yield Violation.hidden("nodePools", pools)
        return
    for pool in pools:
        for violation in check(pool.resource, context):
            yield replace(violation, message=pool.called(violation.message))
