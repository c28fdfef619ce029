"""The private network: one subnetwork a region, no external address anywhere.

- MTU 8896, the largest that a VPC takes: slices exchange gradients over it (https://cloud.google.com/vpc/docs/mtu).
- Private Google Access is on: machines without an external address reach Google's APIs, buckets and registries
  (`*.googleapis.com`, `*.pkg.dev`, `gcr.io`) under their public names. That takes the default route and the default
  permission of egress, which every VPC is made with; no DNS zone and no route of ours. Nothing else outside is reached.
- People come in through Identity-Aware Proxy only, to SSH and to Ray's dashboard and job API.
- Machines of the stack reach each other by the service accounts that they run as: an address can be taken by
  anybody, an account has to be granted. Nodes of the Cloud TPU API live in a project of Google's, where rules by
  account are not documented to apply; network tags are, so the hosts of such a stack are let in by their tag.
- A NAT gateway costs money by the machine and by the GiB, and is there only where it is asked for.
Source: https://cloud.google.com/vpc/docs/configure-private-google-access
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

import pulumi
import pulumi_gcp as gcp

from infra.components.site import Site
from infra.plan.addresses import subnetworks
from infra.plan.names import cloud_name

MTU: Final = 8896
IAP_RANGE: Final = "35.235.240.0/20"
"""Where forwarded connections of Identity-Aware Proxy come from.
Source: https://cloud.google.com/iap/docs/using-tcp-forwarding"""
SSH_PORT: Final = 22
RAY_DASHBOARD_PORT: Final = 8265
HOST_TAG: Final = "spotrail-host"
"""Network tag of every head and TPU host."""


@final
@dataclass(frozen=True, kw_only=True)
class NetworkArgs:
    """Addresses and doors."""

    site: Site
    cidr: str
    """Addresses of the whole stack, such as `10.64.0.0/20`; each region gets a quarter."""
    regions: tuple[str, ...]
    """Regions in use, the main one first."""
    accounts: Mapping[str, pulumi.Input[str]]
    """E-mails of the stack's machine accounts, which may talk to each other."""
    tags_let_in: bool = False
    """Whether hosts let each other in by tag as well: needed where a slice uses the Cloud TPU API."""
    nat: bool = False
    """Whether each region gets a NAT gateway."""


@final
class Network(pulumi.ComponentResource):
    """The VPC, its subnetworks, its firewall and, on request, its NAT gateways."""

    network: gcp.compute.Network
    subnetworks: Mapping[str, gcp.compute.Subnetwork]
    """By region."""

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("spotrail:infra:Network", name, None, opts)
        self._args = args
        self.network = gcp.compute.Network(
            "vpc",
            name=cloud_name(args.site.env, "vpc"),
            auto_create_subnetworks=False,
            mtu=MTU,
            routing_mode="REGIONAL",
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.subnetworks = {
            region: self._subnetwork(region, cidr) for region, cidr in subnetworks(args.cidr, args.regions).items()
        }
        self._doors()
        for region in args.regions if args.nat else ():
            self._nat(region)
        self.register_outputs(
            {"network": self.network.id, "subnetworks": {region: net.id for region, net in self.subnetworks.items()}}
        )

    def subnetwork_of(self, region: str) -> pulumi.Output[str]:
        """Id of the subnetwork of `region`."""
        return self.subnetworks[region].id

    def _subnetwork(self, region: str, cidr: str) -> gcp.compute.Subnetwork:
        return gcp.compute.Subnetwork(
            f"subnet-{region}",
            name=subnetwork_name(self._args.site.env, region),
            region=region,
            network=self.network.id,
            ip_cidr_range=cidr,
            private_ip_google_access=True,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _doors(self) -> None:
        accounts = list(self._args.accounts.values())
        iap = [_tcp(SSH_PORT, RAY_DASHBOARD_PORT)]
        self._door(
            "iap",
            "SSH and the Ray dashboard, through Identity-Aware Proxy",
            gcp.compute.FirewallArgs(
                network=self.network.id, source_ranges=[IAP_RANGE], target_service_accounts=accounts, allows=iap
            ),
        )
        self._door(
            "internal",
            "The stack's own machines among themselves, by service account",
            gcp.compute.FirewallArgs(
                network=self.network.id,
                source_service_accounts=accounts,
                target_service_accounts=accounts,
                allows=_anything(),
            ),
        )
        if self._args.tags_let_in:
            self._doors_by_tag(iap)

    def _doors_by_tag(self, iap: list[gcp.compute.FirewallAllowArgs]) -> None:
        self._door(
            "iap-by-tag",
            "As iap, for nodes of the Cloud TPU API",
            gcp.compute.FirewallArgs(
                network=self.network.id, source_ranges=[IAP_RANGE], target_tags=[HOST_TAG], allows=iap
            ),
        )
        self._door(
            "internal-by-tag",
            "As internal, for nodes of the Cloud TPU API",
            gcp.compute.FirewallArgs(
                network=self.network.id, source_tags=[HOST_TAG], target_tags=[HOST_TAG], allows=_anything()
            ),
        )

    def _door(self, name: str, description: str, rule: gcp.compute.FirewallArgs) -> None:
        rule.name = cloud_name(self._args.site.env, name)
        rule.description = description
        rule.direction = "INGRESS"
        gcp.compute.Firewall(name, rule, pulumi.ResourceOptions(parent=self))

    def _nat(self, region: str) -> None:
        router = gcp.compute.Router(
            f"router-{region}",
            name=cloud_name(self._args.site.env, "router", region),
            region=region,
            network=self.network.id,
            opts=pulumi.ResourceOptions(parent=self),
        )
        gcp.compute.RouterNat(
            f"nat-{region}",
            name=cloud_name(self._args.site.env, "nat", region),
            region=region,
            router=router.name,
            nat_ip_allocate_option="AUTO_ONLY",
            source_subnetwork_ip_ranges_to_nat="ALL_SUBNETWORKS_ALL_IP_RANGES",
            log_config=gcp.compute.RouterNatLogConfigArgs(enable=True, filter="ERRORS_ONLY"),
            opts=pulumi.ResourceOptions(parent=self),
        )


def subnetwork_name(env: str, region: str) -> str:
    """Name of the subnetwork of `region`."""
    return cloud_name(env, "subnet", region)


def _tcp(*ports: int) -> gcp.compute.FirewallAllowArgs:
    return gcp.compute.FirewallAllowArgs(protocol="tcp", ports=[str(port) for port in ports])


def _anything() -> list[gcp.compute.FirewallAllowArgs]:
    return [gcp.compute.FirewallAllowArgs(protocol=protocol) for protocol in ("tcp", "udp", "icmp")]
