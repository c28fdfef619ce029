"""Settings: what a stack file says, typed and frozen. Every default of the stack lives here and nowhere else.

The names of the fields are the keys of the file: `spotrail:head.machine` is `settings.head.machine`.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, final

from infra.plan.capacity import Backend, Capacity
from infra.settings.oversight import AlertSettings, BudgetSettings, CiSettings, GuardSettings
from policies.hardware.zones import region_of

MANAGED_BY: Final = "spotrail"
TPU_BOOT_IMAGE: Final = (
    "projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e"
)
DEBIAN_IMAGE: Final = "projects/debian-cloud/global/images/family/debian-12"


@dataclass(frozen=True, kw_only=True)
class HostSettings(abc.ABC):
    """What slices and serving hosts have in common: the hosts, and the terms on which they run."""

    shape: str
    """Accelerator type: `v6e-8` is one host with 8 chips, from `v6e-16` up 4 chips a host."""
    backend: Backend = Backend.GCE
    """The API that makes them."""
    capacity: Capacity = Capacity.SPOT
    """Spot unless asked otherwise."""
    reservation: str = ""
    """Name of the reservation; needed where `capacity` is `reserved` on `gce`, refused elsewhere."""
    boot_disk_type: str = "hyperdisk-balanced"
    """TPU hosts take Hyperdisk Balanced only. Not used by `tpu-vm`, whose boot disk Google fixes."""
    boot_disk_gib: int = 100
    """GiB of each host's boot disk; the accelerator image alone would get 10. `tpu-vm` has 100, fixed."""
    boot_image: str = TPU_BOOT_IMAGE
    """Boot image of `gce` hosts. It has the TPU driver, and no Docker."""
    runtime: str = "v2-alpha-tpuv6e"
    """Runtime version of `tpu-vm` hosts. A general one boots and leaves the chips without a driver."""
    max_run_hours: int = 72
    """Hours after which Compute Engine deletes the hosts, 1 to 2,880. `tpu-vm` has no such bound: the guard ends it."""


@final
@dataclass(frozen=True, kw_only=True)
class SliceSettings(HostSettings):
    """`spotrail:slices.<name>`: a TPU slice for training, or several alike."""

    name: str
    """Its key in the file; with `count` above 1 the slices are `<name>-a`, `<name>-b` and so on."""
    zone: str
    """Zone of its hosts. Default: the zone of the stack."""
    count: int = 1
    """How many such slices, 1 to 26."""
    mount_model: bool = False
    """Whether the hosts mount the model volume of their zone, read-only."""
    image: str = "train:latest"
    """Container that Ray runs in: `name:tag` in the stack's registry, or a full reference. Empty: Ray on the host,
    whose Python must then be the head's."""


@final
@dataclass(frozen=True, kw_only=True)
class ServingSettings(HostSettings):
    """`spotrail:serving`: hosts that run the serving image and read one shared model volume a zone."""

    zones: tuple[str, ...]
    """Zones that serve; each gets a model volume of its own. Default: the zone of the stack."""
    shape: str = "v6e-8"
    """Accelerator type of each host; one host, so at most `v6e-8`."""
    hosts: int = 0
    """Hosts in each zone; 0 for none."""
    max_run_hours: int = 720
    """Hours after which Compute Engine deletes a host, 1 to 2,880."""
    image: str = "serve:latest"
    """Serving container: `name:tag` in the stack's registry, or a full reference."""
    port: int = 8000
    """Port of the serving API on the internal address."""


@final
@dataclass(frozen=True, kw_only=True)
class HeadSettings:
    """`spotrail:head`: the Ray head, a machine that is not spot."""

    zone: str
    """Default: the zone of the stack."""
    machine: str = "e2-standard-4"
    """Machine type; its series decides which boot disks fit."""
    boot_disk_type: str = "pd-balanced"
    """`pd-*` for E2 and N1, Hyperdisk for C4 and N4."""
    boot_disk_gib: int = 50
    """GiB."""
    boot_image: str = DEBIAN_IMAGE
    """Debian 12, for its Python 3.11: Ray wants the same minor version in every worker."""
    ray_version: str = "2.60.0"
    """Ray on the head and on hosts without an image; images must bring the same."""


@final
@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """`spotrail:model`: the model that the volume holds. A new version is a new digest, and so a new volume."""

    name: str
    """First part of the volume's name."""
    manifest_sha256: str
    """SHA-256 of the model's MANIFEST.json, 64 hex digits. It names the volume and is verified before any reader."""
    path: str
    """Folder of the model in the `models` bucket: `llama/v1`."""
    size_gib: int
    """GiB of the volume, 4 to 65,536: the model and some room for the file system."""
    throughput: int
    """Provisioned MiB/s of each volume, billed whether read or not; never left to Google's default of 24 a GiB."""
    schedule: str = ""
    """When the volumes have it: `mon-fri 08:00-18:00 Europe/Berlin 1200`; at other hours the guard sets the least that
    Google takes. Empty: always. At most four changes a day, 6 hours apart."""


