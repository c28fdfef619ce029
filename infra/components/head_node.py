"""The Ray head: a CPU machine that is never spot, since every slice hangs on it.

It has a fixed internal address, so that workers that come back after a preemption find it where it was, and so that
a preview shows their startup script. Ray's ports are open to the stack's own machines only; a person reaches the
dashboard and the job API through the tunnel of `tunnel_command`, which asks Identity-Aware Proxy.

A changed startup script does not replace the machine: jobs run on it. It takes effect at the next boot
(`gcloud compute instances reset`). A changed machine type stops and starts it. What cannot change in place replaces it,
the old one first, because two machines cannot have one address.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import pulumi
import pulumi_gcp as gcp

from infra.components.boot_disk import LABELS_OF_INSTANCE, BootDisk
from infra.components.network import HOST_TAG, RAY_DASHBOARD_PORT
from infra.components.site import Site
from infra.plan.names import cloud_name
from policies.hardware.zones import region_of

CLOUD_PLATFORM: Final = "https://www.googleapis.com/auth/cloud-platform"
"""The one scope of every machine: what it may do is decided by the roles of its account."""
ROLE: Final = "head"


@final
@dataclass(frozen=True, kw_only=True)
class HeadNodeArgs:
    """What the head is made of."""

    site: Site
    zone: str
    machine: str
    """Machine type."""
    boot: BootDisk
    address: str
    """Internal address, from the subnetwork of its region."""
    subnetwork: pulumi.Input[str]
    service_account: pulumi.Input[str]
    """E-mail."""
    startup_script: str


@final
class HeadNode(pulumi.ComponentResource):
    """The machine and its address."""

    instance: gcp.compute.Instance
    address: pulumi.Output[str]
    """Internal address."""
    tunnel_command: str
    """What opens `localhost:8265` on a laptop."""
    submit_address: str
    """What `ray job submit --address` takes while the tunnel is open."""

    def __init__(self, name: str, args: HeadNodeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("spotrail:infra:HeadNode", name, None, opts)
        self._args = args
        cloud = cloud_name(args.site.env, name)
        reserved = gcp.compute.Address(
            name,
            name=cloud,
            region=region_of(args.zone),
            address_type="INTERNAL",
            purpose="GCE_ENDPOINT",
            subnetwork=args.subnetwork,
            address=args.address,
            labels=args.site.labels_with(role=ROLE),
            opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
        )
        self.instance = self._instance(name, cloud, reserved.address)
        self.address = reserved.address
        self.tunnel_command = tunnel_command(cloud, args.zone, args.site.project)
        self.submit_address = f"http://localhost:{RAY_DASHBOARD_PORT}"
        self.register_outputs(
            {
                "address": self.address,
                "tunnel_command": self.tunnel_command,
                "submit_address": self.submit_address,
            }
        )

    def _instance(self, name: str, cloud: str, address: pulumi.Output[str]) -> gcp.compute.Instance:
        args = self._args
        labels = args.site.labels_with(role=ROLE)
        return gcp.compute.Instance(
            name,
            name=cloud,
            zone=args.zone,
            machine_type=args.machine,
            boot_disk=args.boot.of_instance(labels),
            network_interfaces=[
                gcp.compute.InstanceNetworkInterfaceArgs(subnetwork=args.subnetwork, network_ip=address)
            ],
            service_account=gcp.compute.InstanceServiceAccountArgs(email=args.service_account, scopes=[CLOUD_PLATFORM]),
            scheduling=gcp.compute.InstanceSchedulingArgs(
                provisioning_model="STANDARD", automatic_restart=True, on_host_maintenance="MIGRATE"
            ),
            shielded_instance_config=gcp.compute.InstanceShieldedInstanceConfigArgs(
                enable_secure_boot=True, enable_vtpm=True, enable_integrity_monitoring=True
            ),
            metadata={"startup-script": args.startup_script, "enable-oslogin": "TRUE"},
            tags=[HOST_TAG],
            labels=labels,
            allow_stopping_for_update=True,
            deletion_protection=False,
            opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True, ignore_changes=[LABELS_OF_INSTANCE]),
        )


def tunnel_command(instance: str, zone: str, project: str) -> str:
    """The command that forwards Ray's dashboard and job API to `localhost`, through Identity-Aware Proxy."""
    port = RAY_DASHBOARD_PORT
    return (
        f"gcloud compute start-iap-tunnel {instance} {port} --local-host-port=localhost:{port} "
        f"--zone={zone} --project={project}"
    )
