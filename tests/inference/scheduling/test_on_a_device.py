"""The scheduler and the cache over engines of a real model: answers have the same bits, whatever goes on beside."""

from __future__ import annotations

import random

import jax
import pytest

from inference.engine.abstract_engine import Choice
from inference.engine.engine import Engine
from inference.engine.replicated_engine import ReplicatedEngine
from inference.engine.sampling_parameters import SamplingParameters
from inference.scheduling.generation import AbstractListener, Ended, Generation, Reason
from inference.scheduling.scheduler import Scheduler
from inference.state_cache.state_cache import StateCache
from training.mixers.softmax import SoftmaxConfig
from training.mixers.ssd import SsdConfig
from training.model.config import ModelConfig
from training.model.language_model import LanguageModel

GRID = 64


QUICK = {"xla_backend_optimization_level": "0"}


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    """With a fixed state and a window."""
    mixers = (SsdConfig(d_head=8, d_state=8, chunk=16), SoftmaxConfig(n_heads=2, window=96, block=32))
    config = ModelConfig(vocab_size=61, d_model=16, n_layers=2, d_feed_forward=24, mixers=mixers)
    made: LanguageModel = jax.jit(LanguageModel.init, static_argnums=0)(config, jax.random.key(0))
    return made


@pytest.fixture(scope="module")
def engine(model: LanguageModel) -> Engine:
    """Over one device; quickly compiled."""
    return Engine(model, slots=3, context=400, grid=GRID, compiler_options=QUICK)


@pytest.fixture(scope="module")
def replicated(model: LanguageModel) -> ReplicatedEngine:
    """Over two, with as many slots on each."""
    devices = jax.devices()[:2]
    return ReplicatedEngine(model, devices=devices, slots=3, context=400, grid=GRID, compiler_options=QUICK)


class Bits(AbstractListener):
    """Keeps tokens with all the bits of their log-probabilities."""

    def __init__(self) -> None:
        self.choices: list[Choice] = []
        self.end: Ended | None = None

    def scored(self, scores: tuple[Choice, ...]) -> None:
        raise AssertionError("nobody asked for these")

    def token(self, choice: Choice) -> bool:
        self.choices.append(choice)
        return False

    def ended(self, ended: Ended) -> None:
        self.end = ended


def question(number: int) -> Generation:
    """Prompts of 1 to 331 tokens that share their beginnings in groups of three."""
    text = random.Random(number // 3)
    own = random.Random(1000 + number)
    common = [text.randrange(61) for _ in range(30 * number)]
    parameters = SamplingParameters(temperature=number % 2, seed=number, logprobs=3, presence_penalty=0.5)
    prompt = (*common, *(own.randrange(61) for _ in range(1 + number % 3)))
    return Generation(request_id=str(number), prompt=prompt, parameters=parameters, max_tokens=8)


@pytest.fixture(scope="module")
def alone(engine: Engine) -> list[list[Choice]]:
    """The answer to each of twelve questions, with nobody beside it."""
    answers = []
    for number in range(12):
        scheduler = Scheduler(engine, cache=None, queue=0, prefill_tokens_a_turn=GRID)
        listener = Bits()
        scheduler.submit(question(number), listener)
        while scheduler.turn():
            pass
        answers.append(listener.choices)
    assert {len(choices) for choices in answers} == {8}
    return answers


@pytest.mark.parametrize("devices", [1, 2])
def test_alone_or_in_a_crowd_cached_or_not_an_answer_has_the_same_bits(
    engine: Engine, replicated: ReplicatedEngine, alone: list[list[Choice]], devices: int
) -> None:
    asked = [question(number) for number in range(12)]
    _has_the_same_bits(engine if devices == 1 else replicated, asked, alone)


def _has_the_same_bits(engine: Engine | ReplicatedEngine, asked: list[Generation], alone: list[list[Choice]]) -> None:
    cache = StateCache(1 << 26, fingerprint=engine.fingerprint, grid=GRID)
    scheduler = Scheduler(engine, cache=cache, queue=100, prefill_tokens_a_turn=2 * GRID)
    drawn = random.Random(5)
    heard: list[tuple[int, Bits]] = []
    for _ in range(4):
        for number in drawn.sample(range(12), 12):
            listener = Bits()
            ticket = scheduler.submit(asked[number], listener)
            heard.append((number, listener))
            for _ in range(drawn.randrange(3)):
                scheduler.turn()
            if drawn.random() < 0.2:
                scheduler.cancel(ticket)
    while scheduler.turn():
        pass
    whole = 0
    for number, listener in heard:
        assert listener.choices == alone[number][: len(listener.choices)]
        assert listener.end is not None
        whole += listener.end.reason is Reason.LENGTH and len(listener.choices) == 8
    statistics = scheduler.statistics()
    assert whole > 30
    assert statistics.restores > 20
    assert statistics.engine_failures == 0
    assert sorted(engine.free_slots()) == list(range(1, engine.limits.slots + 1))
