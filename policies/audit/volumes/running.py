"""When a machine ran: the time for which its points were due."""

from __future__ import annotations

from collections.abc import Iterable

from policies.audit.record import Item, Series
from policies.audit.telemetry.series import Strand, pieces
from policies.audit.telemetry.spans import Span, Spans, common, micros, united, without
from policies.audit.times import when
from policies.audit.volumes.joins import Host, Standing


def ran(host: Host, uptime: Iterable[Series], window: Span) -> Spans:
    """When an instance ran within the window.

    Since its last start, if it runs now: that is sure, whatever the telemetry says. Before that, and for a machine
    that is off, what its uptime says; without any, from its last start to its last stop. One that says no start ran
    since it was made, or for the whole window.
    """
    started = _time(host.item, "lastStartTimestamp")
    found = tuple(uptime)
    if host.standing is Standing.RUNS and (started is not None or not found):
        since = started if started is not None else _time(host.item, "creationTimestamp") or window[0]
        sure = _within(since, window[1], window)
        if since <= window[0]:
            return sure
        stopped = host.stopped
        # An hour of uptime in which it was started says nothing of its beginning.
        off = _within(micros(stopped), since, window) if stopped is not None else ()
        return united((*sure, *without(_up(found, window), united((*sure, *off)))))
    if found:
        return _up(found, window)
    stopped = host.stopped
    return _within(started, micros(stopped), window) if started is not None and stopped is not None else ()


def _up(uptime: tuple[Series, ...], window: Span) -> Spans:
    counted = pieces(Strand(reader="uptime", series=uptime, window=window))
    return united((piece.start, piece.end) for piece in counted if piece.rate)


def _within(start: int, end: int, window: Span) -> Spans:
    return common(((start, end),), (window,)) if start < end else ()


def _time(item: Item, field: str) -> int | None:
    found = when(item, field)
    return None if found is None else micros(found)
