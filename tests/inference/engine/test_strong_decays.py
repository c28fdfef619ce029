"""Gates that forget everything or nothing: pieces give what single tokens give, and always a number."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from inference.engine.engine import Engine
from inference.engine.sampling_parameters import SamplingParameters
from tests.inference.engine.driving import QUICK, VOCABULARY, answer, fresh_model
from training.mixers.ssd import SsdConfig
from training.model.decoding import init_state, step
from training.model.language_model import LanguageModel

DECAYS = (0.0, 5.0, 20.0, 100.0)
"""What each head of the first layer forgets a token, as a negative log decay."""
STEP = float(np.log(np.e - 1))
"""Softplus of it is 1."""
LONGEST = 4096
ALL = SamplingParameters(temperature=0, logprobs=20)


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    """In the first layer every head has a decay of its own; in the second, tokens decide between about 0 and 30."""
    model = fresh_model(SsdConfig(d_head=8, d_state=8), repeats=2)
    mixer = model.blocks[0].mixer
    assert mixer.a_log.shape == (2, len(DECAYS))
    return eqx.tree_at(
        lambda each: (each.blocks[0].mixer.a_log, each.blocks[0].mixer.dt_bias, each.blocks[0].mixer.dt_proj.weight),
        model,
        (
            jnp.log(jnp.array([DECAYS, (30.0,) * len(DECAYS)])),
            jnp.array([[STEP] * len(DECAYS), [-6.0] * len(DECAYS)]),
            mixer.dt_proj.weight.at[0].set(0).at[1].multiply(60),
        ),
    )


@pytest.fixture(scope="module")
def engine(model: LanguageModel) -> Engine:
    """One slot; pieces of 64."""
    return Engine(model, slots=1, context=LONGEST + 8, grid=64, compiler_options=QUICK)


@pytest.fixture(scope="module")
def token_by_token(model: LanguageModel) -> Any:
    """The state and the logits behind the first tokens of a text."""

    @partial(jax.jit, compiler_options=QUICK)
    def read(tokens: jax.Array, length: jax.Array) -> Any:
        def one(carried: Any, now: Any) -> Any:
            state, logits = carried
            token, place = now
            new, state = step(model, token[None], (place < length)[None], state)
            return (state, jnp.where(place < length, new[0], logits)), None

        start = (init_state(model, 1, context=LONGEST), jnp.zeros(VOCABULARY))
        return jax.lax.scan(one, start, (tokens, jnp.arange(LONGEST)))[0]

    return read


@pytest.mark.parametrize("length", [1, 63, 64, 65, LONGEST])
def test_pieces_and_single_tokens_agree(length: int, engine: Engine, token_by_token: Any) -> None:
    tokens = np.random.default_rng(1).integers(0, VOCABULARY, LONGEST)
    _, logits = token_by_token(tokens, length)
    wanted = np.asarray(jax.nn.log_softmax(logits))
    got = answer(engine, tokens[:length].tolist(), ALL, tokens=1)[0]
    assert np.all(np.isfinite(wanted))
    assert got.token == np.argmax(wanted)
    np.testing.assert_allclose([wanted[token] for token, _ in got.top], [value for _, value in got.top], atol=1e-4)


def test_the_state_is_that_of_single_tokens(engine: Engine, token_by_token: Any) -> None:
    tokens = np.random.default_rng(1).integers(0, VOCABULARY, LONGEST)
    state, _ = token_by_token(tokens, LONGEST)
    engine.admit(1, ALL, prompt=tokens.tolist(), start=None)
    while engine.prefill(1).choice is None:
        pass
    _, first, *_ = engine.snapshot(1).arrays
    engine.release(1)
    wanted = np.asarray(state.mixers[0].memory)[0, 0]
    assert np.all(np.isfinite(first))
    for head, decay in enumerate(DECAYS):
        np.testing.assert_allclose(
            first[head], wanted[head], rtol=1e-4, atol=1e-5 * np.abs(wanted[head]).max(), err_msg=str(decay)
        )
