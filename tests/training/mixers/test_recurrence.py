"""The recurrence token by token, by numbers that can be worked out by hand and by a loop in numpy."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from training.errors import TrainingError
from training.mixers.dispatch import Form, linear_attention
from training.mixers.recurrence import recurrent

Gates = dict[str, np.ndarray]


def test_the_state_of_one_channel_by_hand() -> None:
    ones = jnp.ones((1, 3, 1, 1))
    half = jnp.full(1, jnp.log(0.5))
    out, state = recurrent(ones, 2 * ones, jnp.asarray([1.0, 10.0, 100.0]).reshape(1, 3, 1, 1), half)
    np.testing.assert_allclose(out.ravel(), [2, 1 + 20, 0.5 + 10 + 200], rtol=1e-6)
    np.testing.assert_allclose(state.ravel(), [210.5], rtol=1e-6)


def test_the_delta_rule_replaces_what_a_key_stood_for() -> None:
    keys = jnp.asarray([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]).reshape(1, 3, 1, 2)
    values = jnp.asarray([5.0, 7.0, 9.0]).reshape(1, 3, 1, 1)
    gate = jnp.ones((1, 3, 1))
    _, erased = recurrent(keys, keys, values, jnp.zeros(1), b=gate, w=gate)
    np.testing.assert_array_equal(erased.ravel(), [9, 7])
    _, added = recurrent(keys, keys, values, jnp.zeros(1), w=gate / 2)
    np.testing.assert_array_equal(added.ravel(), [7, 3.5])


def by_numpy(q: np.ndarray, k: np.ndarray, v: np.ndarray, g: np.ndarray, b: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The definition for one row and one head, in fp64: every gate has its channels."""
    state = np.zeros((k.shape[-1], v.shape[-1]))
    out = []
    for t in range(len(q)):
        state = np.exp(g[t])[:, None] * state
        state = state + np.outer(k[t], w[t] * v[t] - state.T @ (b[t] * k[t]))
        out.append(state.T @ q[t])
    return np.stack(out)


@pytest.mark.parametrize("a_channel", [False, True])
def test_all_gates_at_once_follow_the_definition(a_channel: bool) -> None:
    draw = np.random.default_rng(1)
    time, heads, dk, dv = 9, 2, 3, 4
    q, k = (draw.standard_normal((1, time, heads, dk)) / 2 for _ in range(2))
    v = draw.standard_normal((1, time, heads, dv))
    g, b, w = (draw.uniform(0, 1, (1, time, heads, d)) * sign for d, sign in ((dk, -1), (dk, 1), (dv, 1)))
    if not a_channel:
        g, b, w = (np.repeat(each[..., :1], each.shape[-1], axis=-1) for each in (g, b, w))
    given = (g, b, w) if a_channel else (g[..., 0], b[..., 0], w[..., 0])
    q32, k32, v32, g32, b32, w32 = (jnp.asarray(each, jnp.float32) for each in (q, k, v, *given))
    out, _ = recurrent(q32, k32, v32, g32, b=b32, w=w32)
    for head in range(heads):
        wanted = by_numpy(*(each[0, :, head] for each in (q, k, v, g, b, w)))
        np.testing.assert_allclose(out[0, :, head], wanted, rtol=2e-6, atol=2e-6)


def test_a_constant_decay_is_one_of_every_token_and_groups_share_keys() -> None:
    draw = np.random.default_rng(2)
    q, k = (jnp.asarray(draw.standard_normal((2, 7, 2, 3)), jnp.float32) for _ in range(2))
    v = jnp.asarray(draw.standard_normal((2, 7, 4, 5)), jnp.float32)
    g = jnp.asarray([-0.1, -0.2, -0.3, -0.4])
    short = recurrent(q, k, v, g)
    long = recurrent(jnp.repeat(q, 2, axis=2), jnp.repeat(k, 2, axis=2), v, jnp.broadcast_to(g, (2, 7, 4)))
    jax.tree.map(np.testing.assert_array_equal, short, long)


@pytest.mark.parametrize(
    ("gates", "name"),
    [
        ({"g": np.zeros((1, 2, 1, 3))}, "a decay g a channel"),
        ({"b": np.zeros((1, 2, 1))}, "an erase gate b"),
        ({"w": np.zeros((1, 2, 1))}, "a write gate w"),
    ],
)
def test_what_has_no_chunkwise_form_is_refused_by_name_and_computed_when_asked_for(gates: Gates, name: str) -> None:
    ones = jnp.ones((1, 2, 1, 3))
    given: dict[str, Any] = {"g": jnp.zeros(1)} | {
        gate: jnp.asarray(value, jnp.float32) for gate, value in gates.items()
    }
    with pytest.raises(TrainingError, match=rf"{name} has no chunkwise form.*form=Form.RECURRENT"):
        linear_attention(ones, ones, ones, **given)
    out, _ = linear_attention(ones, ones, ones, **given, form=Form.RECURRENT)
    assert bool(jnp.all(out >= 0))


def test_one_token_goes_by_the_recurrence_whatever_its_gates() -> None:
    ones = jnp.ones((1, 1, 1, 3))
    out, _ = linear_attention(ones, ones, ones, jnp.zeros((1, 1, 1, 3)), b=jnp.ones((1, 1, 1)))
    np.testing.assert_array_equal(out, 3 * ones)
