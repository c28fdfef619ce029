"""What Google refuses of a volume's throughput. Written down again here, so that the product's own tables are tested.

Hyperdisk ML, as documented in October 2026: at least the greater of 400 MiB/s and 0.12 MiB/s a GiB, 20 MiB/s a reader
beyond 20 of them; at most 1,600 MiB/s a GiB and 1,200,000; one change of the throughput in six hours.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from typing import Any, Final

from tests.google_cloud.errors import Refusal
from tests.google_cloud.shapes import last, relative

BETWEEN: Final = datetime.timedelta(hours=6)


def check_throughput(
    disk: Mapping[str, Any], mibps: int, now: datetime.datetime, changed: datetime.datetime | None
) -> None:
    """Refuse a throughput that the volume cannot have, or not yet. Raises Refusal (400)."""
    if not last(disk["type"]).startswith("hyperdisk-"):
        raise Refusal(400, "badRequest", f"Provisioned throughput cannot be set on disks of type {last(disk['type'])}.")
    floor, most = _range(disk) if last(disk["type"]) == "hyperdisk-ml" else (1, 2400)
    if not floor <= mibps <= most:
        message = (
            f"Invalid value for field 'resource.provisionedThroughput': '{mibps}'. Provisioned throughput must be "
        )
        raise Refusal(400, "invalid", f"{message}between {floor} and {most} MiB/s for this disk.")
    if changed is not None and now - changed < BETWEEN:
        message = (
            f"The resource '{relative(disk['selfLink'])}' was modified too recently: provisioned throughput can be "
        )
        raise Refusal(400, "resourceOperationRateExceeded", f"{message}changed once in 6 hours.")


def _range(disk: Mapping[str, Any]) -> tuple[int, int]:
    gib, readers = int(disk["sizeGb"]), len(disk.get("users", ()))
    floor = max(400, math.ceil(gib * 12 / 100), 20 * readers if readers > 20 else 0)
    return floor, min(1600 * gib, 1_200_000)
