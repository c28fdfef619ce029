"""What holds data that a new one of its kind does not have, and the words for losing it."""

from __future__ import annotations

from typing import Final

from policies.resources import Resource
from policies.rules.attachments import DISKS
from policies.rules.buckets import BUCKET

STATEFUL: Final = (
    *DISKS,
    BUCKET,
    "gcp:artifactregistry/repository:Repository",
    "gcp:compute/image:Image",
    "gcp:compute/machineImage:MachineImage",
    "gcp:compute/snapshot:Snapshot",
    "gcp:compute/storagePool:StoragePool",
    "gcp:filestore/backup:Backup",
    "gcp:filestore/instance:Instance",
    "gcp:lustre/instance:Instance",
    "gcp:parallelstore/instance:Instance",
    "gcp:sql/databaseInstance:DatabaseInstance",
)
"""Not among them: machines, slices and templates, which are made anew as a matter of course, and addresses, of which
the next one costs a line of configuration."""


def staying(resource: Resource) -> str:
    """Why the cloud keeps it when Pulumi lets go of it; empty where it is deleted, or where Pulumi refuses."""
    if resource.options.protect:
        return ""
    if resource.options.retain_on_delete:
        return "retainOnDelete"
    return "deletionPolicy ABANDON" if resource.value("deletionPolicy") == "ABANDON" else ""


def refusal(resource: Resource) -> str:
    """What refuses to delete it; empty where nothing does."""
    if resource.options.protect:
        return "it is protected, so Pulumi refuses"
    if resource.value("deletionPolicy") == "PREVENT":
        return "deletionPolicy is PREVENT, so the provider refuses"
    return "deletionProtection is set, so Google refuses" if resource.value("deletionProtection") is True else ""


def bucket_refusal(resource: Resource) -> str:
    """When Google refuses to delete a bucket that is not emptied first; empty for what is none, or is."""
    if resource.type != BUCKET or resource.value("forceDestroy") is True:
        return ""
    versions = " or noncurrent versions" if resource.value("versioning", "enabled") is True else ""
    return f"delete will fail while objects{versions} exist; set forceDestroy and apply first"
