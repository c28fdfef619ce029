"""The words of an audit: verdicts, what they cost, and what would stop it."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import final

from policies.audit.record import Missing, Window
from policies.estimate.model import total
from policies.money import ZERO, Amount
from policies.rules.model import Severity


class VerdictKind(enum.Enum):
    """What the audit says of one resource. Of a volume, the first of the first ten that holds."""

    TOO_NEW = "TOO_NEW"
    """Younger than the window: nothing can be said yet."""
    IDLE_UNATTACHED = "IDLE_UNATTACHED"
    """Attached to nothing for longer than the grace. It has no series: the inventory alone says so."""
    IDLE_STOPPED_HOST = "IDLE_STOPPED_HOST"
    """All its hosts are stopped or suspended."""
    UNKNOWN_TELEMETRY = "UNKNOWN_TELEMETRY"
    """A host runs, and too few points are there to judge. Never idle."""
    UNKNOWN_TPU_HOST = "UNKNOWN_TPU_HOST"
    """Read by a node of the Cloud TPU API, which may have no disk series in this project."""
    IDLE_ATTACHED = "IDLE_ATTACHED"
    """Its hosts run and nobody reads it."""
    UNREACHABLE = "UNREACHABLE"
    """Provisioned beyond what its hosts could ever read together."""
    BURSTY = "BURSTY"
    """Read, but only in a few minutes of the window."""
    OVERPROVISIONED = "OVERPROVISIONED"
    """Read all the time at less than half of what is provisioned."""
    IN_USE = "IN_USE"
    """Used as it should be."""
    IDLE_SLICE = "IDLE_SLICE"
    """TPU chips that are READY and do nothing."""
    EXPIRED = "EXPIRED"
    """Past the end that its owner's `ttl` label sets."""
    PREEMPTED = "PREEMPTED"
    """A node that was taken back: costs no chips any more, has to be deleted before it can be created again."""
    STALE_REQUEST = "STALE_REQUEST"
    """A queued resource that is suspended or has failed: never served again, still holds quota."""
    WAITING = "WAITING"
    """A queued resource that may still be served: costs nothing now, may turn active at any hour."""
    ORPHANED = "ORPHANED"
    """Left behind: nothing uses it any more, and it bills."""
    UNKNOWN_STATE = "UNKNOWN_STATE"
    """In a state, or with a user, that spotrail cannot place. Never idle."""

    @property
    def unknown(self) -> bool:
        """Whether it says that nothing can be said."""
        return self in (VerdictKind.UNKNOWN_TELEMETRY, VerdictKind.UNKNOWN_TPU_HOST, VerdictKind.UNKNOWN_STATE)


class Since(enum.Enum):
    """How sure it is since when money is wasted."""

    EXACT = "exact"
    """A time that the API gives."""
    AT_LEAST = "at least"
    """Idle for the whole window that was looked at; may be longer."""
    ESTIMATED = "estimated"
    """The last sign of use in the telemetry."""
    UNKNOWN = "unknown"
    """No time is known, and nothing is counted."""


class RemedyKind(enum.Enum):
    """What would stop the waste."""

    LOWER_THROUGHPUT = "lower-throughput"
    SCHEDULE_THROUGHPUT = "schedule-throughput"
    SNAPSHOT_THEN_DELETE = "snapshot-then-delete"
    DETACH = "detach"
    RELEASE_ADDRESS = "release-address"
    DELETE_SNAPSHOT = "delete-snapshot"
    DELETE_IMAGE = "delete-image"
    DELETE_QUEUED_RESOURCE = "delete-queued-resource"
    DELETE_NODE = "delete-node"
    RESIZE_GROUP = "resize-group"
    """To 0 machines."""
    STOP_INSTANCE = "stop-instance"
    SET_LIFECYCLE = "set-lifecycle"
    """A rule that ends unfinished uploads."""
    EXPIRE_VERSIONS = "expire-versions"
    """A rule that deletes noncurrent versions."""
    SHORTEN_SOFT_DELETE = "shorten-soft-delete"
    DISABLE_CACHE = "disable-cache"

    @property
    def safe(self) -> bool:
        """Whether the guard may do it by itself: it loses nothing and can be undone. Ending by ttl is apart."""
        return self is RemedyKind.LOWER_THROUGHPUT


