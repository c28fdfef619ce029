"""How a fill waits: what each state of a disk, a snapshot and a hydrator means, and what each failure of a call means.

These tables are the only ones: the scripts of the jobs are rendered from them (`infra/templates/parts/wait.sh.j2`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
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
_FAILED: Final = "CONDITION_FAILED"
"""State of the terminal condition of a job whose execution has failed (REST reference of Cloud Run v2, Condition)."""


def forgotten_failure(job: str, urn: str, conditions: Iterable[tuple[str | None, str | None]]) -> str | None:
    """What to do about a job that has failed although Pulumi takes it for a good one, or None where it has not.

    `conditions` are the states and messages of its terminal conditions, as a refresh has found them.
    """
    failed = [message or "no reason given" for state, message in conditions if state == _FAILED]
    if not failed:
        return None
    return (
        f"The execution of the job {job} has failed: {'; '.join(failed)}. Pulumi does not run it again by itself, "
        f"since a refresh has made it forget that. To start over: pulumi up --replace '{urn}'"
    )
