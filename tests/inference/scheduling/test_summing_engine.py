"""The engine of sums: its tokens are those on paper, and it refuses whatever the states of a slot do not allow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from inference.engine.abstract_engine import Choice, SlotError
from inference.engine.sampling_parameters import SamplingParameters
from inference.engine.slots import FaultySlotsError
from inference.testing import Call, EngineFaultError, Fault, SummingEngine, answer, summed

GREEDY = SamplingParameters(temperature=0)


def begun(engine: SummingEngine, slot: int, prompt: list[int], parameters: SamplingParameters = GREEDY) -> list[int]:
    """Admit and read a prompt; the first token."""
    engine.admit(slot, parameters, prompt=prompt, start=None)
    while (choice := engine.prefill(slot).choice) is None:
        pass
    return [choice.token]


@pytest.mark.parametrize(
    ("parameters", "tokens"),
    [
        # 0 -> 6 -> 6009 -> 6015017, which is 41; 1001 x 6015017 + 42 less the prime twice is 1726064765, which is 125.
        (GREEDY, [41, 125, 103]),
        # 41 + 4 = 45; with 45 in place of 41 read, 1726064769, which is 129, + 4.
        (SamplingParameters(seed=3, draw=1), [45, 133, 23]),
        # Token 90 is 49 places behind 41, so that it lacks 49 ln 2 = 33.96.
        (SamplingParameters(temperature=0, logit_bias={90: 34.0}), [90]),
        (SamplingParameters(temperature=0, logit_bias={90: 33.9, 91: 33.9}), [41]),
    ],
)
def test_the_tokens_are_those_on_paper(parameters: SamplingParameters, tokens: list[int]) -> None:
    engine = SummingEngine()
    chosen = begun(engine, 2, [5, 2, 7], parameters)
    chosen += [engine.decode([2])[2].token for _ in tokens[1:]]
    assert chosen == tokens == answer([5, 2, 7], len(tokens), parameters)


def test_every_token_of_the_prompt_and_its_place_shows() -> None:
    prompt = list(range(40))
    variants = [[*prompt[:i], prompt[i] + 1, *prompt[i + 1 :]] for i in range(40)]
    variants += [prompt[:i] + prompt[i + 1 :] for i in range(40)] + [prompt[1::-1] + prompt[2:], [*prompt, 0]]
    answers = {tuple(answer(variant, 4, GREEDY)) for variant in [prompt, *variants]}
    assert len(answers) == 1 + len(variants)


def test_pieces_end_on_the_grid_and_rows_do_not_meet() -> None:
    engine = SummingEngine(grid=4)
    for slot in (1, 3):
        assert engine.admit(slot, GREEDY, prompt=[slot] * 9, start=None) == 0
    places = [engine.prefill(slot).position for slot in (1, 3, 1, 3, 1, 3)]
    assert places == [4, 4, 8, 8, 9, 9]
    assert engine.read_tokens == 18
    tokens = [engine.decode([3, 1]) for _ in range(3)]
    for slot in (1, 3):
        assert [step[slot].token for step in tokens] == answer([slot] * 9, 4, GREEDY)[1:]


def test_a_snapshot_goes_on_as_if_all_had_been_read() -> None:
    engine = SummingEngine(grid=4)
    prompt = list(range(11))
    engine.admit(1, GREEDY, prompt=prompt, start=None)
    engine.prefill(1)
    engine.prefill(1)
    kept = engine.snapshot(1)
    assert (kept.position, kept.arrays, kept.nbytes) == (8, (summed(range(8)),), 1024)
    assert engine.admit(2, GREEDY, prompt=prompt, start=kept) == 8
    choice = engine.prefill(2).choice
    assert choice is not None
    assert choice.token == answer(prompt, 1, GREEDY)[0]
    assert engine.read_tokens == 8 + 3

    for wrong, words in [
        (replace(kept, position=4), "do not match its digest"),
        (replace(kept, arrays=(7,)), "do not match its digest"),
    ]:
        with pytest.raises(ValueError, match=words):
            engine.admit(3, GREEDY, prompt=prompt, start=wrong)
    with pytest.raises(ValueError, match="position 8 is no place on the grid before token 7"):
        engine.admit(3, GREEDY, prompt=prompt[:8], start=kept)
    assert engine.free_slots() == [3, 4]


def test_scores_are_those_of_each_token_behind_the_ones_before() -> None:
    engine = SummingEngine(grid=2, possible=5)
    engine.admit(1, SamplingParameters(logprobs=2), prompt=[5, 8, 7], start=None)
    # Behind 5 the state is 6, behind 8 it is 6015, which is 127: 8 is 2 places behind 6; 7 is 136 places behind 127.
    assert engine.prefill(1, scored=True).scores == (
        Choice(token=8, logprob=-3 * math.log(2), top=((6, -math.log(2)), (7, -2 * math.log(2)))),
    )
    last = engine.prefill(1, scored=True)
    assert last.scores == (Choice(token=7, logprob=-math.inf, top=((127, -math.log(2)), (128, -2 * math.log(2)))),)
    # Behind 7 it is 1001 x 6015 + 8 = 6021023, which is 159.
    assert last.choice == Choice(token=159, logprob=-math.log(2), top=((159, -math.log(2)), (160, -2 * math.log(2))))


def unread(engine: SummingEngine) -> None:
    engine.admit(1, GREEDY, prompt=list(range(9)), start=None)


def answering(engine: SummingEngine) -> None:
    begun(engine, 1, [1, 2])


@pytest.mark.parametrize(
    ("before", "call", "words"),
    [
        (None, lambda e: e.admit(0, GREEDY, prompt=[1], start=None), "slot 0: there are 1 to 2"),
        (None, lambda e: e.admit(3, GREEDY, prompt=[1], start=None), "slot 3: there are 1 to 2"),
        (unread, lambda e: e.admit(1, GREEDY, prompt=[1], start=None), "slot 1: is taken"),
        (None, lambda e: e.prefill(1), "slot 1: is free"),
        (None, lambda e: e.decode([1]), "slot 1: is free"),
        (None, lambda e: e.snapshot(1), "slot 1: is free"),
        (None, lambda e: e.release(1), "slot 1: is free"),
        (unread, lambda e: e.decode([1]), "its prompt is not read yet"),
        (unread, lambda e: e.snapshot(1), "position 0 is no place on a grid of 8"),
        (answering, lambda e: e.prefill(1), "it answers already"),
        (answering, lambda e: e.snapshot(1), "it answers already"),
        (answering, lambda e: e.decode([1, 1]), "asked for twice"),
        (answering, lambda e: [e.decode([1]) for _ in range(15)], "its context of 16 tokens is full"),
    ],
)
def test_what_a_slot_cannot_do_now_is_refused(
    before: Callable[[SummingEngine], None] | None, call: Callable[[SummingEngine], object], words: str
) -> None:
    engine = SummingEngine(slots=2, context=16)
    if before is not None:
        before(engine)
    with pytest.raises(SlotError, match=words):
        call(engine)


@pytest.mark.parametrize("prompt", [[], [256], [-1], [0] * 17])
def test_a_prompt_that_cannot_be_read_takes_no_slot(prompt: list[int]) -> None:
    engine = SummingEngine(slots=1, context=16)
    with pytest.raises(ValueError, match="prompt: has"):
        engine.admit(1, GREEDY, prompt=prompt, start=None)
    assert engine.free_slots() == [1]


def test_a_slot_can_be_given_back_at_any_point_and_forgets() -> None:
    engine = SummingEngine(slots=1)
    for before in (unread, answering):
        before(engine)
        engine.release(1)
        assert engine.free_slots() == [1]
    assert begun(engine, 1, [5, 2, 7]) == [41]


def test_faults_come_where_they_were_asked_for_and_change_nothing() -> None:
    seen: list[tuple[Call, tuple[int, ...]]] = []
    engine = SummingEngine(
        faults=[Fault(call=Call.DECODE, turn=2), Fault(call=Call.PREFILL, slot=3)],
        watch=lambda call, slots: seen.append((call, slots)),
    )
    begun(engine, 1, [5, 2, 7])
    assert engine.decode([1])[1].token == 125
    with pytest.raises(EngineFaultError, match=r"decode 2, slots \(1,\): a fault"):
        engine.decode([1])
    assert engine.decode([1])[1].token == 103
    engine.admit(3, GREEDY, prompt=[1], start=None)
    with pytest.raises(EngineFaultError, match="prefill 2"):
        engine.prefill(3)
    engine.faults.clear()
    assert engine.prefill(3).choice is not None
    assert seen[:3] == [(Call.ADMIT, (1,)), (Call.PREFILL, (1,)), (Call.DECODE, (1,))]
    assert engine.calls[Call.PREFILL] == 3


@pytest.mark.parametrize("call", [Call.PREFILL, Call.DECODE])
def test_a_slot_without_numbers_can_only_be_released_and_the_others_go_on(call: Call) -> None:
    engine = SummingEngine(faults=[Fault(call=call, slot=2, no_numbers=True)])
    begun(engine, 1, [5, 2, 7])
    engine.admit(2, GREEDY, prompt=[1], start=None)
    if call is Call.DECODE:
        engine.prefill(2)
    with pytest.raises(FaultySlotsError, match="slot 2: the logits are no numbers") as caught:
        engine.prefill(2) if call is Call.PREFILL else engine.decode([1, 2])
    assert caught.value.slots == (2,)
    choices = {slot: choice.token for slot, choice in caught.value.choices.items()}
    assert choices == ({1: 125} if call is Call.DECODE else {})
    for again in (lambda: engine.decode([2]), lambda: engine.prefill(2)):
        with pytest.raises(SlotError, match="slot 2: has failed, and can only be released"):
            again()
    engine.release(2)
    assert engine.decode([1])[1].token == (103 if call is Call.DECODE else 125)


def test_two_threads_at_once_are_found_out() -> None:
    engine = SummingEngine(watch=lambda call, slots: engine.release(1))
    with pytest.raises(SlotError, match="another thread is in the engine"):
        unread(engine)
