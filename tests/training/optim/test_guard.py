"""The guard: a step that is not finite leaves no trace but in its counters."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from tests.training.model.patterns import quick_jit
from training.errors import TrainingError
from training.optim.build import OptimConfig, build_optimizer
from training.optim.guard import GuardState, all_finite, guarded
from training.optim.kron_config import KronConfig
from training.optim.learning import LearningConfig

CONFIG: OptimConfig = KronConfig(dense_steps=5, refresh_period=2)
LEARNING = LearningConfig(warmup_steps=2, weight_decay=0.1)
BAD_STEP, STEPS = 7, 20


def bits(tree: Any) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(tree)]


def parameters() -> dict[str, jax.Array]:
    """With zeros of both signs, which an update of 0.0 would not leave apart."""
    draw = np.random.default_rng(0)
    w = draw.standard_normal((8, 6)).astype(np.float32)
    w[0, :2] = 0.0, -0.0
    return {"w": jnp.asarray(w), "half": jnp.asarray(draw.standard_normal(5), jnp.bfloat16).at[0].set(-0.0)}


def gradients(step: int) -> dict[str, jax.Array]:
    draw = np.random.default_rng(step + 1)
    return jax.tree.map(lambda leaf: jnp.asarray(draw.standard_normal(leaf.shape), leaf.dtype), parameters())


@pytest.fixture(scope="module")
def optimizer() -> optax.GradientTransformationExtraArgs:
    return build_optimizer(CONFIG, LEARNING, steps=STEPS, stacked=lambda path: False)


@pytest.fixture(scope="module")
def train(optimizer: optax.GradientTransformationExtraArgs) -> Any:
    def step(params: Any, state: GuardState, grads: Any, loss: jax.Array) -> tuple[Any, GuardState]:
        updates, state = optimizer.update(grads, state, params, loss=loss)
        return optax.apply_updates(params, updates), state

    return quick_jit(step)


BAD = {
    "nan": (jnp.nan, 1.0),
    "inf": (jnp.inf, 1.0),
    "minus inf": (-jnp.inf, 1.0),
    "nan loss": (None, jnp.nan),
    "inf loss": (None, jnp.inf),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("leaf", ["w", "half"])
def test_one_bad_step_in_twenty_is_no_step(
    optimizer: optax.GradientTransformationExtraArgs, train: Any, kind: str, leaf: str
) -> None:
    element, loss = BAD[kind]
    params, state = parameters(), optimizer.init(parameters())
    for step in range(STEPS):
        grads = gradients(step)
        if step == BAD_STEP and element is not None:
            grads[leaf] = grads[leaf].at[(-1,) * grads[leaf].ndim].set(element)
        before = bits(params), bits(state.inner)
        params, state = train(params, state, grads, jnp.float32(loss if step == BAD_STEP else 1.0))
        assert ((bits(params), bits(state.inner)) == before) is (step == BAD_STEP)
        assert (int(state.skipped), int(state.skipped_in_a_row)) == (step >= BAD_STEP, step == BAD_STEP)
    assert all_finite((params, state))


def test_a_run_without_the_bad_batch_ends_in_the_same_bits(
    optimizer: optax.GradientTransformationExtraArgs, train: Any
) -> None:
    ends = []
    for bad_steps in ((), (2, 3)):
        params, state, good = parameters(), optimizer.init(parameters()), 0
        for step in range(6 + len(bad_steps)):
            loss = jnp.nan if step in bad_steps else 1.0
            params, state = train(params, state, gradients(good), jnp.float32(loss))
            good += step not in bad_steps
        ends.append((bits(params), bits(state.inner)))
    assert ends[0] == ends[1]


def test_those_in_a_row_are_counted_until_a_good_one(
    optimizer: optax.GradientTransformationExtraArgs, train: Any
) -> None:
    params, state, seen = parameters(), optimizer.init(parameters()), []
    for loss in (1.0, jnp.nan, jnp.nan, jnp.nan, 1.0, jnp.nan, 1.0):
        params, state = train(params, state, gradients(0), jnp.float32(loss))
        seen.append((int(state.skipped), int(state.skipped_in_a_row)))
    assert seen == [(0, 0), (1, 1), (2, 2), (3, 3), (3, 0), (4, 1), (4, 0)]


def test_the_update_of_a_skipped_step_is_minus_zero() -> None:
    params, optimizer = parameters(), guarded(optax.trace(0.9))
    updates, _ = optimizer.update(gradients(0), optimizer.init(params), params, loss=jnp.float32(jnp.nan))
    for update, parameter in zip(jax.tree.leaves(updates), jax.tree.leaves(params), strict=True):
        assert update.dtype == parameter.dtype
        assert not np.any(update)
        assert np.all(np.signbit(update))


def test_the_guard_adds_no_copy_of_the_state() -> None:
    inner = optax.trace(0.9)
    grads = {"w": jnp.zeros((512, 512))}

    def scratch(tx: optax.GradientTransformation, **extra: Any) -> int:
        step = jax.jit(lambda grads, state: tx.update(grads, state, **extra), donate_argnums=1)
        return int(step.lower(grads, tx.init(grads)).compile().memory_analysis().temp_size_in_bytes)

    assert scratch(guarded(inner), loss=jnp.float32(0)) < scratch(inner) + 4 * 512 * 512 // 10


def test_a_state_that_is_not_guarded_is_refused() -> None:
    with pytest.raises(TrainingError, match="the state is TraceState, not that of a guarded optimizer"):
        guarded(optax.trace(0.9)).update(jnp.ones(2), optax.trace(0.9).init(jnp.ones(2)))


def test_integers_and_nothing_are_finite() -> None:
    assert all_finite({})
    assert all_finite({"count": jnp.int32(3), "none": None, "empty": jnp.zeros((0,))})


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("element", [jnp.nan, jnp.inf, -jnp.inf])
def test_one_element_in_many_is_found(dtype: str, element: float) -> None:
    large = jnp.full((63, 65), jnp.finfo(dtype).max, dtype)
    found = jax.jit(all_finite)
    assert found({"large": large, "other": jnp.ones(2)})
    assert not found({"large": large.at[62, 64].set(element), "other": jnp.ones(2)})
