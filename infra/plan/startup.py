"""Startup scripts and job scripts, rendered from `infra/templates`.

Every value that reaches a shell goes through one filter, `sh`; an undefined one is an error.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Final, final

import jinja2

from infra.plan.capacity import Role

TEMPLATES: Final = Path(__file__).resolve().parents[1] / "templates"


@final
@dataclass(frozen=True, kw_only=True)
class HeadStartup:
    """Values of `head.sh.j2`: the startup script of the Ray head."""

    ray_version: str
    """Exact version: `2.60.0`."""
    python_index: str
    """`python_index()`; empty for PyPI itself."""


@final
@dataclass(frozen=True, kw_only=True)
class WorkerStartup:
    """Values of `worker.sh.j2`: the startup script of every TPU host."""

    role: Role
    """TRAIN joins Ray, SERVE runs the serving image."""
    slice_name: str
    """`SlicePlan.cloud_name`: the resource that all hosts of the slice share in Ray."""
    accelerator_type: str
    """`v6e-16`, for the head resource of host 0."""
    chips_per_host: int
    """`Shape.chips_per_host`: exactly what Ray is told."""
    hosts: int
    """`Shape.hosts`; above 1 a host has to find out which one it is."""
    head_address: str
    """Name or address of the Ray head, without a port. Not used by SERVE."""
    ray_version: str
    """As on the head; used where `image` is empty."""
    python_index: str
    """As for the head."""
    apt_index: str
    """`apt_index()`; empty for the mirrors of the boot image."""
    image: str
    """Full reference of the container, `image_reference()`; empty: Ray on the host."""
    port: int = 8000
    """Port of the serving API."""
    model_device: str = ""
    """Device name of the attached model volume; empty where there is none."""
    model_label: str = ""
    """Name of the model, for the serving API."""


@final
@dataclass(frozen=True, kw_only=True)
class HydrateStartup:
    """Values of `hydrate.sh.j2`: the startup script of the hydrator."""

    bucket: str
    """Bucket of the models, without `gs://`."""
    path: str
    """Folder of the model in it."""
    manifest_sha256: str
    """Digest that its MANIFEST.json must have."""
    device: str = "staging"
    """Device name under which the staging disk is attached."""


@final
@dataclass(frozen=True, kw_only=True)
class FillJob:
    """Values of `fill.sh.j2`: the script of the job that fills a staging disk."""

    project: str
    zone: str
    """Zone of the staging disk and of the hydrator."""
    staging_disk: str
    """`names.staging_disk_name()`."""
    hydrator: str
    """`names.hydrator_name()`."""
    size_gib: int
    """GiB of the staging disk: the model volume's."""
    staging_type: str
    """`hyperdisk-balanced`."""
    staging_iops: int
    staging_throughput: int
    """MiB/s."""
    machine: str
    """Machine type of the hydrator."""
    boot_disk_type: str
    boot_disk_gib: int
    boot_image: str
    """`projects/<project>/global/images/[family/]<name>`."""
    subnetwork: str
    """Self link or `projects/.../subnetworks/...` of the subnetwork that the hydrator lives in."""
    service_account: str
    """E-mail of the hydrator's account: it reads the models bucket and nothing else."""
    labels: Mapping[str, str]
    """Labels of the disk and the VM; both bill."""
    timeout_seconds: int
    """For the whole fill; the job's own timeout must be a little longer, so that this one cleans up first."""
    hydrate_script: str
    """`render_hydrate(...)`."""
    poll_seconds: int = 10
    """Pause between two looks at a resource."""
    tags: tuple[str, ...] = field(default=("spotrail-hydrator",))
    """Network tags of the hydrator."""


@final
@dataclass(frozen=True, kw_only=True)
class CleanJob:
    """Values of `clean.sh.j2`: the script of the job that removes the staging disk after the snapshot."""

    project: str
    zone: str
    staging_disk: str
    snapshot: str
    """The disk goes only when this snapshot is READY."""
    timeout_seconds: int = 1800
    poll_seconds: int = 10


def python_index(region: str, project: str, mirror: str) -> str:
    """URL of the package index behind a Python mirror of the registry; empty where there is no mirror."""
    return f"https://{region}-python.pkg.dev/{project}/{mirror}/simple/" if mirror else ""


def apt_index(region: str, project: str, mirror: str) -> str:
    """URL behind an apt mirror of the registry; empty where there is no mirror."""
    return f"https://{region}-apt.pkg.dev/remote/{project}/{mirror}" if mirror else ""


def image_reference(image: str, *, region: str, project: str, registry: str) -> str:
    """`image` in full: what has no `/` lives in the stack's own registry; empty stays empty."""
    if not image or "/" in image:
        return image
    return f"{region}-docker.pkg.dev/{project}/{registry}/{image}"


def render_head(values: HeadStartup) -> str:
    """The startup script of the Ray head."""
    return _render("head.sh.j2", values)


def render_worker(values: WorkerStartup) -> str:
    """The startup script of a TPU host."""
    return _render("worker.sh.j2", values)


def render_hydrate(values: HydrateStartup) -> str:
    """The startup script of the hydrator."""
    return _render("hydrate.sh.j2", values)


def render_fill(values: FillJob) -> str:
    """The script of the fill job: `bash -c` of the gcloud image."""
    return _render("fill.sh.j2", values)


def render_clean(values: CleanJob) -> str:
    """The script of the clean job."""
    return _render("clean.sh.j2", values)


@cache
def environment() -> jinja2.Environment:
    """The one template environment: undefined values raise, the only filter that quotes is `sh`."""
    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # these are shell scripts: HTML escapes would damage them, and `sh` quotes
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["sh"] = shell_quoted
    return found


def shell_quoted(value: object) -> str:
    """`value` as one word of a shell, whatever is in it. Raises TypeError for what is neither text nor a number."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise TypeError(f"a shell word is text or a whole number, not {type(value).__name__}")
    text = str(value)
    if "\0" in text:
        raise ValueError("a shell word cannot hold a NUL character")
    return shlex.quote(text)


def _render(template: str, values: HeadStartup | WorkerStartup | HydrateStartup | FillJob | CleanJob) -> str:
    given = {entry.name: getattr(values, entry.name) for entry in fields(values)}
    return environment().get_template(template).render(given)
