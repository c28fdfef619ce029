"""The life of a server, walked through by what happens to it."""

from __future__ import annotations

import itertools

import pytest

from inference.exit_codes import ExitCode
from inference.http.lifecycle import Action, Event, Lifecycle, Phase

LOADED = (Event.WEIGHTS, Event.COMPILE, Event.READY)


def walk(*events: Event) -> tuple[Lifecycle, list[Action]]:
    """Where a server is behind `events`, and what it was told to do at each."""
    life, actions = Lifecycle(), []
    for event in events:
        life, action = life.after(event)
        actions.append(action)
    return life, actions


def test_a_start() -> None:
    phases = [walk(*LOADED[:count])[0].phase for count in range(4)]
    assert phases == [Phase.STARTING, Phase.LOADING, Phase.COMPILING, Phase.READY]
    assert [walk(*LOADED[:count])[0].ready for count in range(4)] == [False, False, False, True]
    assert [walk(*LOADED[:count])[0].started for count in range(4)] == [False, False, False, True]
    assert walk(*LOADED)[1] == [Action.NOTHING] * 3


@pytest.mark.parametrize(
    ("events", "action", "phase", "code"),
    [
        # Nobody waits for an answer: whatever it is at, it leaves.
        ([Event.SIGNAL], Action.LEAVE, Phase.STOPPED, ExitCode.FINE),
        ([*LOADED[:1], Event.SIGNAL], Action.LEAVE, Phase.STOPPED, ExitCode.FINE),
        ([*LOADED[:2], Event.SIGNAL], Action.LEAVE, Phase.STOPPED, ExitCode.FINE),
        ([Event.REFUSED], Action.LEAVE, Phase.STOPPED, ExitCode.BAD_INPUT),
        ([*LOADED[:1], Event.REFUSED], Action.LEAVE, Phase.STOPPED, ExitCode.BAD_INPUT),
        ([*LOADED[:1], Event.CLOUD_FAILED], Action.LEAVE, Phase.STOPPED, ExitCode.CLOUD_FAILED),
        ([*LOADED[:2], Event.FAILED], Action.LEAVE, Phase.STOPPED, ExitCode.BUG),
        # Answers go on: until they are over, the grace is, or a second signal comes.
        ([*LOADED, Event.SIGNAL], Action.DRAIN, Phase.DRAINING, ExitCode.FINE),
        ([*LOADED, Event.SIGNAL, Event.IDLE], Action.LEAVE, Phase.STOPPED, ExitCode.FINE),
        ([*LOADED, Event.SIGNAL, Event.GRACE_OVER], Action.CUT_OFF, Phase.STOPPED, ExitCode.CUT_OFF),
        ([*LOADED, Event.SIGNAL, Event.SIGNAL], Action.CUT_OFF, Phase.STOPPED, ExitCode.CUT_OFF),
        ([*LOADED, Event.FAILED], Action.CUT_OFF, Phase.STOPPED, ExitCode.BUG),
        ([*LOADED, Event.SIGNAL, Event.FAILED], Action.CUT_OFF, Phase.STOPPED, ExitCode.BUG),
        # Whoever asks once more is not kept.
        ([Event.SIGNAL, Event.SIGNAL], Action.HURRY, Phase.STOPPED, ExitCode.FINE),
        ([*LOADED, Event.SIGNAL, Event.IDLE, Event.SIGNAL], Action.HURRY, Phase.STOPPED, ExitCode.FINE),
        ([*LOADED, *[Event.SIGNAL] * 3], Action.HURRY, Phase.STOPPED, ExitCode.CUT_OFF),
        # What makes no sense changes nothing.
        ([*LOADED, Event.IDLE], Action.NOTHING, Phase.READY, ExitCode.FINE),
        ([*LOADED, Event.SIGNAL, Event.READY], Action.NOTHING, Phase.DRAINING, ExitCode.FINE),
        ([Event.SIGNAL, Event.REFUSED], Action.NOTHING, Phase.STOPPED, ExitCode.FINE),
        ([*LOADED, Event.SIGNAL, Event.SIGNAL, Event.IDLE], Action.NOTHING, Phase.STOPPED, ExitCode.CUT_OFF),
    ],
)
def test_what_is_done_and_how_it_ends(events: list[Event], action: Action, phase: Phase, code: ExitCode) -> None:
    life, actions = walk(*events)
    assert (actions[-1], life.phase, life.exit_code) == (action, phase, code)


def test_nothing_leads_back() -> None:
    order = list(Phase)
    for events in itertools.product(Event, repeat=4):
        life = Lifecycle()
        for event in (*LOADED[: len(events) % 4], *events):
            before = order.index(life.phase)
            life, _ = life.after(event)
            assert order.index(life.phase) >= before


def test_each_end_is_told_once() -> None:
    for events in itertools.product(Event, repeat=3):
        _, actions = walk(*LOADED, *events)
        assert sum(action in (Action.LEAVE, Action.CUT_OFF) for action in actions) <= 1


def test_a_startup_probe_stays_content_while_draining() -> None:
    assert walk(*LOADED, Event.SIGNAL)[0].started
