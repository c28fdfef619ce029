"""Runtime versions of the TPU API: which of them brings v6e chips to life."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, final

from policies.hardware.tables import provenance, rows

V6E_RUNTIME: Final = "v2-alpha-tpuv6e"
"""The runtime for JAX on v6e."""


@final
class RuntimeStatus(enum.Enum):
    """What a runtime version does on v6e."""

    OK = "ok"
    WARNING = "warning"
    """Google takes it; JAX will not run on it."""
    WRONG = "wrong"
    """The VM may start; the chips will not be seen."""


@final
@dataclass(frozen=True, kw_only=True)
class RuntimeVerdict:
    """Whether a runtime version fits v6e, and why."""

    status: RuntimeStatus
    reason: str
    """A sentence that names the runtime received and, unless it is right, the right one."""


@lru_cache(maxsize=1024)
def judge_runtime(name: str | None) -> RuntimeVerdict:
    """Judge a runtime version for v6e. A missing, empty or unlisted one is WRONG. Source: runtimes.csv."""
    if not name:
        return _wrong("the runtime version is not set")
    for row in rows("runtimes"):
        if fnmatchcase(name, row["pattern"]):
            status = RuntimeStatus(row["verdict"])
            said = f'runtime version "{name}": {row["reason"]}'
            advice = "" if status is RuntimeStatus.OK else f"; use {V6E_RUNTIME}"
            return RuntimeVerdict(status=status, reason=said + advice)
    return _wrong(f'runtime version "{name}" is not known for v6e ({provenance("runtimes")})')


def _wrong(said: str) -> RuntimeVerdict:
    return RuntimeVerdict(status=RuntimeStatus.WRONG, reason=f"{said}; use {V6E_RUNTIME}")
