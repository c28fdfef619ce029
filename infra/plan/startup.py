"""Startup scripts and job scripts, rendered from `infra/templates`.

Every value that reaches a shell goes through one filter, `sh`; an undefined one is an error.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Final, final

import jinja2

from infra.plan import hydration, manifest
from infra.plan.capacity import Role
from infra.plan.names import filesystem_label
from infra.plan.slices import ray_resources

TEMPLATES: Final = Path(__file__).resolve().parents[1] / "templates"
STAGING_DEVICE: Final = "staging"
ACCESS_SECONDS: Final = 600
"""A role takes up to seven minutes to reach every server (https://cloud.google.com/iam/docs/access-change-propagation)."""
PIP_WHEEL: Final = "pip-26.3-py3-none-any.whl"
PIP_SHA256: Final = "f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13"
"""Of the wheel, as PyPI gives it (2026-11-29)."""


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
    model_sha256: str = ""
    """Digest of the model's manifest, which the mounted volume must hold; needed with `model_device`."""

    def __post_init__(self) -> None:
        if bool(self.model_device) is not bool(self.model_sha256):
            raise ValueError(f"{self.slice_name}: a model volume and the digest of its model go together")


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
    device: str = STAGING_DEVICE
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
    device: str = STAGING_DEVICE
    """As in `HydrateStartup`."""
    poll_seconds: int = 10
    """Pause between two looks at a resource."""
    access_seconds: int = ACCESS_SECONDS
    """How long a role that was just granted is waited for."""
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
    """For the snapshot to be READY."""
    poll_seconds: int = 10
    """As in `FillJob`."""
    access_seconds: int = ACCESS_SECONDS
    """As in `FillJob`."""


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
    return _render("head.sh.j2", values, **_pip())


def render_worker(values: WorkerStartup) -> str:
    """The startup script of a TPU host."""
    first, other = (
        json.dumps(ray_resources(values.slice_name, values.accelerator_type, values.chips_per_host, host))
        for host in (0, 1)
    )
    return _render(
        "worker.sh.j2",
        values,
        serves=values.role is Role.SERVE,
        resources_first=first,
        resources_other=other,
        filesystem_label=filesystem_label(values.model_sha256),
        **_pip(),
    )


def render_hydrate(values: HydrateStartup) -> str:
    """The startup script of the hydrator."""
    program = Path(manifest.__file__).read_text(encoding="utf-8")
    label = filesystem_label(values.manifest_sha256)
    return _render("hydrate.sh.j2", values, verify_program=program, filesystem_label=label)


def render_fill(values: FillJob) -> str:
    """The script of the fill job: `bash -c` of the gcloud image."""
    return _render(
        "fill.sh.j2",
        values,
        labels_text=",".join(f"{key}={value}" for key, value in values.labels.items()),
        tags_text=",".join(values.tags),
        image_flags=image_flags(values.boot_image),
        verdict_ok=hydration.VERDICT_OK,
        **_decisions(),
    )


def render_clean(values: CleanJob) -> str:
    """The script of the clean job."""
    return _render("clean.sh.j2", values, **_decisions())


def image_flags(boot_image: str) -> tuple[str, str]:
    """What gcloud wants instead of `projects/<project>/global/images/[family/]<name>`."""
    parts = boot_image.split("/")
    kind = "--image-family" if parts[-2:-1] == ["family"] else "--image"
    return f"--image-project={parts[1] if len(parts) > 1 else ''}", f"{kind}={parts[-1]}"


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
    """`value` as one word of a shell, whatever is in it.

    Raises TypeError for what is neither text nor a whole number, and jinja2.UndefinedError for what is undefined.
    """
    if isinstance(value, jinja2.Undefined):
        return str(value)  # a strict one raises, and names itself
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise TypeError(f"a shell word is text or a whole number, not {type(value).__name__}")
    text = str(value)
    if "\0" in text:
        raise ValueError("a shell word cannot hold a NUL character")
    return shlex.quote(text)


def _pip() -> Mapping[str, str]:
    return {"pip_wheel": PIP_WHEEL, "pip_sha256": PIP_SHA256}


def _decisions() -> Mapping[str, object]:
    return {
        "tables": hydration.TABLES,
        "missing": hydration.MISSING,
        "forbidden": hydration.FORBIDDEN,
        "refused": hydration.REFUSED,
        "transient": hydration.TRANSIENT,
    }


def _render(
    template: str, values: HeadStartup | WorkerStartup | HydrateStartup | FillJob | CleanJob, **more: object
) -> str:
    given = {entry.name: getattr(values, entry.name) for entry in fields(values)}
    return environment().get_template(template).render(given, **more)
