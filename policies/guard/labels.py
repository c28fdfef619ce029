"""Labels by which the guard knows what a stack wants of it."""

from __future__ import annotations

from typing import Final

SCHEDULE_LABEL: Final = "throughput-schedule"
"""Of a volume whose throughput goes by the clock; its value is a schedule (policies/audit/schedule.py) as a label."""
