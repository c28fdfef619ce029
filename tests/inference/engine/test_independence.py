"""What else is in the batch never changes an answer: the same bits, log-probabilities included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import pytest

from inference.engine.abstract_engine import Choice
from inference.engine.engine import Engine
from inference.engine.sampling_parameters import SamplingParameters
from tests.inference.engine.driving import GREEDY, SHORT_GRID, SLOTS, answer, prompt_of, read, true_engine

TOKENS = 64
PROMPTS = tuple(prompt_of(length, key) for key, length in enumerate((1, 2, 7, 13, 21, 32, 39, 40)))
ASKING_ALL = SamplingParameters(
    temperature=1.3,
    top_k=7,
    top_p=0.8,
    min_p=0.05,
    presence_penalty=0.5,
    frequency_penalty=0.3,
    repetition_penalty=1.2,
    logit_bias={3: 2.0},
    seed=5,
    logprobs=20,
)
"""A neighbour for whom every step of the choice is made."""


KINDS = {"greedy": GREEDY, "all": ASKING_ALL, "drawn": SamplingParameters(temperature=0.9, seed=11, logprobs=1)}


@cache
def alone(number: int, kind: str = "greedy") -> tuple[Choice, ...]:
    """The answer to a prompt, in slot 1 with nobody beside it: asked for before a test takes the slot."""
    return tuple(answer(true_engine(), PROMPTS[number], KINDS[kind], tokens=TOKENS))


def together(
    engine: Engine, prompts: Sequence[int], starts: Sequence[int], parameters: Sequence[SamplingParameters]
) -> list[list[Choice]]:
    """The answers of slots 1, 2, ... to these prompts, each admitted at its step."""
    answers: list[list[Choice]] = [[] for _ in prompts]
    for now in range(max(starts) + TOKENS):
        for place, number in enumerate(prompts):
            if starts[place] == now:
                engine.admit(place + 1, parameters[place], prompt=PROMPTS[number], start=None)
                answers[place].append(read(engine, place + 1))
        going = [place + 1 for place, got in enumerate(answers) if 0 < len(got) < TOKENS]
        for slot, choice in engine.decode(going).items():
            answers[slot - 1].append(choice)
    for place in range(len(prompts)):
        engine.release(place + 1)
    return answers


@pytest.mark.parametrize("starts", [[0] * SLOTS, list(range(SLOTS)), [3, 0, 6, 1, 7, 2, 5, 4]])
def test_together_and_staggered(engine: Engine, starts: list[int]) -> None:
    answers = together(engine, range(SLOTS), starts, [GREEDY] * SLOTS)
    for number, got in enumerate(answers):
        assert tuple(got) == alone(number)


def test_eight_times_the_same(engine: Engine) -> None:
    assert together(engine, [0] * SLOTS, [0] * SLOTS, [GREEDY] * SLOTS) == [list(alone(0))] * SLOTS


@pytest.mark.parametrize("slot", [2, SLOTS - 1, SLOTS])
def test_in_another_slot(engine: Engine, slot: int) -> None:
    assert tuple(answer(engine, PROMPTS[5], slot=slot, tokens=TOKENS)) == alone(5)


def test_beside_one_that_is_cancelled(engine: Engine) -> None:
    wanted = alone(3)
    engine.admit(1, GREEDY, prompt=PROMPTS[3], start=None)
    engine.admit(2, ASKING_ALL, prompt=PROMPTS[4], start=None)
    got = [read(engine, 1)]
    read(engine, 2)
    for now in range(TOKENS - 1):
        if now == 5:
            engine.release(2)
        if now == 9:
            engine.admit(2, GREEDY, prompt=prompt_of(150, 9), start=None)
        if now in (10, 12):
            engine.prefill(2)
        got.append(engine.decode([1] if now >= 5 else [1, 2])[1])
    assert tuple(got) == wanted


def test_beside_one_that_asks_for_everything(engine: Engine) -> None:
    answers = together(engine, [2, 6, 2], [0, 1, 0], list(KINDS.values()))
    assert tuple(answers[0]) == alone(2)
    assert tuple(answers[1]) == alone(6, "all")
    assert tuple(answers[2]) == alone(2, "drawn")


def test_without_log_probabilities_the_tokens_are_the_same(engine: Engine) -> None:
    plain = answer(engine, PROMPTS[7], SamplingParameters(temperature=0), tokens=TOKENS)
    assert [choice.token for choice in plain] == [choice.token for choice in alone(7)]
    assert {(choice.logprob, choice.top) for choice in plain} == {(None, ())}


@pytest.mark.parametrize("kept_at", [1, 2, 3])
def test_from_a_prefix_that_was_kept(engine: Engine, kept_at: int) -> None:
    prompt = prompt_of(3 * SHORT_GRID + 17, 3)
    engine.admit(4, GREEDY, prompt=prompt, start=None)
    for _ in range(kept_at):
        engine.prefill(4)
    kept = engine.snapshot(4)
    engine.release(4)
    whole = answer(engine, prompt, tokens=TOKENS)
    assert answer(engine, prompt, slot=6, tokens=TOKENS, start=kept) == whole


def test_slots_that_are_left_out_of_a_call_wait(engine: Engine) -> None:
    """The order in which slots are named, and how often each is, change nothing."""
    picks: list[Callable[[int], list[int]]] = [
        lambda now: [3, 1, 2],
        lambda now: [1 + now % 3],
        lambda now: [2, 3] if now % 2 else [1],
    ]
    wanted = {slot: alone(slot) for slot in (1, 2, 3)}
    for pick in picks:
        answers: dict[int, list[Choice]] = {slot: [] for slot in wanted}
        for slot in answers:
            engine.admit(slot, GREEDY, prompt=PROMPTS[slot], start=None)
            answers[slot].append(read(engine, slot))
        for now in range(30):
            for slot, choice in engine.decode(pick(now)).items():
                answers[slot].append(choice)
        for slot, got in answers.items():
            assert tuple(got) == wanted[slot][: len(got)]
            engine.release(slot)
