"""What is done about a read that does not come back, or fails: wait, begin anew elsewhere, or give up. Pure."""

from __future__ import annotations

import enum
import errno
from dataclasses import dataclass
from typing import Final, final


@final
class Verdict(enum.Enum):
    """What is done about a read."""

    WAIT = "wait"
    """Nothing yet."""
    RETRY = "retry"
    """Another worker, with a descriptor of its own, goes on from the last byte that came."""
    GIVE_UP = "give up"
    """The load fails."""


@final
@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a read may stand still, and how often it is tried. Raises ValueError for what would try nothing."""

    seconds: float = 60.0
    """Without a byte; the read of one block over a slow network is far below."""
    attempts: int = 3
    """Of one stretch from one byte on."""

    def __post_init__(self) -> None:
        if not self.seconds > 0 or self.attempts < 1:
            raise ValueError(f"{self}: a read takes some time, and one attempt at least")


PASSING: Final = frozenset({errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.ECONNRESET, errno.ENOTCONN})
"""What a mount says when its network failed: the next attempt may well be answered."""


def judge_silence(patience: Patience, silent: float, attempt: int) -> Verdict:
    """About the `attempt`-th try (from 1) at a read from which nothing has come for `silent` seconds."""
    if silent < patience.seconds:
        return Verdict.WAIT
    return Verdict.RETRY if attempt < patience.attempts else Verdict.GIVE_UP


def judge_error(patience: Patience, error: OSError, attempt: int) -> Verdict:
    """About the `attempt`-th try (from 1) at a read that failed."""
    return Verdict.RETRY if error.errno in PASSING and attempt < patience.attempts else Verdict.GIVE_UP
