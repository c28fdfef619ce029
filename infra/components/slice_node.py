"""A slice of the Cloud TPU API: one `tpu.V2Vm`, whatever the number of its hosts.

The accelerator type is always said: where it is omitted, the provider asks for a v2-8. Capacity is one of three words
of ours, so that `spot` and `reserved` cannot both be true. The mode of a data disk is always said: where it is omitted,
it is READ_WRITE. Google keeps this API in maintenance since 2026 and recommends Compute Engine for v6e.
Source: https://www.pulumi.com/registry/packages/gcp/api-docs/tpu/v2vm/ and
https://docs.cloud.google.com/tpu/docs/attach-durable-block-storage
"""

from __future__ import annotations

import pulumi
import pulumi_gcp as gcp

from infra.components.head_node import CLOUD_PLATFORM
from infra.components.network import HOST_TAG
from infra.components.slice_parts import TpuSliceArgs
from infra.plan.capacity import Capacity
from infra.plan.disks import READ_ONLY


def make(name: str, args: TpuSliceArgs, parent: pulumi.Resource) -> gcp.tpu.V2Vm:
    """The node `name`. It is replaced, the old one first, when its volume changes."""
    plan = args.plan
    return gcp.tpu.V2Vm(
        name,
        name=plan.cloud_name,
        zone=plan.zone,
        accelerator_type=plan.shape.accelerator_type,
        runtime_version=args.runtime,
        scheduling_config=_scheduling(plan.capacity),
        network_config=gcp.tpu.V2VmNetworkConfigArgs(
            network=args.network, subnetwork=args.subnetwork, enable_external_ips=False
        ),
        service_account=gcp.tpu.V2VmServiceAccountArgs(email=args.service_account, scopes=[CLOUD_PLATFORM]),
        data_disks=_volumes(args),
        metadata=args.metadata,
        tags=[HOST_TAG],
        labels=args.labels,
        opts=pulumi.ResourceOptions(parent=parent, delete_before_replace=True, replace_on_changes=["dataDisks"]),
    )


def _scheduling(capacity: Capacity) -> gcp.tpu.V2VmSchedulingConfigArgs:
    if capacity is Capacity.RESERVED:
        return gcp.tpu.V2VmSchedulingConfigArgs(reserved=True)
    return gcp.tpu.V2VmSchedulingConfigArgs(spot=capacity is Capacity.SPOT)


def _volumes(args: TpuSliceArgs) -> list[gcp.tpu.V2VmDataDiskArgs]:
    if args.model is None:
        return []
    return [gcp.tpu.V2VmDataDiskArgs(source_disk=args.model.disk_id, mode=READ_ONLY)]
