"""A slice of many hosts on Compute Engine: template, workload policy and managed group.

- The workload policy asks for the torus: without it the hosts would have chips and no links between them.
- Target size policy BULK: all hosts or none. Half a slice trains nothing and bills. The page on slices makes spot ones
  so; an older page on bulk mode knows reserved and flex-start capacity only. Were it refused, `up` would fail at the
  group, before any host.
- Repair off: a host that ran its time, or was preempted, would be brought back by the group, past every bound.
- Update policy OPPORTUNISTIC: the group never exchanges hosts by itself. A new template replaces the group as a whole,
  the old one first, since a slice with two kinds of hosts has no use. Whoever rolls by hand rolls all hosts at once.
- Labels are given by the group, which can change them, and not only by the template, which cannot: another owner or
  `ttl` must not cost a slice. The guard goes by what the group gives; hosts that stand keep what they have.
- A template cannot change and cannot go while a group uses it: Google gets a prefix and makes the name, so that the
  new one stands before the old one goes.
- `up` does not wait for the hosts: spot capacity comes when it comes, and BULK waits for it at Google's.
- A group that has lost its hosts looks the same to Pulumi. `pulumi up --replace '<URN of the group>'` asks for
  them again.
Source: https://docs.cloud.google.com/compute/docs/tpus/create-tpu-mig-multi-host-slice and
https://docs.cloud.google.com/compute/docs/instance-groups/about-bulk-mode
"""

from __future__ import annotations

import pulumi
import pulumi_gcp as gcp

from infra.components.boot_disk import LABELS_OF_TEMPLATE
from infra.components.head_node import CLOUD_PLATFORM
from infra.components.network import HOST_TAG
from infra.components.slice_parts import GVNIC, RESERVATION_KEY, TpuSliceArgs, terms
from infra.plan.disks import READ_ONLY
from policies.hardware.zones import region_of


def make(name: str, args: TpuSliceArgs, parent: pulumi.Resource) -> gcp.compute.InstanceGroupManager:
    """The group `name`, with the template and the policy that it stands on."""
    plan = args.plan
    template = _template(name, args, parent)
    topology = _topology(name, args, parent)
    return gcp.compute.InstanceGroupManager(
        name,
        name=plan.cloud_name,
        base_instance_name=plan.cloud_name,
        zone=plan.zone,
        target_size=plan.shape.hosts,
        versions=[gcp.compute.InstanceGroupManagerVersionArgs(instance_template=template.self_link)],
        resource_policies=gcp.compute.InstanceGroupManagerResourcePoliciesArgs(workload_policy=topology.self_link),
        target_size_policies=[gcp.compute.InstanceGroupManagerTargetSizePolicyArgs(mode="BULK")],
        instance_lifecycle_policy=gcp.compute.InstanceGroupManagerInstanceLifecyclePolicyArgs(
            default_action_on_failure="DO_NOTHING"
        ),
        update_policy=gcp.compute.InstanceGroupManagerUpdatePolicyArgs(
            type="OPPORTUNISTIC",
            minimal_action="REPLACE",
            replacement_method="RECREATE",
            max_surge_fixed=0,
            max_unavailable_fixed=plan.shape.hosts,
        ),
        all_instances_config=gcp.compute.InstanceGroupManagerAllInstancesConfigArgs(labels=args.labels),
        wait_for_instances=False,
        opts=pulumi.ResourceOptions(
            parent=parent,
            delete_before_replace=True,
            replace_on_changes=["versions", "resourcePolicies", "targetSize"],
        ),
    )


def _topology(name: str, args: TpuSliceArgs, parent: pulumi.Resource) -> gcp.compute.ResourcePolicy:
    plan = args.plan
    return gcp.compute.ResourcePolicy(
        f"{name}-topology",
        name=f"{plan.cloud_name}-{plan.shape.topology}",
        region=region_of(plan.zone),
        workload_policy=gcp.compute.ResourcePolicyWorkloadPolicyArgs(
            type="HIGH_THROUGHPUT", accelerator_topology=plan.shape.topology
        ),
        opts=pulumi.ResourceOptions(parent=parent),
    )


def _template(name: str, args: TpuSliceArgs, parent: pulumi.Resource) -> gcp.compute.InstanceTemplate:
    plan = args.plan
    return gcp.compute.InstanceTemplate(
        f"{name}-template",
        name_prefix=f"{plan.cloud_name}-",
        machine_type=plan.shape.machine_type,
        disks=[args.boot.of_template(args.labels), *_volumes(args)],
        network_interfaces=[
            gcp.compute.InstanceTemplateNetworkInterfaceArgs(subnetwork=args.subnetwork, nic_type=GVNIC)
        ],
        service_account=gcp.compute.InstanceTemplateServiceAccountArgs(
            email=args.service_account, scopes=[CLOUD_PLATFORM]
        ),
        scheduling=_scheduling(args),
        reservation_affinity=_reservation(plan.reservation),
        metadata=args.metadata,
        tags=[HOST_TAG],
        labels=args.labels,
        opts=pulumi.ResourceOptions(parent=parent, ignore_changes=["labels", LABELS_OF_TEMPLATE]),
    )


def _volumes(args: TpuSliceArgs) -> list[gcp.compute.InstanceTemplateDiskArgs]:
    if args.model is None:
        return []
    return [
        gcp.compute.InstanceTemplateDiskArgs(
            source=args.model.disk_name,
            device_name=args.model.device_name,
            mode=READ_ONLY,
            boot=False,
            auto_delete=False,
        )
    ]


def _scheduling(args: TpuSliceArgs) -> gcp.compute.InstanceTemplateSchedulingArgs:
    seconds = args.plan.max_run_seconds
    bound = None if seconds is None else gcp.compute.InstanceTemplateSchedulingMaxRunDurationArgs(seconds=seconds)
    return gcp.compute.InstanceTemplateSchedulingArgs(**terms(args.plan), max_run_duration=bound)


def _reservation(name: str) -> gcp.compute.InstanceTemplateReservationAffinityArgs | None:
    if not name:
        return None
    specific = gcp.compute.InstanceTemplateReservationAffinitySpecificReservationArgs(
        key=RESERVATION_KEY, values=[name]
    )
    return gcp.compute.InstanceTemplateReservationAffinityArgs(
        type="SPECIFIC_RESERVATION", specific_reservation=specific
    )
