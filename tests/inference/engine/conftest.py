"""For the tests of the engine: eight CPU devices, as all tests over models have, and one engine a pattern of mixers."""

from __future__ import annotations

import os

# The devices are counted when JAX is first used.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

from collections.abc import Iterator

import pytest

from inference.engine.engine import Engine
from tests.inference.engine.driving import CONTEXT, QUICK, SHORT_GRID, model_over, quick_engine, true_engine
from tests.inference.engine.invariants import assert_sound


@pytest.fixture
def engine() -> Iterator[Engine]:
    """The one that tests of bits share."""
    yield from given_back(true_engine())


@pytest.fixture
def scoring_engine() -> Iterator[Engine]:
    """With memory of fixed size and a window, and two buckets."""
    yield from given_back(quick_engine("ssd and window"))


@pytest.fixture(scope="session")
def bfloat_engine() -> Engine:
    """That computes in bfloat16."""
    model = model_over("ssd and window")
    return Engine(model, slots=2, context=CONTEXT, grid=SHORT_GRID, dtype="bfloat16", compiler_options=QUICK)


@pytest.fixture
def softmax_engine() -> Iterator[Engine]:
    """With a cache of the whole context, and two buckets."""
    yield from given_back(quick_engine("softmax"))


def given_back(engine: Engine) -> Iterator[Engine]:
    """The engine, sound and with every slot free behind the test as before it."""
    yield engine
    assert_sound(engine)
    for slot in set(range(1, engine.limits.slots + 1)) - set(engine.free_slots()):
        engine.release(slot)
    assert_sound(engine)
