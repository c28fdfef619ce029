"""How many programs are compiled: one a bucket, and none for a length of its own."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest

from inference.engine.compiled_programs import bucket_of, buckets
from inference.engine.sampling_parameters import SamplingParameters
from tests.inference.engine.driving import SHORT_GRID, answer, prompt_of, true_engine

COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"


@pytest.fixture
def compiled() -> Iterator[list[str]]:
    """Grows by one for each program that JAX compiles, whoever asked for it."""
    heard: list[str] = []

    def hear(event: str, seconds: float, **_: object) -> None:
        if event == COMPILE_EVENT:
            heard.append(event)

    jax.monitoring.register_event_duration_secs_listener(hear)
    yield heard
    jax.monitoring.unregister_event_duration_listener(hear)


def test_the_ear_hears(compiled: list[str]) -> None:
    jax.jit(lambda x: x * 3 + 1).lower(1.0).compile()
    assert compiled


def test_no_length_is_compiled_for_itself(compiled: list[str]) -> None:
    engine = true_engine()
    engine.compile()
    before, known = engine.compilations, len(compiled)
    asking = SamplingParameters(logit_bias={1: 1.0}, top_p=0.5, logprobs=2)
    for length in (1, 2, 3, 17, 62, 63, 64, 65, 66, 100, 127, 128, 129, 200):
        for parameters in (SamplingParameters(temperature=0), asking):
            answer(engine, prompt_of(length), parameters, tokens=3)
    engine.admit(1, asking, prompt=prompt_of(SHORT_GRID + 1), start=None)
    engine.prefill(1)
    kept = engine.snapshot(1)
    engine.release(1)
    answer(engine, prompt_of(SHORT_GRID + 1), start=kept, tokens=2)
    engine.admit(1, asking, prompt=prompt_of(SHORT_GRID + 1), start=None)
    engine.prefill(1, scored=True)
    engine.release(1)
    assert engine.compilations == before
    assert len(compiled) == known


def test_compile_makes_one_program_a_bucket_and_one_of_each_other() -> None:
    engine = true_engine()
    engine.compile()
    # decode, prefill and score of 64; the pool, and what clears, marks, writes and reads a row.
    assert engine.compilations == 3 + 5


@pytest.mark.parametrize(
    ("grid", "context", "wanted"),
    [
        (64, 1000, (64,)),
        (128, 1000, (64, 128)),
        (256, 1_000_000, (64, 128, 256)),
        (192, 1000, (64, 128, 192)),
        (512, 100, (64, 128)),
        (512, 64, (64,)),
        (512, 1, (64,)),
    ],
)
def test_buckets_are_doubles_up_to_the_grid_or_what_the_context_can_fill(
    grid: int, context: int, wanted: tuple[int, ...]
) -> None:
    assert buckets(grid=grid, context=context) == wanted


@pytest.mark.parametrize(("length", "bucket"), [(1, 64), (64, 64), (65, 128), (128, 128), (129, 192), (192, 192)])
def test_a_piece_goes_into_the_least_bucket_that_holds_it(length: int, bucket: int) -> None:
    assert bucket_of(length, (64, 128, 192)) == bucket