@final
@dataclass(frozen=True, kw_only=True)
class HydrationSettings:
    """`spotrail:hydration`: how a model gets from its bucket onto the volume. All of it is gone afterwards."""

    machine: str = "n4-standard-8"
    """Machine type of the hydrator, which lives while it copies."""
    boot_disk_type: str = "hyperdisk-balanced"
    """Boot disk of the hydrator."""
    boot_disk_gib: int = 20
    """GiB."""
    boot_image: str = DEBIAN_IMAGE
    """An image with the gcloud CLI."""
    staging_iops: int = 3000
    """IOPS of the staging disk (hyperdisk-balanced, of the model's size); 3,000 are included in its capacity."""
    staging_throughput: int = 600
    """MiB/s of the staging disk; 140 are included."""
    timeout_minutes: int = 120
    """Minutes for the whole fill; after them it fails, and so does the `up`. The next `up` starts over."""
    image: str = "gcr.io/google.com/cloudsdktool/google-cloud-cli:562.0.0-slim"
    """Image of the two jobs: Google's public gcloud CLI, so that no image of ours has to exist first. They need bash,
    grep and gcloud; an exact version, since the scripts read what gcloud says when it fails."""


@final
@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """`spotrail:network`: one private subnetwork a region; no machine ever has an external address."""

    cidr: str = "10.64.0.0/20"
    """Private addresses of the stack; each region gets a quarter (`infra.plan.addresses.subnetworks`)."""
    nat: bool = False
    """A NAT gateway. Without one, packages come through the registry's mirrors over Private Google Access."""


@final
@dataclass(frozen=True, kw_only=True)
class BucketSettings:
    """`spotrail:buckets`: what the lifecycle rules of the buckets remove."""

    temporary_prefix: str = "tmp/"
    """Objects below it are temporary."""
    temporary_days: int = 7
    """Days that they stay."""
    abandoned_upload_days: int = 2
    """Days after which an incomplete multipart upload is aborted."""


@final
@dataclass(frozen=True, kw_only=True)
class RegistrySettings:
    """`spotrail:registry`: where images and packages come from."""

    name: str = "images"
    """Docker repository of the stack."""
    keep_versions: int = 10
    """Versions of each image that the clean-up always keeps."""
    untagged_days: int = 14
    """Days that an untagged image stays."""
    python_mirror: str = "pypi"
    """Remote repository in front of PyPI; empty: machines ask PyPI itself, which needs `network.nat`."""
    apt_mirror: str = "ubuntu"
    """Remote repository in front of Ubuntu 22.04 (`ubuntu/dists/jammy`); empty: as for Python."""


@final
@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything a stack file says."""

    env: str
    """Name of the stack: `dev`. Label `env`, and first part of every name in the cloud."""
    project: str
    """`gcp:project`."""
    owner: str
    """Label `owner` of everything that bills."""
    ttl: str
    """Label `ttl` of everything that bills: `12h`, `7d`. The guard acts on it."""
    zone: str
    """Default zone of everything; its region is that of the buckets."""
    model: ModelSettings
    budget: BudgetSettings
    head: HeadSettings
    serving: ServingSettings
    slices: tuple[SliceSettings, ...] = ()
    """In the order of their names."""
    extra_zones: tuple[str, ...] = ()
    """Zones with v6e that are newer than the table."""
    hydration: HydrationSettings = HydrationSettings()
    network: NetworkSettings = NetworkSettings()
    buckets: BucketSettings = BucketSettings()
    registry: RegistrySettings = RegistrySettings()
    alerts: AlertSettings = field(default_factory=AlertSettings)
    guard: GuardSettings = field(default_factory=GuardSettings)
    ci: CiSettings | None = None
    """None: no CI may touch the stack."""
    has_slack_token: bool = False
    """Whether the secret `spotrail:slack_token` is set. The program reads it by `Config.require_secret`, so that it
    is never plain text here."""
    more_labels: Mapping[str, str] = field(default_factory=dict)
    """More labels for everything that bills."""

    @property
    def region(self) -> str:
        """Region of `zone`: of the buckets, the registry and the jobs."""
        return region_of(self.zone)

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of everything that bills."""
        fixed = {"owner": self.owner, "env": self.env, "ttl": self.ttl, "managed-by": MANAGED_BY}
        return {**self.more_labels, **fixed}

    @property
    def regions(self) -> tuple[str, ...]:
        """Every region with a machine in it: the stack's own first, then in the order of the file."""
        zones = (*self.serving.zones, self.head.zone, *(a_slice.zone for a_slice in self.slices))
        return tuple(dict.fromkeys((self.region, *(region_of(zone) for zone in zones))))

    @property
    def model_zones(self) -> tuple[str, ...]:
        """Zones that need a model volume: those that serve, and those of slices that mount the model. The first is
        the stack's own where it is among them; where nobody reads, it is the stack's zone."""
        wanted = dict.fromkeys(self.serving.zones if self.serving.hosts else ())
        wanted |= dict.fromkeys(a_slice.zone for a_slice in self.slices if a_slice.mount_model)
        return tuple(sorted(wanted, key=lambda zone: zone != self.zone)) or (self.zone,)
