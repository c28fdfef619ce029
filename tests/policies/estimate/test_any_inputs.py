"""Whatever stands in an input, a stack is priced: no exception, no negative or endless amount, nothing opaque shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.estimate.model import Estimate
from policies.estimate.registry import priced_types
from policies.resources import SECRET, UNKNOWN, Resource, Value

KEYS = (
    "name", "zone", "region", "location", "type", "size", "sourceDisk", "snapshot", "machineType", "bootDisk",
    "initializeParams", "scheduling", "spot", "provisioningModel", "networkInterfaces", "accessConfigs",
    "natIp", "disks", "scratchDisks", "guestAccelerators", "targetSize", "versions", "instanceTemplate",
    "acceleratorType", "acceleratorConfig", "topology", "schedulingConfig", "template", "containers",
    "resources", "limits", "cpu", "memory", "taskCount", "storageClass", "softDeletePolicy",
    "retentionDurationSeconds", "autoclass", "enabled", "labels", "storageLocations", "snapshotType",
    "provisionedIops", "provisionedThroughput", "storagePool", "storagePoolType", "poolProvisionedCapacityGb",
    "poolProvisionedIops", "poolProvisionedThroughput", "capacityProvisioningType",
    "performanceProvisioningType", "cluster", "nodeCount", "initialNodeCount", "nodeLocations", "nodeConfig",
    "diskSizeGb", "diskType", "autoscaling", "minNodeCount", "maxNodeCount", "placementPolicy", "tpuTopology",
    "networkConfig", "enablePrivateNodes", "nodePools", "enableAutopilot", "removeDefaultNodePool",
    "snapshotSchedulePolicy", "schedule", "dailySchedule", "daysInCycle", "hourlySchedule", "hoursInCycle",
    "weeklySchedule", "dayOfWeeks", "retentionPolicy", "maxRetentionDays", "snapshotProperties", "replication",
    "userManaged", "replicas", "secret", "scaling", "minInstanceCount", "conditions", "natIps", "addressType",
    "resourcePolicies", "disk", "bucket", "tpus", "node",
)  # fmt: skip
TEXTS = (
    "", "it", "us-central1-b", "us-central1", "US", "hyperdisk-ml", "pd-balanced", "n2-standard-8", "e2-medium",
    "ct6e-standard-4t", "v6e-8", "v6e-9", "2x4", "4x4", "SPOT", "ADVANCED", "STANDARD", "512Mi", "2", "-3", "1e9", "€",
    "projects/p/zones/us-central1-b/disks/it", "hyperdisk-balanced",
)  # fmt: skip
leaves = st.one_of(
    st.sampled_from((None, True, False, UNKNOWN, SECRET)),
    st.sampled_from((0, 1, 3, 100, 10**12, -1, Decimal("0.5"), Decimal("-1.5"))),
    st.sampled_from(TEXTS),
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(tuple), st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
    ),
    max_leaves=12,
)
inputs = st.dictionaries(st.sampled_from(KEYS), values, max_size=12)
tokens = st.sampled_from(sorted(priced_types()))


@given(st.lists(st.tuples(tokens, inputs, inputs), min_size=1, max_size=3))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_stack_has_an_estimate(
    make: Callable[..., Resource],
    price_stack: Callable[..., Estimate],
    stack: list[tuple[str, Mapping[str, Value], Mapping[str, Value]]],
) -> None:
    resources = [make(token, f"it-{place}", asked, said) for place, (token, asked, said) in enumerate(stack)]
    found = price_stack(*resources)
    assert len(found.resources) == len(resources)
    for each in found.resources:
        assert each.amount.per_month >= 0
        assert each.amount.monthly.is_finite()
        assert all(line.quantity >= 0 for line in each.components)
        assert "Opaque" not in words(each)
        assert each.free == "" or not each.components


def words(found: Any) -> str:
    """All that a report would show of an estimate."""
    lines = [found.title, found.location, found.free, *found.notes]
    lines += [text for line in found.components for text in (line.name, line.note)]
    lines += [text for part in found.unpriced for text in (part.item, part.reason)]
    lines += [text for part in found.unknown for text in (part.path, part.reason)]
    return " ".join(lines)
