"""The pure step: small batches add up to the large one, devices to one device, and a bad batch changes nothing."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from training.mixers.linear import LinearConfig
from training.model.config import ModelConfig
from training.model.language_model import LanguageModel
from training.optim.guard import guarded
from training.sharding import batch_spec, make_mesh, named_shardings, parameter_specs, shard
from training.state_digest import sha256_of
from training.train_step import TrainState, make_train_step

CONFIG = ModelConfig(vocab_size=64, d_model=16, n_layers=2, d_feed_forward=32, mixers=(LinearConfig(n_heads=2),))
F32 = jnp.dtype("float32")


def batch(rows: int = 8) -> tuple[jax.Array, jax.Array]:
    """Rows whose documents have different lengths, and some of which are mostly padding."""
    source = np.random.default_rng(0)
    tokens = source.integers(0, 64, (rows, 13)).astype(np.int32)
    segments = np.ones_like(tokens)
    for row in range(rows):
        segments[row, 4 + row % 5 :] = 2
        segments[row, 13 - row :] = 0
    return jnp.asarray(tokens), jnp.asarray(segments)


def fresh(optimizer: optax.GradientTransformationExtraArgs) -> TrainState:
    model = LanguageModel.init(CONFIG, jax.random.key(1))
    return TrainState(model, optimizer.init(model), jnp.zeros((), jnp.int32))  # type: ignore[arg-type]


def step(optimizer: optax.GradientTransformationExtraArgs, **options: Any) -> Any:
    return make_train_step(optimizer, z_loss=1e-4, compute=F32, **options)


@pytest.fixture(scope="module")
def optimizer() -> optax.GradientTransformationExtraArgs:
    # Plain descent: Adam would blow a difference in the last bit of a tiny gradient up to its sign.
    return guarded(optax.sgd(0.5))


@pytest.fixture(scope="module")
def plain(optimizer: optax.GradientTransformationExtraArgs) -> Any:
    state, metrics = step(optimizer)(fresh(optimizer), *batch())
    return state, metrics


def close(one: Any, other: Any) -> None:
    for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("parts", [2, 8])
def test_small_batches_add_up_to_the_large_one(
    optimizer: optax.GradientTransformationExtraArgs, plain: Any, parts: int
) -> None:
    state, metrics = step(optimizer, accumulate=parts)(fresh(optimizer), *batch())
    close(metrics, plain[1])
    close(state.model, plain[0].model)


def test_the_loss_is_the_mean_over_the_tokens_that_have_one_before_them(plain: Any) -> None:
    _, segments = batch()
    counted = np.sum((segments[:, 1:] == segments[:, :-1]) & (segments[:, 1:] > 0))
    assert int(plain[1].tokens) == counted
    assert float(plain[1].loss) == pytest.approx(np.log(64), rel=0.2)


def test_devices_compute_what_one_does(optimizer: optax.GradientTransformationExtraArgs, plain: Any) -> None:
    mesh = make_mesh(data=2, fsdp=2, tensor=2)
    with jax.set_mesh(mesh):
        state = fresh(optimizer)
        specs = parameter_specs(state.model, mesh)
        state = state._replace(model=shard(state.model, specs, mesh))
        rows = jax.device_put(batch(), named_shardings(batch_spec(mesh, 8), mesh))
        state, metrics = step(optimizer)(state, *rows)
    close(metrics, plain[1])
    close(jax.device_get(state.model), jax.device_get(plain[0].model))


def test_a_batch_whose_loss_is_no_number_changes_nothing(optimizer: optax.GradientTransformationExtraArgs) -> None:
    state = fresh(optimizer)
    before = sha256_of(state.model)
    tokens, segments = batch()
    state, metrics = step(optimizer)(state, tokens.at[0, 1].set(64), segments)
    assert np.isnan(metrics.loss)
    assert sha256_of(state.model) == before
    assert (int(state.step), int(metrics.skipped), int(metrics.skipped_in_a_row)) == (1, 1, 1)


def test_the_state_that_goes_in_is_given_up(optimizer: optax.GradientTransformationExtraArgs) -> None:
    state = fresh(optimizer)
    step(optimizer)(state, *batch())
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(state.model))
