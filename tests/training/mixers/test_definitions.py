"""Mixers against their published definitions, written out in numpy, and their configurations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from training.errors import TrainingError
from training.mixers.based import Based, BasedConfig
from training.mixers.lightning import Lightning, LightningConfig, slopes
from training.mixers.linear import Linear, LinearConfig
from training.mixers.registry import build_mixer
from training.mixers.retention import RetentionConfig, log_decays
from training.mixers.softmax import SoftmaxConfig
from training.mixers.ssd import Ssd, SsdConfig

D_MODEL, TIME = 8, 11
QUICKLY = {"xla_backend_optimization_level": 0}


def sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


def silu(x: np.ndarray) -> np.ndarray:
    return np.asarray(x * sigmoid(x))


def fresh(config: Any) -> Any:
    return build_mixer(config, D_MODEL, layer=1, n_layers=3, key=jax.random.key(3))


def row() -> np.ndarray:
    return np.random.default_rng(4).standard_normal((TIME, D_MODEL))


def mixed(mixer: Any, x: np.ndarray) -> np.ndarray:
    places = jnp.arange(TIME, dtype=jnp.int32)[None]
    call = jax.jit(lambda m, x: m(x, places, jnp.ones_like(places))[0], compiler_options=QUICKLY)
    return np.asarray(call(mixer, jnp.asarray(x, jnp.float32)[None])[0])


def weight(projection: Any) -> np.ndarray:
    return np.asarray(projection.weight, np.float64).T


def test_lightning_forgets_as_minimax_01_does() -> None:
    """64 heads, 80 layers: 2^(-8h/64), times 1 - l/(79 + 1e-5) + 1e-5 in layer l."""
    first, last = (np.asarray(slopes(64, layer=layer, n_layers=80)) for layer in (0, 79))
    assert first[0] == pytest.approx(0.917004 * 1.00001, rel=1e-5)
    assert first[-1] == pytest.approx(2**-8 * 1.00001, rel=1e-6)
    assert np.all(last > 0)
    np.testing.assert_allclose(last, first * (1 - 79 / 79.00001 + 1e-5) / 1.00001, rtol=0.02)


def test_lightning_is_its_definition() -> None:
    mixer: Lightning = fresh(LightningConfig(n_heads=2, chunk=4))
    x, d = row(), D_MODEL // 2
    fused = silu(x @ weight(mixer.qkv_proj))
    heads = []
    for head, slope in enumerate((2**-4.0, 2**-8.0)):
        q, k, v = np.split(fused[:, head * 3 * d : (head + 1) * 3 * d], 3, axis=1)
        rate = slope * (1 - 1 / (2 + 1e-5) + 1e-5)
        ages = np.arange(TIME)[:, None] - np.arange(TIME)
        heads.append((q @ k.T * np.where(ages >= 0, np.exp(-rate * ages), 0)) @ v)
    out = np.concatenate(heads, axis=1)
    out = out / np.sqrt((out**2).mean(axis=1, keepdims=True) + 1e-6)
    wanted = (out * sigmoid(x @ weight(mixer.gate_proj))) @ weight(mixer.out_proj)
    np.testing.assert_allclose(mixed(mixer, x), wanted, rtol=1e-4, atol=1e-5)


def test_retention_keeps_what_retnet_keeps() -> None:
    np.testing.assert_allclose(np.exp(log_decays(4)), [1 - 2.0**-n for n in (5, 6, 7, 8)], rtol=1e-6)


def test_vanilla_attention_is_its_definition() -> None:
    mixer: Linear = fresh(LinearConfig(n_heads=1, chunk=4))
    x = row()
    q, k, v = (x @ weight(each) for each in (mixer.q_proj, mixer.k_proj, mixer.v_proj))
    q, k = (np.where(each > 0, each + 1, np.exp(each)) for each in (q, k))
    weights = np.tril(q @ k.T)
    wanted = (weights / weights.sum(axis=1, keepdims=True)) @ v @ weight(mixer.o_proj)
    np.testing.assert_allclose(mixed(mixer, x), wanted, rtol=1e-4, atol=1e-5)


def test_based_is_its_definition() -> None:
    mixer: Based = fresh(BasedConfig(n_heads=1, d_feature=3, taps=0, chunk=4))
    x = row()
    q, k, v = (x @ weight(each) for each in (mixer.q_proj, mixer.k_proj, mixer.v_proj))
    scores = q @ k.T / 3**0.5
    weights = np.tril(1 + scores + scores**2 / 2)
    wanted = (weights / weights.sum(axis=1, keepdims=True)) @ v @ weight(mixer.o_proj)
    np.testing.assert_allclose(mixed(mixer, x), wanted, rtol=1e-4, atol=1e-5)


def test_ssd_is_its_definition() -> None:
    """Mamba-2 as a loop over tokens: h <- exp(dt A) h + dt B x; y = C h + D x; then the gate, the norm, the way out."""
    mixer: Ssd = fresh(SsdConfig(d_head=4, d_state=3, n_groups=2, chunk=4))
    x, heads = row(), 4
    inputs = []
    for projection, convolution in zip((mixer.x_proj, mixer.b_proj, mixer.c_proj), mixer.convolutions, strict=True):
        padded = np.concatenate([np.zeros((3, projection.weight.shape[0])), x @ weight(projection)])
        taps = np.asarray(convolution.weight)
        inputs.append(silu(sum(padded[place : place + TIME] * taps[:, place] for place in range(4))))
    values, keys, queries = (each.reshape(TIME, n, -1) for each, n in zip(inputs, (heads, 2, 2), strict=True))
    dt = np.log1p(np.exp(x @ weight(mixer.dt_proj) + np.asarray(mixer.dt_bias)))
    decay = np.exp(-dt * np.exp(np.asarray(mixer.a_log)))
    out = np.zeros((TIME, heads, 4))
    for head in range(heads):
        state = np.zeros((3, 4))
        for t in range(TIME):
            state = decay[t, head] * state + dt[t, head] * np.outer(keys[t, head // 2], values[t, head])
            out[t, head] = queries[t, head // 2] @ state + values[t, head]
    gated = (out.reshape(TIME, -1) * silu(x @ weight(mixer.z_proj))).reshape(TIME, 2, -1)
    normed = (gated / np.sqrt((gated**2).mean(axis=2, keepdims=True) + 1e-5)).reshape(TIME, -1)
    np.testing.assert_allclose(mixed(mixer, x), normed @ weight(mixer.out_proj), rtol=1e-4, atol=1e-5)


def test_fresh_steps_of_ssd_lie_between_their_bounds() -> None:
    mixer = build_mixer(SsdConfig(d_head=1, d_state=1, taps=0), 64, layer=0, n_layers=1, key=jax.random.key(0))
    assert isinstance(mixer, Ssd)
    dt, rate = jax.nn.softplus(mixer.dt_bias), jnp.exp(mixer.a_log)
    assert 0.99e-3 < float(jnp.min(dt)) < 2e-3
    assert 0.05 < float(jnp.max(dt)) < 0.101
    assert 1 <= float(jnp.min(rate)) <= float(jnp.max(rate)) <= 16.001


def test_projections_back_are_smaller_in_deeper_models() -> None:
    shallow, deep = (
        build_mixer(LinearConfig(n_heads=1), 256, layer=0, n_layers=n, key=jax.random.key(0)) for n in (1, 16)
    )
    assert isinstance(shallow, Linear)
    assert isinstance(deep, Linear)
    assert float(jnp.std(shallow.o_proj.weight)) == pytest.approx((2 * 256) ** -0.5, rel=0.02)
    assert float(jnp.std(deep.o_proj.weight)) == pytest.approx((32 * 256) ** -0.5, rel=0.02)


def test_a_cache_is_as_long_as_the_context_or_the_window() -> None:
    full, ring = (fresh(SoftmaxConfig(n_heads=4, n_kv_heads=2, window=window)) for window in (None, 5))
    assert full.init_state(3, context=64).keys.shape == (3, 64, 2, 2)
    assert ring.init_state(3, context=64).keys.shape == (3, 5, 2, 2)
    assert ring.init_state(3, context=4).keys.shape == (3, 4, 2, 2)


@pytest.mark.parametrize("window", [None, 9])
def test_beyond_its_context_attention_is_no_number(window: int | None) -> None:
    mixer = fresh(SoftmaxConfig(n_heads=2, window=window))
    step: Callable[..., Any] = jax.jit(type(mixer).step, compiler_options=QUICKLY)
    state, active = mixer.init_state(1, context=4), jnp.ones(1, bool)
    for place in range(5):
        out, state = step(mixer, jnp.ones((1, D_MODEL)), jnp.full(1, place, jnp.int32), active, state)
        assert bool(jnp.all(jnp.isnan(out))) == (place == 4)


def test_padding_beyond_the_context_is_a_number() -> None:
    mixer = fresh(SoftmaxConfig(n_heads=2))
    positions, segments = jnp.arange(6, dtype=jnp.int32)[None], jnp.asarray([[1, 1, 1, 0, 0, 0]], jnp.int32)
    call: Callable[..., Any] = jax.jit(type(mixer).__call__, compiler_options=QUICKLY)
    out, state = call(mixer, jnp.ones((1, 6, D_MODEL)), positions, segments, mixer.init_state(1, context=3))
    assert bool(jnp.all(jnp.isfinite(out)))
    out, _ = call(mixer, jnp.ones((1, 6, D_MODEL)), positions + 3, segments, state)
    assert bool(jnp.all(jnp.isnan(out[:, :3])))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SoftmaxConfig(n_heads=0), "mixer softmax: n_heads is 0; it is at least 1"),
        (lambda: SoftmaxConfig(n_heads=4, n_kv_heads=3), "n_kv_heads is 3, and n_heads 4 is no multiple of it.*3 or 6"),
        (lambda: SoftmaxConfig(n_heads=4, rope_fraction=1.5), "rope_fraction is 1.5; it is a share, from 0 to 1"),
        (lambda: SoftmaxConfig(n_heads=4, window=0), "window is 0"),
        (lambda: BasedConfig(n_heads=1, taps=-1), "mixer based: taps is -1; it is at least 0"),
        (lambda: SsdConfig(dt_min=0.2), "dt_min is 0.2 and dt_max 0.1"),
        (lambda: SsdConfig(norm_eps=float("nan")), "norm_eps is nan"),
        (lambda: fresh(LinearConfig(n_heads=3)), "n_heads is 3, and d_model 8 is no multiple of it.*6 or 9"),
        (lambda: fresh(LightningConfig(n_heads=16)), "n_heads is 16, and d_model 8.*choose d_model 16"),
        (lambda: fresh(RetentionConfig(n_heads=5)), "mixer retention: n_heads is 5"),
        (lambda: fresh(SsdConfig()), "d_head is 64, and expand × d_model 16"),
        (lambda: fresh(SsdConfig(d_head=4, n_groups=3)), "n_groups is 3, and the number of heads 4"),
    ],
)
def test_sizes_that_make_no_mixer_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        make()
