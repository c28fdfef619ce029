"""What can be made to go wrong, method by method, and the count of what was asked."""

from __future__ import annotations

import enum
import fnmatch
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, final

from tests.google_cloud.errors import Refusal


class FaultKind(enum.Enum):
    """A way to fail."""

    RATE_LIMITED = 429
    UNAVAILABLE = 503
    FORBIDDEN = 403
    UNAUTHENTICATED = 401
    TIMED_OUT = 408
    SLOW = "the answer comes after `seconds`"
    CUT = "the connection ends in the middle of the answer"
    TRUNCATED = "the answer is whole as HTTP or gRPC has it, but its JSON or message lacks its end"
    LOOP = "a page names itself as the next one"
    PARTIAL = "what lies in `zone` is left out, and the answer says so"
    FAILED_OPERATION = "the call is accepted, and its operation ends in an error"
    LOST = "the call is applied, and the connection ends without an answer"
    RESET = "the connection is reset after `bytes` of the answer's body"
    UPLOAD_RESET = "the connection is reset after `bytes` of the request's body; a resumable upload keeps what came"
    BANDWIDTH = "bodies move at `rate` bytes a second, both ways"
    STALE_LIST = "a list of objects lacks those that `object` names"
    FLIPPED_STORED = "bit number `bit` of an upload is stored the other way round, under the checksums of what was sent"
    FLIPPED_SERVED = "bit number `bit` of a download's body is served the other way round"


_REFUSALS: Final = {
    FaultKind.RATE_LIMITED: ("rateLimitExceeded", "Quota exceeded for quota metric 'Read requests per minute'"),
    FaultKind.UNAVAILABLE: ("backendError", "The service is currently unavailable."),
    FaultKind.FORBIDDEN: ("forbidden", "The caller does not have permission"),
    FaultKind.UNAUTHENTICATED: ("authError", "Request had invalid authentication credentials."),
    FaultKind.TIMED_OUT: ("uploadBrokenConnection", "Request timed out."),
}


@final
@dataclass(frozen=True, kw_only=True)
class Fault:
    """One thing that goes wrong, for the calls that it matches."""

    kind: FaultKind
    method: str = "*"
    """A glob over method ids: `compute.disks.aggregatedList`, `monitoring.*`."""
    where: str = ""
    """Text that the request must have: a part of its path, parent, name or filter."""
    object: str = "*"
    """A glob over the name of the object that a call of Storage is about; of STALE_LIST: what the list lacks."""
    zone: str = ""
    """Of PARTIAL: the zone or region (of Storage: the bucket) that cannot be reached."""
    times: int | None = None
    """How many calls it strikes; None for all."""
    after: int = 0
    """How many matching calls it lets pass first."""
    seconds: float = 1.0
    """Of SLOW."""
    bytes: int = 0
    """Of RESET and UPLOAD_RESET."""
    rate: float = 2**20
    """Of BANDWIDTH."""
    bit: int = 0
    """Of FLIPPED_STORED and FLIPPED_SERVED; counted on from the front of the body again where it is beyond its end."""
    message: str = ""
    """Instead of the usual one."""

    def refusal(self) -> Refusal | None:
        """The answer of a fault that refuses at once; None of the other kinds."""
        if self.kind not in _REFUSALS:
            return None
        reason, message = _REFUSALS[self.kind]
        return Refusal(int(self.kind.value), reason, self.message or message)


def fault(spec: Mapping[str, Any]) -> Fault:
    """A fault from JSON: `{"kind": "RATE_LIMITED", "method": "compute.*", "times": 2}`. Raises KeyError, TypeError."""
    return Fault(**{**spec, "kind": FaultKind[spec["kind"]]})


@final
@dataclass(frozen=True, kw_only=True)
class Call:
    """A request as it came in, with the faults that strike it."""

    method: str
    """`compute.disks.aggregatedList`, as in Google's discovery documents, the `projects.locations` of TPU left out."""
    detail: str
    """Path with query, or the parent, name or filter."""
    object: str = ""
    """Of a call of Storage that is about one object: its name."""
    faults: tuple[Fault, ...] = ()

    def struck(self, kind: FaultKind) -> Fault | None:
        """The fault of that kind, if there is one."""
        return next((fault for fault in self.faults if fault.kind is kind), None)

    def unreachable(self) -> frozenset[str]:
        """The zones, regions or buckets that this call cannot see."""
        return frozenset(fault.zone for fault in self.faults if fault.kind is FaultKind.PARTIAL)


@final
class Calls:
    """The log of what was asked, and the faults that are in force."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[tuple[Fault, list[int]]] = []
        self.log: list[Call] = []

    def add(self, *faults: Fault) -> None:
        """Put them in force, from the next call on."""
        with self._lock:
            self._faults += [(fault, [0]) for fault in faults]

    def clear(self) -> None:
        """Take all faults out of force."""
        with self._lock:
            self._faults.clear()

    def enter(self, method: str, detail: str, object: str = "") -> Call:
        """Log a call and find what strikes it."""
        with self._lock:
            call = Call(method=method, detail=detail, object=object)
            struck = tuple(fault for fault, seen in self._faults if _strikes(fault, seen, call))
            call = replace(call, faults=struck)
            self.log.append(call)
            return call

    def counts(self) -> Counter[str]:
        """How often each method was called."""
        with self._lock:
            return Counter(call.method for call in self.log)


def _strikes(fault: Fault, seen: list[int], call: Call) -> bool:
    if not (fnmatch.fnmatchcase(call.method, fault.method) and fault.where in call.detail):
        return False
    if fault.kind is not FaultKind.STALE_LIST and not fnmatch.fnmatchcase(call.object, fault.object):
        return False
    seen[0] += 1
    return fault.after < seen[0] and (fault.times is None or seen[0] <= fault.after + fault.times)
