"""The names in a folder of checkpoints: `{step:08d}-{attempt}/`, and what lies in each."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from training.checkpoint.errors import CheckpointError

CHECKPOINTS: Final = "checkpoints"
"""What their folder in that of a run is called."""
MANIFEST: Final = "MANIFEST.json"
"""Written last: a checkpoint is complete when it is there."""
OWNER: Final = "OWNER.json"
"""Written first: who may delete what follows."""
QUARANTINED: Final = "QUARANTINED.json"
"""Written by who found damage: the checkpoint is stepped over from then on, and never deleted by a run."""
_ATTEMPT: Final = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,39}")
_RUN: Final = re.compile(r"[A-Za-z0-9_.-]{1,63}")
_PREFIX: Final = re.compile(rf"(\d{{8,19}})-({_ATTEMPT.pattern})")


class Name(NamedTuple):
    """What the name of a checkpoint says."""

    step: int
    attempt: str


def prefix_of(step: int, attempt: str) -> str:
    """The folder of a checkpoint."""
    if not 0 <= step < 10**19:
        raise CheckpointError(f"the step is {step}; it counts updates, from 0")
    return f"{step:08d}-{attempt}"


def parsed(prefix: str) -> Name | None:
    """Step and attempt; None for a folder that is no checkpoint of ours."""
    match = _PREFIX.fullmatch(prefix)
    return Name(int(match[1]), match[2]) if match and prefix == prefix_of(int(match[1]), match[2]) else None


def check_run(run: str) -> str:
    """A name of a run that may be part of the name of an object. Raises CheckpointError."""
    if not _RUN.fullmatch(run) or run in (".", ".."):
        raise CheckpointError(
            f"the run is called {run!r}; use 1 to 63 letters, digits, '-', '_' and '.', but not '.' or '..' alone"
        )
    return run


def check_attempt(attempt: str) -> str:
    """A name of an attempt that may be part of the name of a folder. Raises CheckpointError."""
    if not _ATTEMPT.fullmatch(attempt):
        raise CheckpointError(f"the attempt is {attempt!r}; use 1 to 40 letters, digits, '-', '_' and '.'")
    return attempt


def host_folder(host: int) -> str:
    """Where the arrays of a host lie."""
    return f"host-{host}"


def part_name(host: int) -> str:
    """What a host says about its arrays."""
    return f"PART-{host}.json"
