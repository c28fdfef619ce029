"""The chunkwise form against the recurrence: outputs, states, gradients, for any decay and any length.

The recurrence decides in fp64: what differs by more than fp32 can round is an error of the chunkwise form.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from training.mixers.chunkwise import chunkwise
from training.mixers.recurrence import recurrent

BATCH, GROUPS, HEADS, DK, DV = 2, 1, 2, 4, 3
QUICKLY = {"xla_backend_optimization_level": 0}
STRENGTHS = (0.0, -1e-6, -5.0, -20.0, -150.0)


class Inputs(NamedTuple):
    """What both forms take."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    g: np.ndarray
    state: np.ndarray
    aim: np.ndarray
    """What the outputs are multiplied with to make a loss."""
    aim_of_state: np.ndarray


def inputs(time: int, g: float | None = None, *, seed: int = 0) -> Inputs:
    """Random operands; the decay is `g` everywhere, or else drawn from none to strong, token by token."""
    draw = np.random.default_rng(seed)
    mixed = draw.choice([0.0, 0.01, 0.3, 5.0, 30.0, 150.0], (BATCH, time, HEADS)) * draw.uniform(
        0.5, 1, (BATCH, time, HEADS)
    )
    return Inputs(
        q=draw.standard_normal((BATCH, time, GROUPS, DK)),
        k=draw.standard_normal((BATCH, time, GROUPS, DK)),
        v=draw.standard_normal((BATCH, time, HEADS, DV)),
        g=-mixed if g is None else np.full((BATCH, time, HEADS), g),
        state=draw.standard_normal((BATCH, HEADS, DK, DV)),
        aim=draw.standard_normal((BATCH, time, HEADS, DV)),
        aim_of_state=draw.standard_normal((BATCH, HEADS, DK, DV)),
    )


