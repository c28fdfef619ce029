from __future__ import annotations

import pytest

from infra.components.boot_disk import BootDisk


@pytest.mark.parametrize(
    ("disk_type", "gib", "iops", "throughput"),
    [
        # What the capacity of hyperdisk-balanced includes: 3,000 IOPS and 140 MiB/s, whatever the size.
        ("hyperdisk-balanced", 100, 3000, 140),
        ("hyperdisk-balanced", 2000, 3000, 140),
        # 500 IOPS a GiB are the most for a small one.
        ("hyperdisk-balanced", 4, 2000, 140),
        # Nothing to provision.
        ("pd-balanced", 50, None, None),
        ("pd-ssd", 50, None, None),
    ],
)
def test_a_boot_disk_gets_what_is_included(disk_type: str, gib: int, iops: int | None, throughput: int | None) -> None:
    disk = BootDisk(image="projects/p/global/images/i", type=disk_type, gib=gib)
    assert (disk.iops, disk.throughput) == (iops, throughput)
