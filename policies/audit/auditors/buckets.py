"""Bytes in buckets that nobody reads and that bill: soft-deleted ones, unfinished uploads, noncurrent versions.

One verdict a bucket, with the remedy that saves most: a bucket takes one change at a time.
Source: storage.googleapis.com/storage/v2/total_bytes, once a day, by `storage_class` and `type`
"""

from __future__ import annotations

import datetime
import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import takewhile
from typing import Final, final

from policies.audit.context import Auditor, Context
from policies.audit.model import Remedy, RemedyKind, Since, VerdictKind
from policies.audit.pricing import GIB
from policies.audit.reading import objects, said, whole
from policies.audit.record import Item, Metric, Part, Series
from policies.audit.subjects import Subject
from policies.audit.telemetry.spans import MICRO, micros, moment
from policies.audit.telling import Told, bill_of, each, if_seen, priced, remedy, tell
from policies.estimate.model import total
from policies.money import HOURS_PER_MONTH, Amount, decimal_of

SOFT_SHARE: Final = Fraction(1, 5)
"""Soft-deleted bytes above this part of the live ones are worth a word."""
LEAST: Final = GIB
"""Unfinished uploads and noncurrent versions below are not: some are always under way."""
DATASETS: Final = "datasets"
"""Role of the bucket that a stack keeps soft delete on for: its objects are written once and lost once."""


class Kept(enum.Enum):
    """What bytes of a bucket are, by the beginning of the label `type`."""

    LIVE = "live"
    SOFT_DELETED = "soft-deleted"
    UPLOADS = "multipart"
    NONCURRENT = "noncurrent"


_SAID: Final = {
    Kept.SOFT_DELETED: "soft-deleted",
    Kept.UPLOADS: "in unfinished uploads",
    Kept.NONCURRENT: "in noncurrent versions",
}


@final
@dataclass(frozen=True, kw_only=True)
class Count:
    """One kind of bytes of one storage class."""

    bytes: int
    """The newest count."""
    first: datetime.datetime
    """The first count of the window from which on there were some, without a break."""
    byte_hours: Fraction
    """From then to the time of the record, each count until the next."""


@final
@dataclass(frozen=True, kw_only=True)
class Held:
    """One kind of bytes in a bucket."""

    by_class: Mapping[str, Count]
    """By storage class; an empty name is the bucket's own."""

    @property
    def bytes(self) -> int:
        """All classes together."""
        return sum(count.bytes for count in self.by_class.values())

    @property
    def first(self) -> datetime.datetime:
        """Since when there were some."""
        return min(count.first for count in self.by_class.values())


@final
@dataclass(frozen=True, kw_only=True)
class _Waste:
    """One kind of bytes that nobody needs."""

    kept: Kept
    held: Held
    cost: Amount | None
    spent: Fraction
    """What they cost since the first count."""
    why: str
    remedy: RemedyKind | None
    text: str


def _look(context: Context) -> Iterator[Told]:
    counts: dict[str, list[Series]] = {}
    for series in context.record.series(Metric.BUCKET_BYTES):
        counts.setdefault(series.resource_labels.get("bucket_name", ""), []).append(series)
    yield from each(context, Part.BUCKETS, lambda subject: _verdict(context, subject, counts.get(subject.name, [])))


def _verdict(context: Context, subject: Subject, counts: list[Series]) -> Iterator[Told]:
    held = {kept: count for kept in Kept if (count := _held(counts, kept, context.now)) is not None}
    wastes = [_waste(context, subject.item, kept, held[kept]) for kept in _SAID if kept in held]
    found = [waste for waste in wastes if _matters(waste, held)]
    if not found:
        return
    costs = [waste.cost for waste in found if waste.cost is not None]
    whole_cost = total(costs) if len(costs) == len(found) else None
    message = ", ".join(
        f"{waste.held.bytes / GIB:,.0f} GiB {_SAID[waste.kept]}{_share(waste, held)}" for waste in found
    )
    why = next((waste.why for waste in found if waste.why), "")
    verdict = tell(
        context,
        subject,
        VerdictKind.ORPHANED,
        priced(message, why),
        waste=whole_cost,
        since=min(waste.held.first for waste in found),
        confidence=Since.AT_LEAST,
        remedy=_remedy(found),
    )
    if whole_cost is not None:
        # They were not always as many as now.
        verdict = replace(verdict, wasted_so_far=decimal_of(sum((waste.spent for waste in found), Fraction(0))))
    yield if_seen(context, verdict, Part.BUCKETS, Metric.BUCKET_BYTES)


def _remedy(found: list[_Waste]) -> Remedy | None:
    """The one change of the bucket that saves most."""
    by_kind: dict[RemedyKind, list[_Waste]] = {}
    for waste in found:
        if waste.remedy is not None:
            by_kind.setdefault(waste.remedy, []).append(waste)
    if not by_kind:
        return None
    best = max(by_kind, key=lambda kind: _worth(by_kind[kind]))
    saving = _saving(by_kind[best])
    return remedy(best, by_kind[best][0].text, saving)


