"""The exit codes of the server, by which what started it knows how it ended."""

from __future__ import annotations

import enum
from typing import final


@final
class ExitCode(enum.IntEnum):
    """What a server says at its end. The first three mean what they mean in every spotrail command."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> ExitCode:
        code = int.__new__(cls, value)
        code._value_ = value
        code.meaning = meaning
        return code

    FINE = 0, "drained: every answer that had begun was ended"
    BUG = 1, "a bug in spotrail, or the machine failed"
    BAD_INPUT = 2, "a mistake in the command, or weights that are refused"
    CLOUD_FAILED = 5, "the bucket or its credentials failed"
    CUT_OFF = 9, "told to stop, and answers were cut off: the grace was over, or a second signal came"
