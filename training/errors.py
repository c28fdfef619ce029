"""What can be wrong with a run: what its user can mend, and what the machine failed with; one message, no traceback."""

from __future__ import annotations

import errno
from typing import Final

_MACHINE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""No other name of a place would help: the disk is full or broken."""


class TrainingError(ValueError):
    """A mistake in what the user gave: the message names the place, the value, the rule and the way out."""


class MachineError(RuntimeError):
    """What the machine failed with, whatever the user gave (exit 1)."""


def unwritable(place: str, error: OSError, way_out: str) -> TrainingError | MachineError:
    """The error of a place that cannot be written: the user's mistake, who is told a way out, or the disk's failure."""
    reason = error.strerror or error
    if error.errno in _MACHINE:
        return MachineError(f"{place}: {reason}")
    return TrainingError(f"{place}: {reason}; {way_out}")
