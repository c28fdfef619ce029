"""What all forms of a slice share: its arguments, and the terms on which Compute Engine runs a host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypedDict, final

import pulumi

from infra.components.boot_disk import BootDisk
from infra.components.site import Site
from infra.plan.capacity import Capacity
from infra.plan.slices import SlicePlan

GVNIC: Final = "GVNIC"
"""The network card that TPU hosts need for their bandwidth."""
RESERVATION_KEY: Final = "compute.googleapis.com/reservation-name"


@final
@dataclass(frozen=True, kw_only=True)
class ModelMount:
    """The model volume of a zone, as a host attaches it. There is no mode to choose: readers read."""

    disk_id: pulumi.Input[str]
    """`projects/<project>/zones/<zone>/disks/<name>`."""
    disk_name: pulumi.Input[str]
    """Name of the disk, which instance templates take instead of an id."""
    device_name: str
    """Device name on the host: the name of the disk, since the metrics of a disk carry the device name only."""


@final
@dataclass(frozen=True, kw_only=True)
class TpuSliceArgs:
    """A decided slice, and what the decision does not cover."""

    site: Site
    plan: SlicePlan
    boot: BootDisk
    """Of each host on Compute Engine; nodes of the Cloud TPU API have 100 GiB, fixed."""
    runtime: str
    """Runtime version of a node."""
    network: pulumi.Input[str]
    """Id."""
    subnetwork: pulumi.Input[str]
    """Id, in the region of the slice."""
    service_account: pulumi.Input[str]
    """E-mail."""
    startup_script: str
    model: ModelMount | None = None
    """The volume to attach, read-only; in the zone of the slice."""

    @property
    def labels(self) -> dict[str, str]:
        """Labels of everything of the slice that bills."""
        return self.site.labels_with(role=self.plan.role.value, slice=self.plan.name)

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of every host."""
        return {"startup-script": self.startup_script, "enable-oslogin": "TRUE"}


class Terms(TypedDict):
    """The part of `scheduling` that an instance and a template have in common."""

    provisioning_model: str
    preemptible: bool
    automatic_restart: bool
    on_host_maintenance: str
    instance_termination_action: str


def terms(plan: SlicePlan) -> Terms:
    """On what terms Compute Engine runs a host.

    Spot forbids a restart, and the provider wants `preemptible` beside it. A TPU host cannot migrate. A host that is
    taken away or has run its time is deleted and not stopped: a stopped spot TPU cannot be started again, and its disk
    would bill on.
    Source: https://cloud.google.com/compute/docs/instances/spot and the provider's notes on `scheduling`
    """
    spot = plan.capacity is Capacity.SPOT
    return Terms(
        provisioning_model=plan.provisioning_model,
        preemptible=spot,
        automatic_restart=not spot,
        on_host_maintenance="TERMINATE",
        instance_termination_action="DELETE",
    )