def segments_of(time: int, kind: str) -> np.ndarray | None:
    """Documents of a row, of other lengths in each row, with and without padding."""
    if kind == "one":
        return None
    places = np.arange(time)
    first = 1 + (places >= time // 3) + (places >= time // 3 + 1) + (places >= time // 2)
    second = np.where(places < time - time // 5, 6 - 2 * (places >= time // 4), 0)
    return np.stack([first, second]).astype(np.int32)


@functools.cache
def compiled(chunk: int | None) -> Any:
    """Outputs, state, and gradients in q, k, v, g and the state that came in; without a chunk, by the recurrence."""
    form = recurrent if chunk is None else functools.partial(chunkwise, chunk=chunk)

    def loss(q: Any, k: Any, v: Any, g: Any, state: Any, aim: Any, aim_of_state: Any, segments: Any) -> Any:
        out, after = form(q, k, v, g, state=state, segments=segments)
        if segments is not None:
            out = jnp.where((segments > 0)[..., None, None], out, 0)
        return jnp.sum(out * aim) + jnp.sum(after * aim_of_state), (out, after)

    return jax.jit(jax.grad(loss, argnums=range(5), has_aux=True), compiler_options=QUICKLY)


def computed(chunk: int | None, dtype: Any, given: Inputs, segments: np.ndarray | None) -> Any:
    arrays = (jnp.asarray(each, dtype) for each in given)
    slopes, outputs = compiled(chunk)(*arrays, None if segments is None else jnp.asarray(segments))
    return jax.tree.map(np.asarray, (outputs, slopes))


def exactly(given: Inputs, segments: np.ndarray | None) -> Any:
    with jax.enable_x64(True):
        return computed(None, jnp.float64, given, segments)


def close(got: Any, wanted: Any, tolerance: float) -> None:
    """Each array to so much of its greatest element."""
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert np.all(np.isfinite(one))
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * max(1.0, np.abs(other).max()))


@pytest.mark.parametrize(("time", "kind"), [(1, "one"), (63, "several"), (64, "one"), (65, "one"), (65, "several")])
def test_mixed_decays_at_every_length(time: int, kind: str) -> None:
    given, segments = inputs(time), segments_of(time, kind)
    wanted = exactly(given, segments)
    for chunk in (16, 64) if time == 65 else (64,):
        close(computed(chunk, jnp.float32, given, segments), wanted, 2e-6)


@pytest.mark.parametrize("g", STRENGTHS)
def test_every_strength_of_decay(g: float) -> None:
    given, segments = inputs(65, g), segments_of(65, "several")
    close(computed(32, jnp.float32, given, segments), exactly(given, segments), 2e-6)


def test_the_slopes_of_strong_decays_are_as_small_as_they_are() -> None:
    """exp(-20) is 2e-9: what a token sees of itself is 1e9 times as large, and leaves no rounding in the slopes."""
    given, segments = inputs(65, -20.0), segments_of(65, "several")
    _, (*_, got, _) = computed(32, jnp.float32, given, segments)
    _, (*_, wanted, _) = exactly(given, segments)
    assert 0 < np.abs(wanted).max() < 1e-6
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("chunk", [1, 24, 128])
def test_chunks_that_do_not_divide(chunk: int) -> None:
    given = inputs(65)
    close(computed(chunk, jnp.float32, given, None), exactly(given, None), 2e-6)


@pytest.mark.parametrize("kind", ["one", "several"])
def test_a_constant_decay(kind: str) -> None:
    given, segments = inputs(65), segments_of(65, kind)
    given = given._replace(g=np.asarray([-0.03, -4.0]))
    close(computed(16, jnp.float32, given, segments), exactly(given, segments), 2e-6)


def test_a_long_row_and_its_gradients() -> None:
    given = inputs(4096)
    # The weak decays count here: sums of strong ones are large, and what stands beside them must not be lost.
    close(computed(64, jnp.float32, given, None), exactly(given, None), 4e-6)


def test_in_fp64_the_forms_are_one() -> None:
    given, segments = inputs(65), segments_of(65, "several")
    with jax.enable_x64(True):
        got = computed(16, jnp.float64, given, segments)
    close(got, exactly(given, segments), 1e-13)


def test_bf16_operands_add_up_in_fp32() -> None:
    given = inputs(65, -0.05)
    rounded = given._replace(
        **{name: np.asarray(jnp.asarray(getattr(given, name), jnp.bfloat16), float) for name in "qkv"}
    )
    narrow = (jnp.asarray(each, jnp.bfloat16) for each in rounded[:3])
    slopes, outputs = compiled(16)(*narrow, *(jnp.asarray(each, jnp.float32) for each in rounded[3:]), None)
    assert [each.dtype for each in outputs] == [jnp.float32] * 2
    assert [each.dtype for each in slopes] == [jnp.bfloat16] * 3 + [jnp.float32] * 2
    for one, other in zip((*outputs, *slopes), (each for part in exactly(rounded, None) for each in part), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=0.01 * np.abs(other).max())


def test_a_decay_of_minus_infinity_forgets_everything() -> None:
    given = inputs(10, -np.inf)
    q, k, v, g = (jnp.asarray(each, jnp.float32) for each in given[:4])
    out, _ = jax.jit(functools.partial(chunkwise, chunk=4), compiler_options=QUICKLY)(q, k, v, g)
    alone = jnp.sum(q * k, axis=-1, keepdims=True) * v
    np.testing.assert_allclose(out, alone, rtol=1e-5, atol=1e-6)


def test_the_backward_pass_keeps_no_state_a_token() -> None:
    """4096 states of 16 by 16 would be 16 times as large as an operand; what is kept in all is less than half of it."""

    def kept(time: int) -> int:
        shapes = jax.eval_shape(lambda: jnp.zeros((1, time, 1, 16)))
        loss = jax.grad(lambda q, k, v: jnp.sum(chunkwise(q, k, v, jnp.zeros(1), chunk=64)[0] ** 2), argnums=(0, 1, 2))
        memory = jax.jit(loss, compiler_options=QUICKLY).lower(shapes, shapes, shapes).compile().memory_analysis()
        assert memory is not None
        return int(memory.temp_size_in_bytes)

    short, long = kept(4096), kept(8192)
    assert short < 16 * (4096 * 16 * 4) / 2
    assert long < 2.2 * short
