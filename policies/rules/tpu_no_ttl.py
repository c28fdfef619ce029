"""A slice that nothing ends: the bound of what a forgotten one costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.estimate.node_counts import NODE_POOL
from policies.resources import Opaque, Resource
from policies.rules.bills import a_month, cost_of
from policies.rules.cluster_pools import CLUSTER, each_pool
from policies.rules.labels import label
from policies.rules.machines import QUEUED, SLICES, description_of, is_tpu
from policies.rules.model import Context, Rule, Severity, Violation


def _check(resource: Resource, context: Context) -> Iterator[Violation]:
    tpu = is_tpu(resource, context.resources)
    described = description_of(resource, context.resources)
    if isinstance(tpu, Opaque):
        yield Violation.hidden("machineType", tpu)
    if tpu is not True or described is None:
        return
    path = _bound(described)
    bound, ttl = described.value(*path), label(described, "ttl", context.resources)
    if any(value and not isinstance(value, Opaque) for value in (bound, ttl)):
        return
    for shown, value in ((".".join(path[:2]), bound), ("label ttl", ttl)):
        if isinstance(value, Opaque):
            yield Violation.hidden(shown, value)
            return
    cost = cost_of(resource, context)
    yield Violation(message=f"{_said(resource)}, so nothing ends it: {a_month(cost)} if it is forgotten", monthly=cost)


def _bound(described: Resource) -> tuple[str, ...]:
    """Where its run duration stands."""
    if described.type == NODE_POOL:
        return ("nodeConfig", "maxRunDuration")
    return ("scheduling", "maxRunDuration", "seconds")


def _said(resource: Resource) -> str:
    if resource.type == QUEUED:
        return "a V2QueuedResource has neither a run duration nor labels"
    return f"it has neither {'.'.join(_bound(resource)[:2])} nor a label ttl"


RULE: Final = Rule(
    id="TPU-NO-TTL",
    title="Every slice is bounded by a run duration or a ttl label",
    severity=Severity.WARNING,
    applies_to=(*SLICES, CLUSTER),
    remediation=(
        "Set spotrail:ttl (label ttl, on which the guard acts) and spotrail:slices.<name>.max_run_hours "
        "(scheduling.maxRunDuration, which Compute Engine enforces itself)."
    ),
    url="https://docs.cloud.google.com/compute/docs/instances/limit-vm-runtime",
    check=each_pool(_check),
)
