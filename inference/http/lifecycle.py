"""The life of a server, as a pure state machine: what it is in, what happened, and what is to be done about it.

    starting -> loading -> compiling -> ready -> draining -> stopped

A signal before `ready` ends the process at once: nobody waits for an answer. Behind it the answers that have begun go
on until they are over or the grace is; a second signal does not wait. Nothing leads back, and what makes no sense in a
phase changes nothing: a signal and a load that fails may come in any order.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, final

from inference.exit_codes import ExitCode


@final
class Phase(enum.Enum):
    """What a server is in; the value is what `/health` and the metrics call it."""

    STARTING = "starting"
    """The process runs, and answers probes."""
    LOADING = "loading"
    """Weights are looked for and read."""
    COMPILING = "compiling"
    """The programs of the device are made, and one token by them."""
    READY = "ready"
    """Requests are answered."""
    DRAINING = "draining"
    """No more requests are taken; the answers that have begun go on."""
    STOPPED = "stopped"
    """What is left is told that it is cut off, and the process ends."""


@final
class Event(enum.Enum):
    """What happens to a server."""

    WEIGHTS = enum.auto()
    """The engine is about to be made: weights are looked for."""
    COMPILE = enum.auto()
    """The weights are on the device."""
    READY = enum.auto()
    """Every program is compiled, and a token was made."""
    REFUSED = enum.auto()
    """The weights are wrong, or what was asked does not fit them."""
    CLOUD_FAILED = enum.auto()
    """The bucket cannot be read."""
    FAILED = enum.auto()
    """A bug or the machine: the engine cannot be made, or it died."""
    SIGNAL = enum.auto()
    """SIGTERM, SIGINT or SIGHUP."""
    IDLE = enum.auto()
    """No answer is under way."""
    GRACE_OVER = enum.auto()
    """The time to drain is over."""


@final
class Action(enum.Enum):
    """What is to be done now."""

    NOTHING = enum.auto()
    """Go on."""
    DRAIN = enum.auto()
    """Take no more requests; tell when none is under way, and when the grace is over."""
    CUT_OFF = enum.auto()
    """End every answer with an error event, then leave."""
    LEAVE = enum.auto()
    """End the process with the exit code, when clients have taken what was sent to them."""
    HURRY = enum.auto()
    """Wait for nothing any more."""


@final
@dataclass(frozen=True, kw_only=True)
class Lifecycle:
    """Where a server is in its life."""

    phase: Phase = Phase.STARTING
    """What it is in."""
    exit_code: ExitCode = ExitCode.FINE
    """With which it ends, as far as is known."""

    def after(self, event: Event) -> tuple[Lifecycle, Action]:
        """Where it is behind `event`, and what is to be done."""
        if self.phase is Phase.STOPPED and event is Event.SIGNAL:
            return self, Action.HURRY
        step = _STEPS.get((self.phase, event))
        if step is None:
            return self, Action.NOTHING
        phase, code, action = step
        return replace(self, phase=phase, exit_code=code), action

    @property
    def ready(self) -> bool:
        """Whether requests are answered."""
        return self.phase is Phase.READY

    @property
    def started(self) -> bool:
        """Whether it was ready once, or will never be again: a startup probe has seen enough."""
        return self.phase in (Phase.READY, Phase.DRAINING)


_Step = tuple[Phase, ExitCode, Action]
_ENDS: Final[Mapping[Event, ExitCode]] = MappingProxyType(
    {
        Event.SIGNAL: ExitCode.FINE,
        Event.REFUSED: ExitCode.BAD_INPUT,
        Event.CLOUD_FAILED: ExitCode.CLOUD_FAILED,
        Event.FAILED: ExitCode.BUG,
    }
)
"""What ends a server that nobody waits for."""
_STEPS: Final[Mapping[tuple[Phase, Event], _Step]] = MappingProxyType(
    {
        **{
            (phase, event): (Phase.STOPPED, code, Action.LEAVE)
            for phase in (Phase.STARTING, Phase.LOADING, Phase.COMPILING)
            for event, code in _ENDS.items()
        },
        (Phase.STARTING, Event.WEIGHTS): (Phase.LOADING, ExitCode.FINE, Action.NOTHING),
        (Phase.LOADING, Event.COMPILE): (Phase.COMPILING, ExitCode.FINE, Action.NOTHING),
        (Phase.COMPILING, Event.READY): (Phase.READY, ExitCode.FINE, Action.NOTHING),
        (Phase.READY, Event.SIGNAL): (Phase.DRAINING, ExitCode.FINE, Action.DRAIN),
        (Phase.READY, Event.FAILED): (Phase.STOPPED, ExitCode.BUG, Action.CUT_OFF),
        (Phase.DRAINING, Event.IDLE): (Phase.STOPPED, ExitCode.FINE, Action.LEAVE),
        (Phase.DRAINING, Event.SIGNAL): (Phase.STOPPED, ExitCode.CUT_OFF, Action.CUT_OFF),
        (Phase.DRAINING, Event.GRACE_OVER): (Phase.STOPPED, ExitCode.CUT_OFF, Action.CUT_OFF),
        (Phase.DRAINING, Event.FAILED): (Phase.STOPPED, ExitCode.BUG, Action.CUT_OFF),
    }
)
