"""Names in the cloud and labels: what is legal, what is built from what, and how a bad label is made good."""

from __future__ import annotations

from typing import Final

NAME_LIMIT: Final = 63
DIGEST_SHOWN: Final = 8


def cloud_name(env: str, *parts: str) -> str:
    """The name of something in the cloud: the stack first, so that two stacks can share a project."""
    return "-".join((env, *parts))


def volume_name(model: str, digest: str, zone: str | None = None) -> str:
    """Logical name of a model volume: model and first 8 digits of its digest; the zone where there are several."""
    return "-".join((model, digest[:DIGEST_SHOWN], *((zone,) if zone else ())))


def staging_disk_name(env: str, model: str, digest: str) -> str:
    """Name in the cloud of the disk that a model version is staged on."""
    return cloud_name(env, volume_name(model, digest), "staging")


def hydrator_name(env: str, model: str, digest: str) -> str:
    """Name in the cloud of the VM that fills the staging disk."""
    return cloud_name(env, volume_name(model, digest), "hydrator")


def bucket_name(project: str, env: str, bucket: str) -> str:
    """Name of a bucket: bucket names are one namespace for the whole world, so the project goes first."""
    return f"{project}-{env}-{bucket}"
