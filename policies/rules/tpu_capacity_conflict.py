"""Capacity flags that contradict each other: one of them wins silently, and not the one that was paid for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.estimate.capacity import asked
from policies.estimate.model import UnknownInput
from policies.estimate.node_counts import NODE_POOL
from policies.resources import Resource, ResourceError
from policies.rules.cluster_pools import CLUSTER, each_pool
from policies.rules.machines import DESCRIBED, NODE, asked_terms
from policies.rules.model import Context, Rule, Severity, Violation


def _check(resource: Resource, context: Context) -> Iterator[Violation]:
    try:
        terms = asked_terms(resource, context)
    except ResourceError as error:
        yield Violation(message=str(error).removeprefix(f"{resource.urn}: "))
        return
    if isinstance(terms, UnknownInput):
        yield Violation(message=f"{terms.path}: {terms.reason}", decided=False)
    elif resource.type == NODE:
        flags = asked(resource, "schedulingConfig")
        if flags.flag("schedulingConfig", "spot") and flags.flag("schedulingConfig", "preemptible"):
            yield Violation(
                message="schedulingConfig has spot and preemptible; it is spot, and preemptible says nothing more",
                severity=Severity.WARNING,
            )


RULE: Final = Rule(
    id="TPU-CAPACITY-CONFLICT",
    title="Capacity is asked for on one set of terms: spot, reserved or on demand",
    severity=Severity.ERROR,
    applies_to=(NODE, *DESCRIBED, NODE_POOL, CLUSTER),
    remediation=(
        "Set spotrail:slices.<name>.capacity to one word, spot, reserved or on-demand; in schedulingConfig or "
        "scheduling leave one flag and take the others out."
    ),
    url="https://docs.cloud.google.com/tpu/docs/reference/rest/v2/projects.locations.queuedResources",
    check=each_pool(_check),
)
