"""The exit codes of the trainer, on which the scripts around a run decide what to do next."""

from __future__ import annotations

import enum
from typing import final


@final
class ExitCode(enum.IntEnum):
    """What a run says to what started it. The first three mean what they mean in every spotrail command."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> ExitCode:
        code = int.__new__(cls, value)
        code._value_ = value
        code.meaning = meaning
        return code

    FINE = 0, "finished"
    BUG = 1, "a bug in spotrail, or the machine failed (the message is kept, and nothing calls it a preemption)"
    BAD_INPUT = 2, "a mistake in the configuration or the data"
    CLOUD_FAILED = 5, "the bucket or its credentials failed"
    PREEMPTED = 6, "preempted, and the last finished step is committed: the same command goes on"
    RESUME_REFUSED = 7, "the checkpoints belong to another model, optimizer or data"
    DIVERGED = (
        8,
        "diverged: `skips_in_a_row` steps with a gradient or loss that was not finite; the last checkpoint stands",
    )
    STOPPED = 130, "stopped by Ctrl-C; the last checkpoint stands"
