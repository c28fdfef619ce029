"""The states of nodes, queued resources and instances, and what each means for money.

Source: the enums Node.State and QueuedResourceState.State of the TPU API v2, Instance.Status of the Compute API v1,
https://docs.cloud.google.com/tpu/docs/queued-resources, https://cloud.google.com/tpu/pricing and
https://docs.cloud.google.com/compute/docs/instances/instance-lifecycle
"""

from __future__ import annotations

from typing import Final

BILLING_NODES: Final = frozenset({"READY"})
"""Chips bill from READY on, by the second; not at all where spot capacity is taken back in the first minute."""
STOPPED_NODES: Final = frozenset({"STOPPED", "TERMINATED"})
CHANGING_NODES: Final = frozenset(
    {
        "CREATING",
        "DELETING",
        "HIDDEN",
        "HIDING",
        "REIMAGING",
        "REPAIRING",
        "RESTARTING",
        "STARTING",
        "STOPPING",
        "UNHIDING",
    }
)
"""On the way from one state to another, or taken out of use by Google: no chips bill."""
PREEMPTED: Final = "PREEMPTED"
NODE_STATES: Final = BILLING_NODES | STOPPED_NODES | CHANGING_NODES | {PREEMPTED}
"""All states of a node that are known; `UNKNOWN`, `STATE_UNSPECIFIED` and whatever comes later are not."""

STALE_REQUESTS: Final = frozenset({"SUSPENDED", "FAILED"})
"""SUSPENDED is never allocated again, FAILED stays until somebody deletes it; both hold quota."""
WAITING_REQUESTS: Final = frozenset({"ACCEPTED", "CREATING", "PROVISIONING", "WAITING_FOR_RESOURCES"})
SERVED_REQUESTS: Final = frozenset({"ACTIVE"})
ENDING_REQUESTS: Final = frozenset({"DELETING", "SUSPENDING"})

RUNNING: Final = frozenset({"RUNNING", "PENDING_STOP", "STOPPING", "SUSPENDING"})
"""The machine of an instance bills."""
STOPPED: Final = frozenset(
    {"DEPROVISIONING", "PENDING", "PROVISIONING", "REPAIRING", "STAGING", "STOPPED", "SUSPENDED", "TERMINATED"}
)
"""It does not; its disks do. A suspended one keeps its memory, for which the book has no price."""
OFF: Final = frozenset({"STOPPED", "SUSPENDED", "TERMINATED"})
"""Of these, those that it does not leave by itself. It reads nothing."""
