"""Doing a remedy plan, one step at a time: look, ask, act, look again. Safe to end anywhere and to start again.

A step whose end is reached has nothing to do; a step whose conditions no longer hold is refused. So a run that was
killed between any two calls, or whose answer was lost, is finished by the next one, which does nothing twice.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, final

from policies.audit.record import Item
from policies.audit.remedies.model import Condition, Measure, RemedyPlan, Step, unmet


class Outcome(enum.Enum):
    """How a step ended."""

    DONE = "done"
    ALREADY = "already so"
    DECLINED = "declined"
    CHANGED = "refused: the world has changed"
    FAILED = "failed"
    SKIPPED = "skipped: an earlier step of the measure did not end well"

    @property
    def good(self) -> bool:
        """Whether the world is as the step wants it."""
        return self in (Outcome.DONE, Outcome.ALREADY)


class HandsError(RuntimeError):
    """A call that failed: what was asked, what came back."""


class Hands(Protocol):
    """What looks at the world and changes it."""

    def look(self, resource: str) -> Item | None:
        """The resource as it is now, in REST JSON; None where there is none. Raises HandsError."""

    def act(self, step: Step) -> None:
        """Make the call of a step and wait until the cloud says that it is done. Raises HandsError."""


@final
@dataclass(frozen=True, kw_only=True)
class Result:
    """How one step ended."""

    measure: Measure
    step: Step
    outcome: Outcome
    why: str = ""
    """For everything but DONE."""


def apply_plan(plan: RemedyPlan, hands: Hands, ask: Callable[[Measure, Step], bool]) -> Iterator[Result]:
    """Do the steps of a plan, and give the result of each as it ends. `ask` says whether a step is wanted."""
    for measure in plan.measures:
        ended: Outcome | None = None
        for step in measure.steps:
            if ended is not None:
                yield Result(measure=measure, step=step, outcome=Outcome.SKIPPED, why=ended.value)
                continue
            result = _apply(measure, step, hands, ask)
            ended = None if result.outcome.good else result.outcome
            yield result


def _apply(measure: Measure, step: Step, hands: Hands, ask: Callable[[Measure, Step], bool]) -> Result:
    try:
        outcome, why = _attempt(measure, step, hands, ask)
    except HandsError as error:
        outcome, why = Outcome.FAILED, str(error)
    return Result(measure=measure, step=step, outcome=outcome, why=why)


def _attempt(measure: Measure, step: Step, hands: Hands, ask: Callable[[Measure, Step], bool]) -> tuple[Outcome, str]:
    if not _doubt(step.done, hands):
        return Outcome.ALREADY, step.done.resource
    if changed := _first_doubt(step.requires, hands):
        return _changed(step, changed, hands)
    if not ask(measure, step):
        return Outcome.DECLINED, ""
    # The answer may have taken minutes.
    if changed := _first_doubt(step.requires, hands):
        return _changed(step, changed, hands)
    try:
        hands.act(step)
    except HandsError:
        # The call may have been heard though its answer was lost.
        if _doubt(step.done, hands):
            raise
    left = _doubt(step.done, hands)
    return (Outcome.FAILED, f"the call ended well, and yet {left}") if left else (Outcome.DONE, "")


def _changed(step: Step, why: str, hands: Hands) -> tuple[Outcome, str]:
    """Refused; but what another run has begun may have ended between two looks."""
    return (Outcome.CHANGED, why) if _doubt(step.done, hands) else (Outcome.ALREADY, step.done.resource)


def _first_doubt(conditions: tuple[Condition, ...], hands: Hands) -> str:
    return next((why for condition in conditions if (why := _doubt(condition, hands))), "")


def _doubt(condition: Condition, hands: Hands) -> str:
    return unmet(condition, hands.look(condition.resource))
