"""The little that the guard does by itself: lower throughput that is not used, follow a schedule, end what its owner's
`ttl` has ended. Only things of its own stack, and nothing in a world that was seen in part.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import final

from policies.audit.links import last, relative
from policies.audit.model import Audit
from policies.audit.pricing import Pricing
from policies.audit.reading import said
from policies.audit.record import Part, Record
from policies.audit.remedies.applying import Hands, Result, apply_plan
from policies.audit.remedies.model import RemedyPlan
from policies.audit.remedies.planning import Choice, plan_remedies
from policies.audit.schedule import Schedule, read_schedule
from policies.audit.scheduling import scheduled
from policies.errors import InputError
from policies.guard.labels import SCHEDULE_LABEL
from policies.prices.book import PriceBook


@final
@dataclass(frozen=True, kw_only=True)
class Intent:
    """What the guard would do."""

    plans: tuple[RemedyPlan, ...]
    """By the audit, and by the clock."""
    doubts: tuple[str, ...] = ()
    """Schedules that nobody can read."""

    @property
    def texts(self) -> Iterator[str]:
        """Every step in words."""
        for plan in self.plans:
            for measure in plan.measures:
                for step in measure.steps:
                    yield step.text

    @property
    def refused(self) -> tuple[tuple[str, str], ...]:
        """What is left alone, and why."""
        return tuple((each.resource, each.why) for plan in self.plans for each in plan.refused)


def intend(audit: Audit, record: Record, stack: str, book: PriceBook, as_of: datetime.date) -> Intent:
    """What would be done of an audit for the stack `stack`. Pure."""
    schedules, doubts = _schedules(audit, record, stack)
    by_clock = scheduled(audit, record, schedules, Pricing(record=record, book=book, as_of=as_of))
    safe = plan_remedies(_of(by_clock, schedules, wanted=False), record, Choice(stack=stack, safe_only=True))
    choice = Choice(stack=stack, scheduled=tuple(map(last, schedules)))
    clocked = plan_remedies(_of(by_clock, schedules, wanted=True), record, choice)
    return Intent(plans=(safe, clocked), doubts=doubts)


def act(intent: Intent, hands: Hands) -> Iterator[Result]:
    """Do it, step by step."""
    for plan in intent.plans:
        yield from apply_plan(plan, hands, lambda measure, step: True)


def _schedules(audit: Audit, record: Record, stack: str) -> tuple[dict[str, Schedule], tuple[str, ...]]:
    """The schedules of the volumes of a stack by their links, and what is wrong with those that cannot be kept."""
    throughput = {verdict.resource for verdict in audit.verdicts if verdict.usage.provisioned_mibps is not None}
    found: dict[str, Schedule] = {}
    doubts: list[str] = []
    for disk in record.items(Part.DISKS):
        link, label = relative(said(disk, "selfLink")), said(disk, "labels", SCHEDULE_LABEL)
        if not label or said(disk, "labels", "env") != stack:
            continue
        try:
            schedule = read_schedule(label)
        except InputError as error:
            doubts.append(f"{link}: label {SCHEDULE_LABEL}: {error}")
            continue
        if link in throughput:
            found[link] = schedule
        else:
            doubts.append(f"{link}: label {SCHEDULE_LABEL}: it has no throughput to set")
    return found, tuple(doubts)


def _of(audit: Audit, schedules: Mapping[str, Schedule], *, wanted: bool) -> Audit:
    """The audit with the verdicts on volumes that have a schedule, or with the others."""
    return replace(audit, verdicts=tuple(each for each in audit.verdicts if (each.resource in schedules) is wanted))
