"""How tokens are chosen on the device, against plain numpy, and what a reader can work out by hand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from inference.engine.engine import Engine
from inference.engine.sampling import NO_TOKEN, Chosen, choose, scores
from inference.engine.sampling_parameters import SamplingParameters
from inference.engine.sampling_table import SamplingTable
from tests.inference.engine.driving import QUICK, SHORT_GRID, VOCABULARY, answer, ids, prompt_of
from tests.inference.engine.reference_sampling import adjusted, drawn, probabilities, uniform

SIZE = 300
"""Of the vocabulary: two blocks and a part of a third."""
ROWS = 64
PROMPT = (3, 5, 5, 250)
SO_FAR = (5, 7, 7, 7, 299)
_choose = jax.jit(choose, compiler_options=QUICK)


def chosen(
    logits: np.ndarray,
    rows: Sequence[SamplingParameters],
    *,
    places: Sequence[int] | None = None,
    prompt: Sequence[int] = (),
    so_far: Sequence[int] = (),
) -> Chosen:
    """What each row chooses of the same logits, or of its own. One shape is compiled: what lacks cannot be chosen."""
    places = range(len(rows)) if places is None else places
    each = np.broadcast_to(logits, (len(rows), logits.shape[-1]))
    parts = [
        part_chosen(each[at : at + ROWS], rows[at : at + ROWS], places[at : at + ROWS], prompt, so_far)
        for at in range(0, len(rows), ROWS)
    ]
    return Chosen(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def part_chosen(
    logits: np.ndarray,
    rows: Sequence[SamplingParameters],
    places: Sequence[int],
    prompt: Sequence[int],
    so_far: Sequence[int],
) -> list[np.ndarray]:
    """Of up to 64 rows; those that lack are not active."""
    count, size = logits.shape
    padded = np.full((ROWS, SIZE), -np.inf, np.float32)
    padded[:count, :size] = logits
    table = SamplingTable(ROWS, vocab_size=SIZE)
    bias, seen = np.zeros((ROWS, SIZE), np.float32), np.zeros((ROWS, SIZE), np.int32)
    for row, parameters in enumerate(rows):
        table.put(row, parameters)
        for token, value in parameters.logit_bias.items():
            bias[row, token] = value
    seen[:, list(prompt)] = 1
    for token in so_far:
        seen[:, token] += 2
    at = np.zeros(ROWS, np.int32)
    at[:count] = places
    got = _choose(padded, table.on_device(), bias, seen, at, np.arange(ROWS) < count)
    return [np.asarray(array)[:count] for array in got]


LOGITS = np.random.default_rng(4).normal(0, 3, SIZE).astype(np.float32)
SETTINGS = [
    SamplingParameters(),
    SamplingParameters(temperature=0),
    SamplingParameters(temperature=1e-6),
    SamplingParameters(temperature=0.3),
    SamplingParameters(temperature=2.0, top_k=5),
    SamplingParameters(top_k=1),
    SamplingParameters(top_k=SIZE + 5),
    SamplingParameters(top_p=0.6),
    SamplingParameters(top_p=1e-6),
    SamplingParameters(temperature=2.0, min_p=0.2),
    SamplingParameters(temperature=1.7, min_p=0.01, top_k=40, top_p=0.9),
    SamplingParameters(presence_penalty=2, temperature=0.5),
    SamplingParameters(frequency_penalty=-1.5, temperature=0.5),
    SamplingParameters(repetition_penalty=0.2, temperature=0.5),
    SamplingParameters(repetition_penalty=3, frequency_penalty=1, presence_penalty=-1, top_p=0.95),
    SamplingParameters(logit_bias={9: 100.0}),
    SamplingParameters(logit_bias={9: 7.0, 299: 6.5, 3: -100.0}, repetition_penalty=1.5, seed=2**63 - 1),
]


@pytest.mark.parametrize("parameters", SETTINGS, ids=str)
def test_draws_are_those_of_the_reference(parameters: SamplingParameters) -> None:
    got = chosen(LOGITS, [parameters] * ROWS, prompt=PROMPT, so_far=SO_FAR)
    shares = probabilities(adjusted(LOGITS, parameters, PROMPT, SO_FAR), parameters)
    assert got.token.tolist() == [drawn(shares, uniform(parameters, place)) for place in range(ROWS)]


@pytest.mark.parametrize("parameters", SETTINGS[10:15], ids=str)
def test_log_probabilities_are_those_before_the_temperature(parameters: SamplingParameters) -> None:
    asking = SamplingParameters(**{**vars(parameters), "logprobs": 20})
    got = chosen(LOGITS, [asking] * ROWS, prompt=PROMPT, so_far=SO_FAR)
    after = adjusted(LOGITS, asking, PROMPT, SO_FAR)
    wanted = after - after.max() - np.log(np.sum(np.exp(after - after.max())))
    np.testing.assert_allclose(got.logprob, wanted[got.token], atol=1e-5)
    assert got.top[0].tolist() == np.argsort(-wanted)[:20].tolist()
    np.testing.assert_allclose(got.top_logprobs[0], np.sort(wanted)[::-1][:20], atol=1e-5)


def test_shares_of_many_draws_are_the_probabilities() -> None:
    draws = 20_000
    logits = np.log(np.array([0.5, 0.25, 0.125, 0.0625, 0.0625]))
    got = chosen(logits, [SamplingParameters(seed=1)] * draws)
    counts = np.bincount(got.token, minlength=5)
    # Five standard deviations of a binomial.
    for share, count in zip(np.exp(logits), counts, strict=True):
        assert abs(count - draws * share) < 5 * np.sqrt(draws * share * (1 - share))


def test_a_draw_depends_on_seed_draw_and_place_and_on_nothing_else() -> None:
    logits = np.zeros(SIZE)
    kinds = list(itertools.product((0, 1, 2**32, 2**63 - 1), (0, 1, 2), (0, 1, 1_000_000)))
    rows = [SamplingParameters(seed=seed, draw=draw) for seed, draw, _ in kinds]
    places = [place for _, _, place in kinds]
    once = chosen(logits, rows, places=places).token.tolist()
    assert len(set(once)) > len(kinds) * 0.8
    backwards = chosen(logits, rows[::-1], places=places[::-1]).token.tolist()
    assert backwards[::-1] == once


@pytest.mark.parametrize(
    ("parameters", "allowed"),
    [
        (SamplingParameters(top_k=2), {0, 1, 2}),  # 1 and 2 are as likely as each other
        (SamplingParameters(top_k=1), {0}),
        (SamplingParameters(top_p=0.4), {0}),
        (SamplingParameters(top_p=0.41), {0, 1, 2}),
        (SamplingParameters(top_p=0.81), {0, 1, 2, 3}),
        (SamplingParameters(min_p=0.5), {0, 1, 2}),
        (SamplingParameters(min_p=0.26), {0, 1, 2}),
        (SamplingParameters(min_p=0.24), {0, 1, 2, 3}),
        (SamplingParameters(min_p=0.24, top_p=0.45), {0, 1, 2}),  # of what min-p leaves, 0 has 0.44
        (SamplingParameters(min_p=0.26, top_p=0.45), {0}),  # and here 0.5
        (SamplingParameters(top_k=1, top_p=0.99), {0}),
        (SamplingParameters(), {0, 1, 2, 3, 4}),
    ],
    ids=str,
)
def test_which_tokens_are_left(parameters: SamplingParameters, allowed: set[int]) -> None:
    """Probabilities 0.4, 0.2, 0.2, 0.1 and 0.1, less a little for the last; a token that cannot be, 5."""
    logits = np.append(np.log([0.4, 0.2, 0.2, 0.101, 0.099 * 0.9]), -np.inf)
    got = chosen(logits, [parameters] * 500)
    assert set(got.token.tolist()) == allowed


def test_a_bias_and_penalties_worked_out_by_hand() -> None:
    """Logits 1, -1, 0.9, 0: token 0 stands in the prompt, 1 twice in the answer and once in the prompt."""
    parameters = SamplingParameters(
        temperature=0,
        repetition_penalty=2,
        frequency_penalty=0.25,
        presence_penalty=0.5,
        logit_bias={2: 0.1},
        logprobs=4,
    )
    got = chosen(np.array([1, -1, 0.9, 0]), [parameters], prompt=[0, 1], so_far=[1, 1])
    after = np.array([0.5, -2 - 0.5 - 0.5, 1.0, 0])
    wanted = after - np.log(np.sum(np.exp(after)))
    assert got.top[0].tolist()[:4] == [2, 0, 3, 1]
    np.testing.assert_allclose(got.top_logprobs[0][:4], wanted[[2, 0, 3, 1]], atol=1e-6)
    assert got.token.tolist() == [2]


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_row_that_is_no_number_gets_no_token_and_the_others_theirs(wrong: float) -> None:
    rows = [SamplingParameters(seed=3, logprobs=2), SamplingParameters(temperature=0, logprobs=2)] * 2
    logits = np.broadcast_to(LOGITS, (4, SIZE)).copy()
    sound = chosen(logits, rows)
    logits[1, 17] = wrong
    logits[2] = -np.inf
    got = chosen(logits, rows)
    assert got.token.tolist() == [sound.token[0], NO_TOKEN, NO_TOKEN, sound.token[3]]
    for mine, other in zip(got, sound, strict=True):
        np.testing.assert_array_equal(mine[[0, 3]], other[[0, 3]])


def test_a_token_that_cannot_be_has_a_log_probability_of_minus_infinity() -> None:
    logits = np.array([0.0, -np.inf, 0.0])
    got = chosen(logits, [SamplingParameters(temperature=2, seed=9, logprobs=3)] * 200)
    assert set(got.token.tolist()) == {0, 2}
    assert got.top[0].tolist()[:3] == [0, 2, 1]
    assert got.top_logprobs[0].tolist()[:3] == [pytest.approx(-np.log(2)), pytest.approx(-np.log(2)), -np.inf]


def test_what_a_neighbour_asks_for_changes_no_bit() -> None:
    for parameters in SETTINGS:
        asking = SamplingParameters(**{**vars(parameters), "logprobs": 3})
        alone = chosen(LOGITS, [asking], prompt=PROMPT, so_far=SO_FAR, places=[5])
        beside = chosen(LOGITS, [*SETTINGS, asking], prompt=PROMPT, so_far=SO_FAR, places=[5] * (len(SETTINGS) + 1))
        for mine, other in zip(beside, alone, strict=True):
            np.testing.assert_array_equal(mine[-1], other[0])


def test_scores_of_tokens_are_their_log_probabilities() -> None:
    logprobs, top, top_logprobs = scores(jnp.log(jnp.array([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]])), jnp.array([1, 1]))
    np.testing.assert_allclose(logprobs, np.log([0.25, 0.8]), rtol=1e-6)
    assert top.tolist() == [[0, 1, 2], [1, 0, 2]]
    np.testing.assert_allclose(top_logprobs, np.log([[0.5, 0.25, 0.25], [0.8, 0.1, 0.1]]), rtol=1e-6)


# Through the engine: what is counted, and where a draw is keyed.


def test_answers_of_one_request_differ_and_each_comes_again(engine: Engine) -> None:
    prompt = prompt_of(20)
    drawn = [
        ids(answer(engine, prompt, SamplingParameters(seed=seed, draw=draw), slot=slot, tokens=12))
        for seed, draw, slot in [(1, 0, 1), (1, 1, 1), (1, 2, 1), (2, 0, 1), (1, 0, 5), (1, 1, 3)]
    ]
    assert len({tuple(each) for each in drawn[:4]}) == 4
    assert drawn[4:] == drawn[:2]


def test_a_draw_is_keyed_by_the_place_in_the_text(engine: Engine) -> None:
    """Where every token is as likely, the answer is that of the places alone."""
    flat = SamplingParameters(seed=8, logit_bias=dict.fromkeys(range(2, VOCABULARY), -100.0), temperature=2)
    wanted = [drawn(np.eye(VOCABULARY)[:2].sum(0) / 2, uniform(flat, place)) for place in range(SHORT_GRID + 6)]
    got = {
        length: ids(answer(engine, prompt_of(length), flat, tokens=SHORT_GRID + 6 - length))
        for length in (1, SHORT_GRID)
    }
    agreeing = sum(mine == other for mine, other in zip(got[1], wanted[1:], strict=True))
    assert agreeing > 50  # the two are only nearly as likely
    assert got[SHORT_GRID][:2] == got[1][SHORT_GRID - 1 : SHORT_GRID + 1]


def test_a_frequency_penalty_counts_what_the_answer_has_and_not_the_prompt(engine: Engine) -> None:
    """A bias puts one token on top; each time that it was chosen takes 2 from it, until another is on top."""
    prompt = [7] * 30
    base = answer(engine, prompt, SamplingParameters(temperature=0, logprobs=20), tokens=1)[0]
    assert base.logprob is not None
    bias = {7: 6.0 + base.logprob - dict(base.top).get(7, base.logprob)}
    plain = ids(answer(engine, prompt, SamplingParameters(temperature=0, logit_bias=bias), tokens=8))
    assert plain == [7] * 8
    fewer = SamplingParameters(temperature=0, logit_bias=bias, frequency_penalty=2)
    got = ids(answer(engine, prompt, fewer, tokens=8))
    assert got[0] == 7
    assert 2 <= got.count(7) <= 5


def test_a_repetition_penalty_knows_the_part_of_the_prompt_that_was_not_read_here(engine: Engine) -> None:
    prompt = prompt_of(SHORT_GRID + 10, 6)
    parameters = SamplingParameters(temperature=0, repetition_penalty=5, logprobs=5)
    engine.admit(1, parameters, prompt=prompt, start=None)
    engine.prefill(1)
    kept = engine.snapshot(1)
    engine.release(1)
    whole = answer(engine, prompt, parameters, tokens=20)
    assert answer(engine, prompt, parameters, tokens=20, start=kept) == whole
    assert ids(whole) != ids(answer(engine, prompt, SamplingParameters(temperature=0), tokens=20))
