"""Bytes in buckets that nobody reads and that bill: soft-deleted ones, unfinished uploads, noncurrent versions.

One verdict a bucket, with the remedy that saves most: a bucket takes one change at a time.
Source: storage.googleapis.com/storage/v2/total_bytes, once a day, by `storage_class` and `type`
"""

from __future__ import annotations

import datetime
import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from policies.audit.context import Auditor, Context
from policies.audit.model import Remedy, RemedyKind, Since, VerdictKind
from policies.audit.pricing import GIB
from policies.audit.reading import objects, said, whole
from policies.audit.record import Item, Metric, Part, Series
from policies.audit.subjects import Subject
from policies.audit.telling import Told, bill_of, each, if_seen, priced, remedy, tell
from policies.estimate.model import total
from policies.money import Amount

SOFT_SHARE: Final = Fraction(1, 5)
"""Soft-deleted bytes above this part of the live ones are worth a word."""
LEAST: Final = GIB
"""Unfinished uploads and noncurrent versions below are not: some are always under way."""


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
class Held:
    """The newest count of one kind of bytes in a bucket."""

    by_class: Mapping[str, int]
    """By storage class; an empty name is the bucket's own."""
    first: datetime.datetime
    """The first count of the window from which on there were some, without a break."""

    @property
    def bytes(self) -> int:
        """All classes together."""
        return sum(self.by_class.values())


@final
@dataclass(frozen=True, kw_only=True)
class _Waste:
    """One kind of bytes that nobody needs."""

    kept: Kept
    held: Held
    cost: Amount | None
    why: str
    remedy: RemedyKind | None
    text: str


def _look(context: Context) -> Iterator[Told]:
    counts: dict[str, list[Series]] = {}
    for series in context.record.series(Metric.BUCKET_BYTES):
        counts.setdefault(series.resource_labels.get("bucket_name", ""), []).append(series)
    yield from each(context, Part.BUCKETS, lambda subject: _verdict(context, subject, counts.get(subject.name, [])))


def _verdict(context: Context, subject: Subject, counts: list[Series]) -> Iterator[Told]:
    held = {kept: count for kept in Kept if (count := _held(counts, kept)) is not None}
    wastes = [_waste(context, subject.item, kept, held[kept]) for kept in _SAID if kept in held]
    found = [waste for waste in wastes if waste is not None and _matters(waste, held)]
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
        since=max(waste.held.first for waste in found),
        confidence=Since.AT_LEAST,
        remedy=_remedy(found),
    )
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


def _held(counts: list[Series], kept: Kept) -> Held | None:
    """The newest count of each class; None where there are no such bytes."""
    found: dict[str, int] = {}
    starts: list[float] = []
    for series in counts:
        if not series.metric_labels.get("type", "").startswith(kept.value) or not len(series):
            continue
        points = sorted((end, value) for _, end, value in series.points())
        if points[-1][1] < 1:
            continue
        name = series.metric_labels.get("storage_class", "")
        found[name] = found.get(name, 0) + int(points[-1][1])
        zero = max((end for end, value in points if value < 1), default=None)
        starts.append(min(end for end, _ in points if zero is None or end > zero))
    if not found:
        return None
    return Held(by_class=found, first=datetime.datetime.fromtimestamp(min(starts), datetime.UTC))


def _waste(context: Context, bucket: Item, kept: Kept, held: Held) -> _Waste | None:
    bills = [bill_of(context.pricing.bytes_of(bucket, count, name)) for name, count in held.by_class.items()]
    why = next((why for cost, why in bills if cost is None), "")
    cost = None if why else total(cost for cost, _ in bills if cost is not None)
    kind, text = _change(bucket, kept)
    return _Waste(kept=kept, held=held, cost=cost, why=why, remedy=kind, text=text)


def _change(bucket: Item, kept: Kept) -> tuple[RemedyKind | None, str]:
    """What would end such bytes; nothing where the bucket has it already, and they go by themselves."""
    if kept is Kept.SOFT_DELETED:
        policy = bucket.get("softDeletePolicy")
        seconds = whole(policy, "retentionDurationSeconds") if isinstance(policy, Mapping) else None
        return (None, "") if seconds == 0 else (RemedyKind.SHORTEN_SOFT_DELETE, "soft delete off")
    if _has_rule(bucket, kept):
        return None, ""
    text = "end unfinished uploads" if kept is Kept.UPLOADS else "delete noncurrent versions"
    return RemedyKind.SET_LIFECYCLE, f"lifecycle: {text}"


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
