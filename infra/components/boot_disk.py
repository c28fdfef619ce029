"""The boot disk of a machine: sized on purpose, and never faster than what its capacity includes.

Where nothing is said, Google provisions a Hyperdisk Balanced disk above its free baseline, by its size, and bills the
difference on every host of a fleet.

Its labels are those of the machine when it was made: Google's provider would make the machine anew to change them, and
what runs on it is worth more than the owner's name on a disk. So whoever has one ignores their changes.
Source: https://cloud.google.com/compute/docs/disks/hyperdisks and policies/hardware/disks.csv
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import pulumi_gcp as gcp

from policies.hardware.disks import Performance, disk_type

LABELS_OF_INSTANCE: Final = "bootDisk.initializeParams.labels"
"""Where an instance has the labels of its boot disk."""
LABELS_OF_TEMPLATE: Final = "disks[0].labels"
"""Where a template has them."""


@final
@dataclass(frozen=True, kw_only=True)
class BootDisk:
    """What a machine boots from."""

    image: str
    """`projects/<project>/global/images/[family/]<name>`."""
    type: str
    """Disk type that the machine's series takes: `pd-balanced`, `hyperdisk-balanced`."""
    gib: int
    """Size in GiB; the accelerator images alone would make it 10."""

    @property
    def iops(self) -> int | None:
        """IOPS to provision: the included ones; None where the type has none to provision or includes none."""
        return _included(disk_type(self.type).iops, self.gib)

    @property
    def throughput(self) -> int | None:
        """MiB/s to provision, likewise."""
        return _included(disk_type(self.type).throughput, self.gib)

    def of_instance(self, labels: dict[str, str]) -> gcp.compute.InstanceBootDiskArgs:
        """As the boot disk of a `compute.Instance`; it goes with the instance."""
        return gcp.compute.InstanceBootDiskArgs(
            auto_delete=True,
            initialize_params=gcp.compute.InstanceBootDiskInitializeParamsArgs(
                image=self.image,
                type=self.type,
                size=self.gib,
                provisioned_iops=self.iops,
                provisioned_throughput=self.throughput,
                labels=labels,
            ),
        )

    def of_template(self, labels: dict[str, str]) -> gcp.compute.InstanceTemplateDiskArgs:
        """As the boot disk of an `InstanceTemplate`; it goes with each host."""
        return gcp.compute.InstanceTemplateDiskArgs(
            boot=True,
            auto_delete=True,
            source_image=self.image,
            disk_type=self.type,
            disk_size_gb=self.gib,
            provisioned_iops=self.iops,
            provisioned_throughput=self.throughput,
            labels=labels,
        )


def _included(dimension: Performance | None, gib: int) -> int | None:
    if dimension is None or not dimension.included:
        return None
    least, most = dimension.range_at(gib)
    return min(max(dimension.included, least), most)
