"""Managed instance groups: how many hosts they have, and the template that describes them."""

from __future__ import annotations

from typing import Final

from policies.estimate.location import last_segment, locate
from policies.estimate.market import unknown
from policies.estimate.model import UnknownInput
from policies.resources import Opaque, Resource, ResourceSet

GROUP: Final = "gcp:compute/instanceGroupManager:InstanceGroupManager"
REGION_GROUP: Final = "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager"
TEMPLATES: Final = (
    "gcp:compute/instanceTemplate:InstanceTemplate",
    "gcp:compute/regionInstanceTemplate:RegionInstanceTemplate",
)
AUTOSCALERS: Final = ("gcp:compute/autoscaler:Autoscaler", "gcp:compute/regionAutoscaler:RegionAutoscaler")
ZONES: Final = "distributionPolicyZones"
TEMPLATE_PATH: Final = "versions[0].instanceTemplate"


def group_location(group: Resource, resources: ResourceSet, *, decides: str = "the prices") -> str | UnknownInput:
    """Where the hosts of a group are: its zone; of a group of a region that region, or the one zone that it names."""
    if group.type != REGION_GROUP:
        return locate(group, resources, "zone", decides=decides)
    zones = group.items(ZONES)
    if isinstance(zones, Opaque):
        return unknown(zones, ZONES, decides=decides)
    only = group.text(ZONES, 0) if len(zones) == 1 else None
    if isinstance(only, Opaque):
        return unknown(only, ZONES, 0, decides=decides)
    return last_segment(only).lower() if only else locate(group, resources, "region", decides=decides)


def group_size(group: Resource, resources: ResourceSet) -> int | UnknownInput:
    """How many hosts a group has; unknown where an autoscaler decides."""
    size = group.integer("targetSize")
    if isinstance(size, Opaque):
        return unknown(size, "targetSize", decides="how many hosts bill")
    scaled = resources.referrers(group, "target", *AUTOSCALERS)
    if scaled and group.inputs.get("targetSize") is None:
        return UnknownInput(path="targetSize", reason=f"set by the autoscaler {scaled[0].name}, hour by hour")
    return size or 0


def group_template(group: Resource, resources: ResourceSet) -> Resource | UnknownInput:
    """The one template of a group, where it is in the stack."""
    found = resources.references(group, "versions", *TEMPLATES)
    if len(found) == 1:
        return found[0]
    reason = (
        f"{len(found)} templates: what part of the group each has is not priced"
        if found
        else "the template is not in this stack; it decides what a host costs"
    )
    return UnknownInput(path=TEMPLATE_PATH, reason=reason)
