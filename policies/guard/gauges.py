"""What the guard measures: metrics of its own, so that an alert can fire on what has no series by itself.

A volume that no host has attached reports nothing to Cloud Monitoring, and neither does a guard that has stopped.
Every gauge is on the monitored resource `global` with the label `stack`, one series a guard, one point a run.
"""

from __future__ import annotations

import enum
from typing import Final, final

PREFIX: Final = "custom.googleapis.com/spotrail/"
STACK_LABEL: Final = "stack"
"""Which guard wrote: two stacks of one project have a guard each."""
RESOURCE: Final = "global"


@final
class Gauge(enum.Enum):
    """A metric of the guard, by the last part of its type."""

    IDLE_MIBPS = "idle_mibps"
    """Provisioned MiB/s that nobody reads."""
    IDLE_DOLLARS = "idle_dollars_per_month"
    """What everything idle costs a month, in the currency of the price book."""
    UNATTACHED_VOLUMES = "unattached_volumes"
    """Volumes that are attached to nothing for longer than the grace."""
    STALE_HEARTBEATS = "stale_heartbeats"
    """Training runs whose slice is READY and whose heartbeat is old."""
    EXPIRED_SLICES = "expired_slices"
    """Slices past the end that their `ttl` sets, and still there."""
    UNSEEN_PARTS = "unseen_parts"
    """Parts of the project that the guard could not read."""
    LAST_RUN = "last_run"
    """When the guard last did its work, in seconds of the epoch."""
    TOLD = "told"
    """A number made of what was told last, by which the next run knows that it need not say it again."""

    @property
    def type(self) -> str:
        """Type of the metric in Cloud Monitoring."""
        return PREFIX + self.value
