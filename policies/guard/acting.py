"""The little that the guard does by itself: lower throughput that is not used, follow a schedule, end what its owner's
`ttl` has ended. Only things of its own stack, and nothing in a world that was seen in part.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, final

from policies.audit.links import relative
from policies.audit.model import Audit, RemedyKind
from policies.audit.pricing import Pricing
from policies.audit.reading import said
from policies.audit.record import Part, Record
from policies.audit.remedies.applying import Hands, Result, apply_plan
from policies.audit.remedies.model import RemedyPlan
from policies.audit.remedies.planning import Choice, plan_remedies
from policies.audit.schedule import Schedule, read_schedule
from policies.audit.scheduling import scheduled
from policies.errors import InputError
from policies.prices.book import PriceBook

SCHEDULE_LABEL: Final = "throughput-schedule"
"""Label of a volume whose throughput goes by the clock; infra/components/model_volume.py writes it."""


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
    schedules, doubts = _schedules(record, stack)
    by_clock = scheduled(audit, record, schedules, Pricing(record=record, book=book, as_of=as_of))
    safe = plan_remedies(_without_clock(by_clock), record, Choice(stack=stack, safe_only=True))
    clocked = plan_remedies(_clock_only(by_clock), record, Choice(stack=stack))
    return Intent(plans=(safe, clocked), doubts=doubts)


def act(intent: Intent, hands: Hands) -> Iterator[Result]:
    """Do it, step by step."""
    for plan in intent.plans:
        yield from apply_plan(plan, hands, lambda measure, step: True)


def _schedules(record: Record, stack: str) -> tuple[dict[str, Schedule], tuple[str, ...]]:
    """The schedules of the volumes of a stack by their names, and what is wrong with those that cannot be read."""
    found: dict[str, Schedule] = {}
    doubts: list[str] = []
    for disk in record.items(Part.DISKS):
        label = said(disk, "labels", SCHEDULE_LABEL)
        if not label or said(disk, "labels", "env") != stack:
            continue
        try:
            found[said(disk, "name")] = read_schedule(label)
        except InputError as error:
            doubts.append(f"{relative(said(disk, 'selfLink'))}: label {SCHEDULE_LABEL}: {error}")
    return found, tuple(doubts)


def _clock_only(audit: Audit) -> Audit:
    return replace(audit, verdicts=tuple(each for each in audit.verdicts if _by_clock(each.remedy)))


def _without_clock(audit: Audit) -> Audit:
    return replace(audit, verdicts=tuple(each for each in audit.verdicts if not _by_clock(each.remedy)))


def _by_clock(remedy: object) -> bool:
    return getattr(remedy, "kind", None) is RemedyKind.SCHEDULE_THROUGHPUT
