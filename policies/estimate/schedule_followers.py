"""Which disks follow a snapshot schedule: by an attachment, or because they name it where they are declared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from policies.estimate.disk_sizes import DISK_TYPES, inherited_gib
from policies.estimate.groups import GROUP, REGION_GROUP, TEMPLATES, group_location, group_size
from policies.estimate.location import last_segment, locate
from policies.estimate.market import unknown
from policies.estimate.model import UnknownInput
from policies.resources import Opaque, Resource, ResourceSet, Value, cloud_name, has_opaque, texts

ATTACHMENTS: Final = (
    "gcp:compute/diskResourcePolicyAttachment:DiskResourcePolicyAttachment",
    "gcp:compute/regionDiskResourcePolicyAttachment:RegionDiskResourcePolicyAttachment",
)
INSTANCE: Final = "gcp:compute/instance:Instance"
BOOT: Final = ("bootDisk", "initializeParams")
POLICIES: Final = "resourcePolicies"
_STORED: Final = "where its snapshots are stored"


@final
@dataclass(frozen=True, kw_only=True)
class Follower:
    """Disks of one kind that follow a schedule."""

    urn: str
    """Of the resource that declares them."""
    name: str
    """`data`, `the boot disk of head`."""
    gib: int | UnknownInput
    """Of each of them."""
    place: str | UnknownInput
    """The zone or region where they are."""
    count: int | UnknownInput = 1


def followers(policy: Resource, resources: ResourceSet) -> tuple[Follower, ...]:
    """The disks that follow the schedule, each once, those with an attachment first."""
    found = (*_attached(policy, resources), *_named(policy, resources), *_booted(policy, resources))
    every = (*found, *_templated(policy, resources))
    return tuple({(follower.urn, follower.name): follower for follower in every}.values())


def _attached(policy: Resource, resources: ResourceSet) -> Iterator[Follower]:
    for attachment in resources.referrers(policy, "name", *ATTACHMENTS):
        disks = resources.references(attachment, "disk", *DISK_TYPES)
        machines = resources.references(attachment, "disk", INSTANCE)
        yield from (_disk(disk, resources) for disk in disks)
        if not disks:
            yield from (_boot_disk(machine, resources) for machine in machines)
        if not (disks or machines):
            gone = UnknownInput(path="disk", reason="the disk is not in this stack; it decides what its snapshots hold")
            yield Follower(urn=attachment.urn, name=f"the disk of {attachment.name}", gib=gone, place=gone)


def _named(policy: Resource, resources: ResourceSet) -> Iterator[Follower]:
    yield from (_disk(disk, resources) for disk in resources.referrers(policy, POLICIES, *DISK_TYPES))


def _booted(policy: Resource, resources: ResourceSet) -> Iterator[Follower]:
    """Boot disks of instances. One that was attached from elsewhere names its schedule itself."""
    for machine in resources.referrers(policy, "bootDisk", INSTANCE):
        if _names(policy, machine, "bootDisk", machine.value(*BOOT, POLICIES)):
            yield _boot_disk(machine, resources)


def _templated(policy: Resource, resources: ResourceSet) -> Iterator[Follower]:
    """Disks that every host of a group gets of its own."""
    for template in resources.referrers(policy, "disks", *TEMPLATES):
        disks = template.items("disks")
        for index in range(0 if isinstance(disks, Opaque) else len(disks)):
            if _names(policy, template, "disks", template.value("disks", index, POLICIES)):
                yield from _of_groups(template, index, resources)


def _of_groups(template: Resource, index: int, resources: ResourceSet) -> Iterator[Follower]:
    for group in resources.referrers(template, "versions", GROUP, REGION_GROUP):
        yield Follower(
            urn=group.urn,
            name=f"disk {index} of the hosts of {group.name}",
            gib=_gib(template, ("disks", index, "diskSizeGb"), f"disks[{index}].diskSizeGb"),
            place=group_location(group, resources, decides=_STORED),
            count=group_size(group, resources),
        )


def _names(policy: Resource, owner: Resource, prop: str, value: Value) -> bool:
    """Whether the list of policies `value` of the input `prop` has that policy: by name, else by where it came from."""
    named = {last_segment(text) for text in texts(value)}
    if cloud_name(policy) in named:
        return True
    return has_opaque(value) and policy.urn in owner.options.property_dependencies.get(prop, ())


def _disk(disk: Resource, resources: ResourceSet) -> Follower:
    found = disk.integer("size")
    gib: int | UnknownInput
    if isinstance(found, Opaque):
        gib = unknown(found, disk.name, "size", decides="how much its snapshots hold")
    else:
        gib = inherited_gib(disk, resources)[0] if found is None else found
        if isinstance(gib, UnknownInput):
            gib = UnknownInput(path=f"{disk.name}.{gib.path}", reason=gib.reason)
    place = locate(disk, resources, "zone", "region", decides=_STORED)
    return Follower(urn=disk.urn, name=disk.name, gib=gib, place=place)


def _boot_disk(machine: Resource, resources: ResourceSet) -> Follower:
    return Follower(
        urn=machine.urn,
        name=f"the boot disk of {machine.name}",
        gib=_gib(machine, (*BOOT, "size"), f"{machine.name}.{'.'.join(BOOT)}.size"),
        place=locate(machine, resources, "zone", decides=_STORED),
    )


def _gib(owner: Resource, path: tuple[str | int, ...], shown: str) -> int | UnknownInput:
    found = owner.integer(*path)
    if isinstance(found, Opaque):
        return UnknownInput(path=shown, reason=f"{found.value}; it decides how much its snapshots hold")
    return UnknownInput(path=shown, reason="not set: the size of the image decides") if found is None else found
