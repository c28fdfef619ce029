"""The environment in which a fill job says what it makes and removes again: written by the program, read by prices
and quotas. A light module, because the Pulumi program imports it."""

from __future__ import annotations

from typing import Final

STAGING_TYPE: Final = "SPOTRAIL_STAGING_TYPE"
STAGING_GIB: Final = "SPOTRAIL_STAGING_GIB"
STAGING_IOPS: Final = "SPOTRAIL_STAGING_IOPS"
STAGING_THROUGHPUT: Final = "SPOTRAIL_STAGING_THROUGHPUT"
MACHINE: Final = "SPOTRAIL_HYDRATOR_MACHINE"
BOOT_TYPE: Final = "SPOTRAIL_HYDRATOR_BOOT_TYPE"
BOOT_GIB: Final = "SPOTRAIL_HYDRATOR_BOOT_GIB"
ZONE: Final = "SPOTRAIL_ZONE"
