"""What a machine bills beside vCPUs and memory: licences of its image, confidential computing, Tier 1 networking.

The book that comes with spotrail has none of these prices, so each is counted and unpriced.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from policies.estimate.hosts import Fleet
from policies.estimate.market import Market, Part, unknown
from policies.hardware.machines import machine
from policies.resources import Opaque, Resource, Value

LICENCES: Final = MappingProxyType(
    {
        "windows-cloud": "windows",
        "windows-sql-cloud": "windows-sql",
        "rhel-cloud": "rhel",
        "rhel-sap-cloud": "rhel-sap",
        "suse-cloud": "sles",
        "suse-sap-cloud": "sles-sap",
        "ubuntu-os-pro-cloud": "ubuntu-pro",
    }
)
"""Projects whose images bill a licence. Source: https://cloud.google.com/compute/disks-image-pricing#premiumimages"""
NAMES: Final = MappingProxyType(
    {"windows-": "windows", "sql-": "windows-sql", "rhel-": "rhel", "sles-": "sles", "ubuntu-pro-": "ubuntu-pro"}
)
"""What the names of those images begin with: the provider looks for a bare name among Google's own."""
WINDOWS: Final = "windows"
TIER: Final = ("networkPerformanceConfig", "totalEgressBandwidthTier")
CONFIDENTIAL: Final = ("confidentialInstanceConfig", "enableConfidentialCompute")
CONFIDENTIAL_TYPE: Final = ("confidentialInstanceConfig", "confidentialInstanceType")


def surcharge_parts(market: Market, resource: Resource, fleet: Fleet, image: Value) -> Iterator[Part]:
    """The surcharges of `fleet`, which an instance or template describes and which boots from `image`."""
    licence = licence_of(image)
    if licence:
        yield licence_line(market, fleet, licence)
    for path in (CONFIDENTIAL, CONFIDENTIAL_TYPE):
        found = resource.value(*path)
        if isinstance(found, Opaque):
            yield unknown(found, *path, decides="whether confidential computing bills")
        elif found:
            yield confidential_line(market, fleet)
            break
    tier = resource.text(*TIER)
    if isinstance(tier, Opaque):
        yield unknown(tier, *TIER, decides="whether Tier 1 networking bills")
    elif tier == "TIER_1":
        yield _line(market, fleet, "Tier 1 networking", "network.tier-1", Decimal(fleet.count), "VM-hour")


def licence_line(market: Market, fleet: Fleet, licence: str) -> Part:
    """The line of an operating system that bills by the vCPU."""
    return _vcpu_line(market, fleet, f"{licence} licence", f"license.{licence}")


def confidential_line(market: Market, fleet: Fleet) -> Part:
    """The line of confidential computing, which bills by the vCPU."""
    return _vcpu_line(market, fleet, "confidential computing", "instance.confidential.vcpu")


def licence_of(image: Value) -> str | None:
    """The licence that an image bills; None for an image without one, and for one that nobody can see."""
    if not isinstance(image, str):
        return None
    if "/" not in image:
        return next((licence for start, licence in NAMES.items() if image.startswith(start)), None)
    return next((LICENCES[part] for part in image.split("/") if part in LICENCES), None)


def _vcpu_line(market: Market, fleet: Fleet, name: str, item: str) -> Part:
    known = machine(fleet.machine_type)
    if known is None:
        return _line(market, fleet, name, item, Decimal(fleet.count), "VM-hour")
    return _line(market, fleet, name, item, known.vcpus * fleet.count, "vCPU-hour")


def _line(market: Market, fleet: Fleet, name: str, item: str, quantity: Decimal, unit: str) -> Part:
    """A line at its own price, which is the same for spot capacity."""
    terms = fleet.terms
    return market.line(name, item, quantity, unit, terms.location, share=terms.share, note=terms.said)
