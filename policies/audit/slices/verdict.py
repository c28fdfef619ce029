"""The verdict on a slice whose chips bill, whatever it is made of: a node, a machine, a group of machines.

The first that holds: past its ttl; too young to say; no sign of life of its run; at work; no telemetry; idle.
A slice that serves waits for requests: it is idle only where it had none in the whole window.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, final

from policies.audit.context import Context
from policies.audit.model import RemedyKind, Since, Verdict, VerdictKind
from policies.audit.record import Metric, Part
from policies.audit.slices.duty import Activity, DutyCycles
from policies.audit.slices.heartbeats import ROLE, RUN, SERVING, Heartbeat, Heartbeats
from policies.audit.subjects import Subject
from policies.audit.telling import if_seen, length, moment, priced, remedy, tell
from policies.audit.ttl import LABEL, TtlError, end_of
from policies.money import Amount

SETTLING: Final = datetime.timedelta(minutes=30)
"""For so long a slice may be READY and do nothing: it installs, compiles, restores."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Slice:
    """A slice whose chips bill."""

    subject: Subject
    labels: dict[str, str]
    made: datetime.datetime
    """From which its `ttl` counts."""
    ready: datetime.datetime
    """From which it could work: the last of its hosts."""
    hosts: tuple[str, ...]
    """Ids and names by which its workers are known."""
    workers: int | None
    """How many there must be; None where that is not known."""
    cost: Amount | None
    """What it bills a month; None where a price is missing."""
    why: str = ""
    """Why there is no price."""
    ending: RemedyKind | None
    """What ends it; None where nothing may be proposed."""
    ending_text: str = ""
    needs: tuple[Part, ...]
    """Parts that must have been seen whole to say anything of it."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Judge:
    """Judges the slices of one record."""

    context: Context
    duty: DutyCycles
    heartbeats: Heartbeats

    @classmethod
    def of(cls, context: Context) -> Judge:
        """The judge of a context."""
        return cls(context=context, duty=DutyCycles(context.record), heartbeats=Heartbeats(context.record))

    def verdict(self, slice: Slice) -> Verdict:
        """The first that holds."""
        checks: tuple[Callable[[Slice], Verdict | None], ...] = (self._expired, self._silent)
        for check in checks:
            found = check(slice)
            if found is not None:
                return found
        return self._by_duty(slice)

    def _expired(self, slice: Slice) -> Verdict | None:
        try:
            end = end_of(slice.labels[LABEL], slice.made) if slice.labels.get(LABEL) else None
        except TtlError:  # told as a finding
            end = None
        if end is None or not end.over(self.context.now):
            return None
        message = f"its ttl of {end.ttl} ended {moment(end.at)}"
        return self._wasteful(slice, VerdictKind.EXPIRED, message, end.at, Since.EXACT)

    def _silent(self, slice: Slice) -> Verdict | None:
        """A run that writes no heartbeat any more.

        That of a whole stack counts where no chip was seen at work. One of before the slice was made says of a run
        that it has not come back yet, and of a whole stack nothing.
        """
        beat = self._heartbeat(slice)
        if beat is None or self._fresh(beat):
            return None
        earlier = beat.time <= slice.ready
        patience = max(SETTLING, self.context.terms.slice_idle) if earlier else SETTLING
        if self.context.now - slice.ready <= patience or (earlier and not beat.own):
            return None
        activity = self._activity(slice)
        works = self._at_work(slice, activity)
        if works and not beat.own:
            return None
        since = max(beat.time, slice.ready)
        who = f"run {beat.run or slice.labels[RUN]}" if beat.own else f"any run in {beat.bucket}"
        message = f"READY, last heartbeat of {who} {moment(beat.time)}"
        if works:
            # A run that hangs may keep its chips busy. So does another one.
            message += f", though a chip is {_percent(activity)} busy: it hangs, or does something else; look at it"
            slice = replace(slice, ending=None)
        return self._wasteful(slice, VerdictKind.IDLE_SLICE, message, since, Since.ESTIMATED, Part.HEARTBEATS)

    def _by_duty(self, slice: Slice) -> Verdict:
        context, now = self.context, self.context.now
        activity, beat = self._activity(slice), self._heartbeat(slice)
        end, age = context.record.window.end, now - slice.ready
        if self._at_work(slice, activity):
            return self._tell(slice, VerdictKind.IN_USE, _worked(activity))
        if age < self._patience(slice):
            message = f"READY for {length(age)}; judged after {length(self._patience(slice))}"
            return self._tell(slice, VerdictKind.TOO_NEW, f"{message}, as it serves" if _serves(slice) else message)
        recent = max(slice.ready, end - self._patience(slice))
        why = self._blind(slice, activity, recent, end)
        if why and beat is not None and beat.own and self._fresh(beat):
            message = f"run {slice.labels[RUN]}, last heartbeat {moment(beat.time)}; {why}"
            return self._tell(slice, VerdictKind.IN_USE, message)
        if why:
            return self._tell(slice, VerdictKind.UNKNOWN_TELEMETRY, f"READY, {why}")
        return self._idle(slice, activity, recent, beat)

    def _idle(self, slice: Slice, activity: Activity, recent: datetime.datetime, beat: Heartbeat | None) -> Verdict:
        window = self.context.record.window
        quiet = max(slice.ready, window.start, activity.last_busy or window.start)
        confidence = Since.AT_LEAST if quiet == window.start else Since.ESTIMATED
        if activity.coverage(quiet, window.end) < self.context.terms.coverage:
            quiet, confidence = recent, Since.AT_LEAST
        seen = round(activity.coverage(quiet, window.end) * 100)
        peak = (
            f"at most {activity.peak:.1f} %"
            if activity.last_busy is None
            else f"{self.context.terms.duty_cycle} % or less"
        )
        message = f"READY, duty cycle {peak} since {moment(quiet)}, {seen} % seen"
        if beat is not None and beat.own and self._fresh(beat):
            message += f", though run {slice.labels[RUN]} writes heartbeats"
        return self._wasteful(slice, VerdictKind.IDLE_SLICE, message, quiet, confidence, Metric.DUTY_CYCLE)

    def _wasteful(
        self,
        slice: Slice,
        kind: VerdictKind,
        message: str,
        since: datetime.datetime,
        confidence: Since,
        *needs: Part | Metric,
    ) -> Verdict:
        ending = remedy(slice.ending, slice.ending_text, slice.cost) if slice.ending else None
        found = self._tell(
            slice,
            kind,
            priced(message, slice.why),
            waste=slice.cost,
            since=since,
            confidence=confidence,
            remedy=ending,
        )
        return if_seen(self.context, found, *slice.needs, *needs)

    def _tell(self, slice: Slice, kind: VerdictKind, message: str, **money: Any) -> Verdict:
        """A verdict with the labels of the slice: a group has none of its own."""
        found = tell(self.context, slice.subject, kind, message, **money)
        return replace(found, labels=tuple(sorted(slice.labels.items())))

    def _blind(self, slice: Slice, activity: Activity, start: datetime.datetime, end: datetime.datetime) -> str:
        """Why the duty cycles say nothing; empty where they do."""
        if not self.context.record.seen(Metric.DUTY_CYCLE):
            failed = self.context.record.failed(Metric.DUTY_CYCLE)
            return f"duty cycles {'could not be read whole' if failed else 'were not asked for'}"
        if not activity.workers:
            return "no duty cycle in the window"
        if slice.workers is not None and activity.workers < slice.workers:
            return f"duty cycles of {activity.workers} of {slice.workers} workers only"
        coverage = activity.coverage(start, end)
        if coverage < self.context.terms.coverage:
            return f"{round(coverage * 100)} % of its duty cycles present in the last {length(end - start)}"
        return ""

    def _activity(self, slice: Slice) -> Activity:
        workers = self.duty.workers(slice.subject.location, slice.hosts)
        return self.duty.activity(workers, self.context.terms.duty_cycle)

    def _at_work(self, slice: Slice, activity: Activity) -> bool:
        """Whether a chip worked lately in the window, and after the slice was made."""
        busy = activity.last_busy
        return busy is not None and busy > max(slice.ready, self.context.record.window.end - self._patience(slice))

    def _patience(self, slice: Slice) -> datetime.timedelta:
        """For so long it must have done nothing. At night nobody asks, and yet by day it has to be there."""
        return self.context.record.window.length if _serves(slice) else self.context.terms.slice_idle

    def _heartbeat(self, slice: Slice) -> Heartbeat | None:
        return self.heartbeats.of(slice.labels)

    def _fresh(self, beat: Heartbeat) -> bool:
        return self.context.now - beat.time <= self.context.terms.heartbeat


def _serves(slice: Slice) -> bool:
    return slice.labels.get(ROLE) == SERVING


def _percent(activity: Activity) -> str:
    return f"up to {activity.peak:.0f} %"


def _worked(activity: Activity) -> str:
    last_busy = activity.last_busy
    return f"at work, duty cycle {_percent(activity)}" + (f", last {moment(last_busy)}" if last_busy else "")
