"""A slice of one host on Compute Engine: one `compute.Instance`.

Source: https://docs.cloud.google.com/tpu/docs/spot-compute
"""

from __future__ import annotations

import pulumi
import pulumi_gcp as gcp

from infra.components.boot_disk import LABELS_OF_INSTANCE
from infra.components.head_node import CLOUD_PLATFORM
from infra.components.network import HOST_TAG
from infra.components.slice_parts import GVNIC, RESERVATION_KEY, TpuSliceArgs, terms
from infra.plan.disks import READ_ONLY


def make(name: str, args: TpuSliceArgs, parent: pulumi.Resource) -> gcp.compute.Instance:
    """The instance `name`. It is replaced, the old one first, when its volume changes."""
    plan = args.plan
    return gcp.compute.Instance(
        name,
        name=plan.cloud_name,
        zone=plan.zone,
        machine_type=plan.shape.machine_type,
        boot_disk=args.boot.of_instance(args.labels),
        attached_disks=_volumes(args),
        network_interfaces=[gcp.compute.InstanceNetworkInterfaceArgs(subnetwork=args.subnetwork, nic_type=GVNIC)],
        service_account=gcp.compute.InstanceServiceAccountArgs(email=args.service_account, scopes=[CLOUD_PLATFORM]),
        scheduling=_scheduling(args),
        reservation_affinity=_reservation(plan.reservation),
        metadata=args.metadata,
        tags=[HOST_TAG],
        labels=args.labels,
        deletion_protection=False,
        opts=pulumi.ResourceOptions(
            parent=parent,
            delete_before_replace=True,
            replace_on_changes=["attachedDisks"],
            ignore_changes=[LABELS_OF_INSTANCE],
        ),
    )


def _volumes(args: TpuSliceArgs) -> list[gcp.compute.InstanceAttachedDiskArgs]:
    if args.model is None:
        return []
    return [
        gcp.compute.InstanceAttachedDiskArgs(
            source=args.model.disk_id, device_name=args.model.device_name, mode=READ_ONLY
        )
    ]


def _scheduling(args: TpuSliceArgs) -> gcp.compute.InstanceSchedulingArgs:
    seconds = args.plan.max_run_seconds
    bound = None if seconds is None else gcp.compute.InstanceSchedulingMaxRunDurationArgs(seconds=seconds)
    return gcp.compute.InstanceSchedulingArgs(**terms(args.plan), max_run_duration=bound)


def _reservation(name: str) -> gcp.compute.InstanceReservationAffinityArgs | None:
    if not name:
        return None
    specific = gcp.compute.InstanceReservationAffinitySpecificReservationArgs(key=RESERVATION_KEY, values=[name])
    return gcp.compute.InstanceReservationAffinityArgs(type="SPECIFIC_RESERVATION", specific_reservation=specific)
