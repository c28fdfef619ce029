"""How a fill waits: what each state of a disk, a snapshot and a hydrator means, and what each failure of a call means.

These tables are the only ones: the scripts of the jobs are rendered from them (`infra/templates/parts/wait.sh.j2`).
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final


@final
class Decision(enum.Enum):
    """What to do after one look."""

    WAIT = "wait"
    """Look again in a while."""
    GO = "go"
    """It is ready: go on."""
    STOP = "stop"
    """It will never be: fail."""


@final
@dataclass(frozen=True, kw_only=True)
class Table:
    """What the states of one kind of resource mean. A state that is not here means STOP."""

    kind: str
    """`disk`, `snapshot`, `hydrator`."""
    states: Mapping[str, Decision]
    missing: Decision
    """What it means that Google does not know the resource (any more, or yet)."""


DISK: Final = Table(
    kind="disk",
    states={
        "CREATING": Decision.WAIT,
        "RESTORING": Decision.WAIT,
        "READY": Decision.GO,
        "FAILED": Decision.STOP,
        "DELETING": Decision.STOP,
        "UNAVAILABLE": Decision.STOP,
    },
    missing=Decision.WAIT,
)
SNAPSHOT: Final = Table(
    kind="snapshot",
    states={
        "CREATING": Decision.WAIT,
        "UPLOADING": Decision.WAIT,
        "READY": Decision.GO,
        "FAILED": Decision.STOP,
        "DELETING": Decision.STOP,
    },
    missing=Decision.WAIT,
)
HYDRATOR: Final = Table(
    kind="hydrator",
    states={
        "PROVISIONING": Decision.WAIT,
        "STAGING": Decision.WAIT,
        "RUNNING": Decision.WAIT,
        "REPAIRING": Decision.WAIT,
        "STOPPING": Decision.STOP,
        "SUSPENDING": Decision.STOP,
        "SUSPENDED": Decision.STOP,
        "TERMINATED": Decision.STOP,
    },
    missing=Decision.STOP,
)
"""It never is READY: it reports a verdict. Once it is gone, no verdict will come."""
TABLES: Final = (DISK, SNAPSHOT, HYDRATOR)

MISSING: Final = r"' (of type '[^']*' )?was not found|HTTPError 404"
"""Google does not know the resource. The patterns hold spaces or quotes where a name could imitate them."""
FORBIDDEN: Final = r"Required '[^']*' permission|does not have permission|PERMISSION_DENIED|HTTPError 403"
"""The account lacks a role, or has it since a minute ago."""
REFUSED: Final = FORBIDDEN + r"|Quota '[^']*' exceeded|quotaExceeded|HTTPError 40[019]|Invalid value"
"""Failures that no waiting mends."""
TRANSIENT: Final = (
    r"HTTPError (429|500|502|503|504)|backendError|internalError|rateLimitExceeded|service.?unavailable"
    r"|connection (reset|refused|aborted)|timed out|try again"
)
"""Failures of the call, not of the resource."""
VERDICT_OK: Final = "ok"
"""What the hydrator reports when every digest is right; all other reports are failures."""


@final
@dataclass(frozen=True, kw_only=True)
class Look:
    """What one look at a resource showed."""

    state: str = ""
    """Its state; empty where the call failed."""
    error: str = ""
    """What the failed call said."""
    waited: int = 0
    """Seconds since the wait began."""


def decide(table: Table, look: Look, timeout: int) -> Decision:
    """What to do after `look`. `timeout` is in seconds, and even what would be waited for ends with it."""
    found = table.states.get(look.state, Decision.STOP) if look.state else after_error(table, look.error)
    return Decision.STOP if found is Decision.WAIT and look.waited >= timeout else found


def after_error(table: Table, error: str) -> Decision:
    """What a failed call means: only a missing resource or a passing failure is waited for."""
    if re.search(MISSING, error, re.IGNORECASE):
        return table.missing
    passing = re.search(TRANSIENT, error, re.IGNORECASE) and not re.search(REFUSED, error, re.IGNORECASE)
    return Decision.WAIT if passing else Decision.STOP


def judge_verdict(verdict: str) -> Decision:
    """What a hydrator's report means; an empty one has not come yet."""
    if not verdict:
        return Decision.WAIT
    return Decision.GO if verdict == VERDICT_OK else Decision.STOP
