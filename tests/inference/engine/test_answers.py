"""The engine against a plain loop over the model: a prompt read whole, then token by token."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from inference.engine.engine import Engine
from inference.engine.sampling_parameters import SamplingParameters
from tests.inference.engine.driving import (
    CONTEXT,
    GRID,
    PATTERNS,
    QUICK,
    VOCABULARY,
    answer,
    ids,
    model_over,
    prompt_of,
    quick_engine,
    read,
)
from training.model.decoding import init_state, prefill_all, step

TOKENS = 6
LENGTHS = (1, 63, 64, 65, GRID - 1, GRID, GRID + 1, 2 * GRID, CONTEXT - TOKENS)
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
ALL = SamplingParameters(temperature=0, logprobs=20)


@cache
def plain_loop() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The functions of the model, compiled once for the longest prompt that there can be."""
    return jax.jit(prefill_all, compiler_options=QUICK), jax.jit(step, compiler_options=QUICK)


def looped(pattern: str, prompt: list[int], tokens: int) -> tuple[list[int], np.ndarray, np.ndarray]:
    """The likeliest tokens, the log-probabilities behind each place of the prompt, and those each was chosen of."""
    model = model_over(pattern)
    read_all, go_on = plain_loop()
    state = init_state(model, 1, context=CONTEXT)
    padded = jnp.zeros((1, CONTEXT), jnp.int32).at[0, : len(prompt)].set(jnp.asarray(prompt))
    logits, state = read_all(model, padded, jnp.asarray([len(prompt)]), None, state)
    of_prompt = np.asarray(jax.nn.log_softmax(logits[0]))[: len(prompt)]
    chosen, behind, logits = [], [], logits[:, len(prompt) - 1]
    for _ in range(tokens):
        behind.append(np.asarray(jax.nn.log_softmax(logits[0])))
        chosen.append(int(np.argmax(behind[-1])))
        logits, state = go_on(model, jnp.asarray(chosen[-1:]), jnp.ones(1, bool), state)
    return chosen, of_prompt, np.stack(behind)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("pattern", sorted(PATTERNS))
def test_the_likeliest_tokens_and_their_log_probabilities(pattern: str, length: int) -> None:
    prompt = prompt_of(length)
    wanted, _, behind = looped(pattern, prompt, TOKENS)
    got = answer(quick_engine(pattern), prompt, ALL, tokens=TOKENS)
    assert ids(got) == wanted
    for choice, logprobs in zip(got, behind, strict=True):
        assert choice.logprob == pytest.approx(logprobs[choice.token], abs=1e-5)
        np.testing.assert_allclose([value for _, value in choice.top], np.sort(logprobs)[::-1][:20], **CLOSE)
        np.testing.assert_allclose([logprobs[token] for token, _ in choice.top], [v for _, v in choice.top], **CLOSE)


@pytest.mark.parametrize("length", [1, 2, GRID, GRID + 1, CONTEXT])
def test_a_scored_prompt_has_the_log_probability_of_every_token_but_the_first(
    length: int, scoring_engine: Engine
) -> None:
    prompt = prompt_of(length)
    _, of_prompt, _ = looped("ssd and window", prompt, 1)
    scoring_engine.admit(1, SamplingParameters(temperature=0, logprobs=2), prompt=prompt, start=None)
    scores, sizes = [], []
    while True:
        prefilled = scoring_engine.prefill(1, scored=True)
        scores += prefilled.scores
        sizes.append(len(prefilled.scores))
        if prefilled.choice is not None:
            break
    assert sizes == [min(GRID, length - start) - (start == 0) for start in range(0, length, GRID)]
    assert ids(scores) == prompt[1:]
    for place, score in enumerate(scores, start=1):
        assert score.logprob == pytest.approx(of_prompt[place - 1][prompt[place]], abs=1e-5)
        assert [value for _, value in score.top] == pytest.approx(np.sort(of_prompt[place - 1])[:-3:-1], abs=1e-5)


def test_scoring_a_prompt_changes_no_bit_of_what_follows(scoring_engine: Engine) -> None:
    prompt = prompt_of(GRID + 5)
    plain = answer(scoring_engine, prompt)
    scoring_engine.admit(1, ALL, prompt=prompt, start=None)
    first = read(scoring_engine, 1, scored=True)
    assert [first.token, first.logprob] == [plain[0].token, plain[0].logprob]
    for wanted in plain[1:]:
        got = scoring_engine.decode([1])[1]
        assert (got.token, got.logprob) == (wanted.token, wanted.logprob)


def test_an_answer_may_fill_the_context_and_not_more(engine: Engine) -> None:
    engine.admit(1, SamplingParameters(temperature=0), prompt=prompt_of(CONTEXT - 2), start=None)
    read(engine, 1)
    engine.decode([1])
    with pytest.raises(RuntimeError, match=f"slot 1: its {CONTEXT} tokens fill the context of {CONTEXT}"):
        engine.decode([1])


@pytest.mark.parametrize("pattern", sorted(PATTERNS))
def test_a_state_is_as_large_as_the_limits_say(pattern: str) -> None:
    engine = quick_engine(pattern)
    assert engine.limits.vocab_size == VOCABULARY
    engine.admit(1, ALL, prompt=prompt_of(GRID + 1), start=None)
    engine.prefill(1)
    snapshot = engine.snapshot(1)
    engine.release(1)
    assert snapshot.nbytes == engine.limits.state_bytes == sum(array.nbytes for array in snapshot.arrays)


def test_fixed_memory_is_as_large_for_any_context_and_a_cache_is_not() -> None:
    sizes = {
        (pattern, context): Engine(model_over(pattern), slots=1, context=context, grid=64).limits.state_bytes
        for pattern in PATTERNS
        for context in (100, 200)
    }
    assert sizes["ssd and window", 100] == sizes["ssd and window", 200]
    # Keys and values of 100 tokens more, 8 channels of 4 bytes each, in two layers.
    assert sizes["softmax", 200] - sizes["softmax", 100] == 2 * 2 * 100 * 8 * 4


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"slots": 0}, "slots: 0 answer nobody"),
        ({"context": 0}, "context: is 0; it is 1 to"),
        ({"context": 2**31}, "context: is 2147483648; it is 1 to"),
        ({"grid": 100}, "grid: is 100; it is a multiple of 64"),
        ({"grid": 0}, "grid: is 0; it is a multiple of 64"),
    ],
)
def test_sizes_that_make_no_engine(sizes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Engine(model_over("softmax"), **{"slots": 1, "context": 100, "grid": 64, **sizes})


def test_in_bfloat16_the_memory_stays_fp32(bfloat_engine: Engine) -> None:
    prompt = prompt_of(70)
    got = answer(bfloat_engine, prompt, ALL)
    wanted = answer(quick_engine("ssd and window"), prompt, ALL, tokens=1)[0]
    assert got[0].logprob == pytest.approx(dict(wanted.top)[got[0].token], abs=0.05)
    bfloat_engine.admit(1, ALL, prompt=prompt, start=None)
    bfloat_engine.prefill(1)
    kept = bfloat_engine.snapshot(1)
    bfloat_engine.release(1)
    assert [array.dtype.name for array in kept.arrays] == ["int32", "float32", *["bfloat16"] * 5]
    assert answer(bfloat_engine, prompt, ALL, slot=2, start=kept) == got
