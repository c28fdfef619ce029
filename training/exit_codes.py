"""The exit codes of the trainer, on which the scripts around a run decide what to do next."""

from __future__ import annotations

import enum
from typing import final


@final
class ExitCode(enum.IntEnum):
    """What a run says to what started it. The first three mean what they mean in every spotrail command."""

    FINE = 0
    """The run is finished."""
    BUG = 1
    """An error in spotrail, or one of the machine (out of memory): the message is kept, and nothing calls it a
    preemption."""
    BAD_INPUT = 2
    """A mistake in the configuration or the data."""
    PREEMPTED = 6
    """The capacity was taken back, and the last finished step is committed: the same command goes on from there."""
    RESUME_REFUSED = 7
    """The checkpoints belong to another model, optimizer or data: going on would not be a resume."""
    DIVERGED = 8
    """So many steps in a row were not finite; the last good checkpoint is kept."""