def _saving(wastes: list[_Waste]) -> Amount | None:
    costs = [waste.cost for waste in wastes if waste.cost is not None]
    return total(costs) if len(costs) == len(wastes) else None


def _worth(wastes: list[_Waste]) -> Fraction:
    saving = _saving(wastes)
    return Fraction(0) if saving is None else saving.per_month


def _held(counts: list[Series], kept: Kept, now: datetime.datetime) -> Held | None:
    """What there is of one kind; None where there are no such bytes."""
    found: dict[str, Count] = {}
    for series in counts:
        name = series.metric_labels.get("storage_class", "")
        if series.metric_labels.get("type", "").startswith(kept.value) and (count := _count(series, now)) is not None:
            found[name] = count if name not in found else max(count, found[name], key=lambda each: each.bytes)
    return Held(by_class=found) if found else None


def _count(series: Series, now: datetime.datetime) -> Count | None:
    """The newest count of a series and what came before it; None where it says that there are none."""
    points = sorted(
        (micros(datetime.datetime.fromtimestamp(end, datetime.UTC)), value) for _, end, value in series.points()
    )
    standing = list(takewhile(lambda point: point[1] >= 1, reversed(points)))
    if not standing:
        return None
    ends = [micros(now), *(end for end, _ in standing)]
    held = sum(Fraction(int(value)) * max(0, later - end) for later, (end, value) in zip(ends, standing, strict=False))
    return Count(
        bytes=int(standing[0][1]),
        first=moment(standing[-1][0]),
        byte_hours=Fraction(held) / (3600 * MICRO),
    )


def _waste(context: Context, bucket: Item, kept: Kept, held: Held) -> _Waste:
    costs: list[Amount] = []
    spent, why = Fraction(0), ""
    for name, count in held.by_class.items():
        cost, reason = bill_of(context.pricing.bytes_of(bucket, count.bytes, name))
        why = why or reason
        if cost is not None:
            costs.append(cost)
            spent += cost.per_month / HOURS_PER_MONTH * count.byte_hours / count.bytes
    kind, text = _change(bucket, kept)
    whole_cost = None if why else total(costs)
    return _Waste(kept=kept, held=held, cost=whole_cost, spent=spent, why=why, remedy=kind, text=text)


def _change(bucket: Item, kept: Kept) -> tuple[RemedyKind | None, str]:
    """What would end such bytes; nothing where the bucket has it already, and they go by themselves."""
    if kept is Kept.SOFT_DELETED and said(bucket, "labels", "role") == DATASETS:
        return None, ""
    if kept is Kept.SOFT_DELETED:
        policy = bucket.get("softDeletePolicy")
        seconds = whole(policy, "retentionDurationSeconds") if isinstance(policy, Mapping) else None
        return (None, "") if seconds == 0 else (RemedyKind.SHORTEN_SOFT_DELETE, "soft delete off")
    if _has_rule(bucket, kept):
        return None, ""
    if kept is Kept.UPLOADS:
        return RemedyKind.SET_LIFECYCLE, "lifecycle: end unfinished uploads"
    return RemedyKind.EXPIRE_VERSIONS, "lifecycle: delete noncurrent versions"


def _has_rule(bucket: Item, kept: Kept) -> bool:
    """Whether the lifecycle of the bucket ends such bytes."""
    for rule in objects(bucket, "lifecycle", "rule"):
        action, condition = said(rule, "action", "type"), rule.get("condition")
        conditions = condition if isinstance(condition, Mapping) else {}
        if kept is Kept.UPLOADS and action == "AbortIncompleteMultipartUpload":
            return True
        noncurrent = {"daysSinceNoncurrentTime", "numNewerVersions", "noncurrentTimeBefore"} & set(conditions)
        if kept is Kept.NONCURRENT and action == "Delete" and (noncurrent or conditions.get("isLive") is False):
            return True
    return False


def _matters(waste: _Waste, held: Mapping[Kept, Held]) -> bool:
    """Soft-deleted bytes by their share; the others where no rule ends them."""
    if waste.kept is Kept.SOFT_DELETED:
        live = held[Kept.LIVE].bytes if Kept.LIVE in held else 0
        return waste.held.bytes >= LEAST and waste.held.bytes > SOFT_SHARE * live
    return waste.remedy is not None and waste.held.bytes >= LEAST


def _share(waste: _Waste, held: Mapping[Kept, Held]) -> str:
    live = held[Kept.LIVE].bytes if Kept.LIVE in held else 0
    if waste.kept is not Kept.SOFT_DELETED or not live:
        return ""
    return f" ({round(Fraction(waste.held.bytes, live) * 100):,} % of the live bytes)"


AUDITOR: Final = Auditor(title="soft-deleted bytes, unfinished uploads, noncurrent versions", look=_look)
