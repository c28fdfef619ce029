"""A thousand calls in no order: every answer is the one it is alone, and the invariants hold behind every call."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from inference.engine.abstract_engine import Choice, SlotError, Snapshot
from inference.engine.engine import Engine
from inference.engine.sampling_parameters import SamplingParameters
from inference.engine.slots import Phase
from tests.inference.engine.driving import SHORT_GRID, SLOTS, answer, prompt_of
from tests.inference.engine.invariants import assert_sound

CALLS = 1000
LONGEST_ANSWER = 30
REQUESTS = [
    (prompt_of(length, key), parameters)
    for key, (length, parameters) in enumerate(
        [
            (1, SamplingParameters(temperature=0, logprobs=2)),
            (40, SamplingParameters(seed=3, logprobs=0)),
            (SHORT_GRID, SamplingParameters(seed=4, top_k=9, top_p=0.9)),
            (SHORT_GRID + 1, SamplingParameters(temperature=0.5, repetition_penalty=1.4, logit_bias={2: 3.0})),
            (2 * SHORT_GRID, SamplingParameters(temperature=0, frequency_penalty=1, logprobs=5)),
            (3 * SHORT_GRID - 1, SamplingParameters(seed=7, min_p=0.1, presence_penalty=1)),
        ]
    )
]


@dataclass
class Driver:
    """Calls that a scheduler may make, and some that it may not, with what each slot has answered so far."""

    engine: Engine
    alone: list[list[Choice]]
    chance: random.Random
    answers: dict[int, tuple[int, list[Choice]]] = field(default_factory=dict)
    kept: dict[tuple[int, int], Snapshot] = field(default_factory=dict)
    """By request and position."""
    compared: int = 0

    def in_phase(self, *phases: Phase) -> list[int]:
        return [slot.number for slot in self.engine.slots if slot.phase in phases]

    def admit(self) -> None:
        free = self.in_phase(Phase.FREE)
        if not free:
            return
        slot, request = self.chance.choice(free), self.chance.randrange(len(REQUESTS))
        prompt, parameters = REQUESTS[request]
        usable = [kept for (of, position), kept in self.kept.items() if of == request and position < len(prompt)]
        self.engine.admit(slot, parameters, prompt=prompt, start=self.chance.choice([None, *usable]))
        self.answers[slot] = (request, [])

    def prefill(self) -> None:
        for slot in self.in_phase(Phase.READING)[:2]:
            choice = self.engine.prefill(slot).choice
            if choice is not None:
                self.heard(slot, choice)

    def decode(self) -> None:
        ready = [slot for slot in self.in_phase(Phase.ANSWERING) if len(self.answers[slot][1]) < LONGEST_ANSWER]
        meant = self.chance.sample(ready, self.chance.randint(0, len(ready)))
        for slot, choice in self.engine.decode(meant).items():
            self.heard(slot, choice)

    def snapshot(self) -> None:
        for slot in self.in_phase(Phase.READING):
            position = self.engine.slots[slot].position
            if position and position % SHORT_GRID == 0:
                request = self.answers[slot][0]
                snapshot = self.engine.snapshot(slot)
                known = self.kept.setdefault((request, position), snapshot)
                assert known.digest == snapshot.digest
                return

    def release(self) -> None:
        busy = self.in_phase(Phase.READING, Phase.ANSWERING)
        if busy and self.chance.random() < 0.5:
            slot = self.chance.choice(busy)
            self.engine.release(slot)
            del self.answers[slot]

    def misuse(self) -> None:
        slot = self.chance.randint(1, SLOTS)
        phase = self.engine.slots[slot].phase
        wrong: dict[Phase, Callable[[], object]] = {
            Phase.FREE: lambda: self.engine.release(slot),
            Phase.READING: lambda: self.engine.decode([slot]),
            Phase.ANSWERING: lambda: self.engine.prefill(slot),
        }
        with pytest.raises(SlotError):
            wrong[phase]()

    def heard(self, slot: int, choice: Choice) -> None:
        request, so_far = self.answers[slot]
        assert choice == self.alone[request][len(so_far)]
        so_far.append(choice)
        self.compared += 1


def test_a_thousand_calls(engine: Engine) -> None:
    alone = [answer(engine, prompt, parameters, tokens=LONGEST_ANSWER) for prompt, parameters in REQUESTS]
    driver = Driver(engine=engine, alone=alone, chance=random.Random(0))
    calls = [driver.admit, driver.prefill, driver.decode, driver.decode, driver.snapshot, driver.release, driver.misuse]
    for _ in range(CALLS):
        driver.chance.choice(calls)()
        assert_sound(engine)
    assert driver.compared > CALLS / 2
    assert len(driver.kept) == 4  # every place on the grid in front of the end of a prompt
