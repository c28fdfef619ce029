"""Caches of buckets from which nothing was read for a day: what they hold bills on."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Final

from policies.audit.context import Auditor, Context
from policies.audit.links import last
from policies.audit.model import RemedyKind, Since, VerdictKind
from policies.audit.reading import said, shown
from policies.audit.record import Metric, Part, Series
from policies.audit.subjects import Subject
from policies.audit.telling import Told, each, if_seen, length, moment, remedy, tell
from policies.audit.ttl import created
from policies.estimate.model import Unpriced

QUIET: Final = datetime.timedelta(hours=24)
RUNNING: Final = ("running",)
_OFF: Final = ("disabled", "paused")
_CHANGING: Final = ("creating", "pending", "disabling")
_MISSES: Final = ("false", "miss", "cache_miss")
ITEM: Final = "storage.rapid-cache.capacity"


def _look(context: Context) -> Iterator[Told]:
    yield from each(context, Part.CACHES, lambda subject: _verdicts(context, subject))


def _verdicts(context: Context, subject: Subject) -> Iterator[Told]:
    state = said(subject.item, "state").lower()
    if state in _OFF or state in _CHANGING:
        return
    if state not in RUNNING:
        message = f"state is {shown(subject.item.get('state'))}, which spotrail does not know"
        yield tell(context, subject, VerdictKind.UNKNOWN_STATE, message)
        return
    made = created(subject.item)
    if context.now - made < QUIET:
        yield tell(context, subject, VerdictKind.TOO_NEW, f"made {length(context.now - made)} ago")
        return
    hits = _last_hit(context, subject)
    end = context.record.window.end
    if hits is not None and end - hits < QUIET:
        return
    since = hits if hits is not None else max(made, context.record.window.start)
    confidence = Since.ESTIMATED if hits is not None else Since.AT_LEAST
    message = f"no hit since {moment(since)}; {_price(context, subject)}"
    ending = remedy(RemedyKind.DISABLE_CACHE, "disable it", None)
    found = tell(context, subject, VerdictKind.ORPHANED, message, since=since, confidence=confidence, remedy=ending)
    yield if_seen(context, found, Part.CACHES, Metric.CACHE_HITS)


def _last_hit(context: Context, subject: Subject) -> datetime.datetime | None:
    """The end of the last point with hits within the window."""
    ends = [
        end
        for series in context.record.series(Metric.CACHE_HITS)
        if _is_of(series, subject)
        for _, end, value in series.points()
        if value > 0
    ]
    if not ends:
        return None
    return datetime.datetime.fromtimestamp(max(ends), datetime.UTC)


def _is_of(series: Series, subject: Subject) -> bool:
    """Whether it counts hits of that cache: of its bucket and, where the series says one, of its zone."""
    labels = {**series.resource_labels, **series.metric_labels}
    zones = [value.lower() for key, value in labels.items() if key in ("cache_zone", "zone")]
    missed = any(value.lower() in _MISSES for key, value in labels.items() if "hit" in key or key == "result")
    here = not zones or last(said(subject.item, "zone")).lower() in zones
    return labels.get("bucket_name") == said(subject.item, "bucket") and here and not missed


def _price(context: Context, subject: Subject) -> str:
    rate = context.pricing.rate(ITEM, "GiB-month", last(said(subject.item, "zone")))
    if isinstance(rate, Unpriced):
        return f"what it holds bills, and {rate.reason}"
    return f"every GiB that it holds bills {rate.monthly:f} a month; how many, the record does not say"


AUDITOR: Final = Auditor(title="caches without hits", look=_look)