@final
@dataclass(frozen=True, kw_only=True)
class Remedy:
    """What would stop the waste of one resource."""

    kind: RemedyKind
    to_mibps: int | None = None
    """The throughput to set, where that is the remedy."""
    monthly_saving: Amount | None = None
    """What it saves: at most the waste. None where a price is missing."""
    text: str
    """The step in a few words: `throughput to 400`, `delete after snapshot`."""


@final
@dataclass(frozen=True, kw_only=True)
class Usage:
    """How a volume was read and written over the window, all hosts together. In MiB/s; None where it is not known."""

    coverage: Fraction | None = None
    """Part of the time for which points were due that has them; None where none were due."""
    provisioned_mibps: int | None = None
    mean_mibps: Fraction | None = None
    """Over the covered time."""
    p99_mibps: Fraction | None = None
    """Over the points used; their length is in `resolution`."""
    peak_mibps: Fraction | None = None
    resolution: datetime.timedelta | None = None
    """Length of the points that `p99_mibps` is over."""


@final
@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the audit says of one resource."""

    resource: str
    """The self link without host and version: `projects/p/zones/us-central1-b/disks/llama-old`."""
    type: str
    """What it is, as its API calls it: `compute.disk`, `tpu.node`, `tpu.queuedResource`, `compute.address`."""
    location: str
    """Zone, region, multi-region or `global`."""
    kind: VerdictKind
    usage: Usage = Usage()
    waste: Amount | None = None
    """What is wasted now. None where that cannot be said: unknown, or a price is missing; the message says which."""
    since: datetime.datetime | None = None
    since_confidence: Since = Since.UNKNOWN
    wasted_so_far: Decimal | None = None
    """From `since` to the time of the record. None where `waste` or `since` is not known."""
    remedy: Remedy | None = None
    """None where there is nothing to do, or nothing that may be proposed."""
    message: str
    """Why, in one line: `12,000 MiB/s, no reader since 11-02`."""
    labels: tuple[tuple[str, str], ...] = ()
    """Labels of the resource, for whose it is."""
    shares: tuple[tuple[str, Decimal], ...] = ()
    """Of a volume with several readers, what of its price a month each one carries; together its price, to the cent."""

    @property
    def so_far(self) -> Decimal | None:
        """`wasted_so_far`; 0 where nothing is wasted."""
        return Decimal() if self.wasted_so_far is None and self.waste == ZERO else self.wasted_so_far

    @property
    def name(self) -> str:
        """The last part of the resource."""
        return self.resource.rpartition("/")[2]


@final
@dataclass(frozen=True, kw_only=True)
class AuditFinding:
    """A mistake that the live world shows and that is no verdict on idleness, with the id of a rule."""

    rule: str
    severity: Severity
    resource: str
    """As in `Verdict`."""
    message: str
    monthly: Amount | None = None
    remediation: str = ""


@final
@dataclass(frozen=True, kw_only=True)
class Audit:
    """Everything the audit says of a project."""

    project: str
    recorded_at: datetime.datetime
    window: Window
    currency: str
    book_as_of: datetime.date | None
    """None where the book has a price without a date."""
    book_sha256: str
    verdicts: tuple[Verdict, ...]
    """Worst first: by waste a month, then the unknown ones, then the rest, each by resource."""
    findings: tuple[AuditFinding, ...] = ()
    missing: tuple[Missing, ...] = ()
    notes: tuple[str, ...] = ()

    @cached_property
    def waste(self) -> Amount:
        """What is wasted now; a lower bound unless `complete`."""
        return total(verdict.waste for verdict in self.verdicts if verdict.waste is not None)

    @cached_property
    def wasted_so_far(self) -> Decimal:
        """What was wasted up to the record; a lower bound."""
        return sum((verdict.wasted_so_far or Decimal() for verdict in self.verdicts), Decimal())

    @property
    def complete(self) -> bool:
        """Whether every resource could be judged and priced, and no part is missing."""
        return not self.missing and not any(verdict.kind.unknown for verdict in self.verdicts)
