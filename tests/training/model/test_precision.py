"""What is cast for a step, and what stays in fp32."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from tests.training.model.patterns import LIGHTNING, LINEAR, SSD, VOCABULARY, fresh, quick_jit, tiny
from training.errors import TrainingError
from training.model.language_model import LanguageModel
from training.model.loss import next_token_loss
from training.model.paths import dotted
from training.model.precision import cast_for_compute


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return fresh(tiny(LIGHTNING, SSD))


def test_norms_and_decays_stay_in_fp32_and_matrices_do_not(model: LanguageModel) -> None:
    cast = cast_for_compute(model, jnp.bfloat16)
    kept = {dotted(path) for path, leaf in jax.tree_util.tree_leaves_with_path(cast) if leaf.dtype == jnp.float32}
    norms = {
        f"blocks.{place}.{name}.weight"
        for place in (0, 1)
        for name in ("mixer_norm", "feed_forward_norm", "mixer.norm")
    }
    decays = {"blocks.0.mixer.slopes", "blocks.1.mixer.a_log", "blocks.1.mixer.dt_bias", "blocks.1.mixer.d_skip"}
    assert kept == norms | decays | {"final_norm.weight"}
    assert {leaf.dtype for leaf in jax.tree.leaves(cast)} == {jnp.dtype(jnp.float32), jnp.dtype(jnp.bfloat16)}


def test_a_step_in_bf16_has_fp32_gradients_near_those_of_fp32() -> None:
    model = fresh(tiny(LINEAR))
    tokens = jax.random.randint(jax.random.key(1), (4, 12), 0, VOCABULARY)

    def loss(at: LanguageModel, dtype: jnp.dtype) -> Array:
        return next_token_loss(cast_for_compute(at, dtype), tokens, jnp.ones_like(tokens)).mean_loss()

    @quick_jit
    def both(at: LanguageModel) -> tuple[tuple[Array, LanguageModel], ...]:
        return tuple(jax.value_and_grad(loss)(at, jnp.dtype(each)) for each in (jnp.bfloat16, jnp.float32))

    (rough, of_rough), (exact, of_exact) = both(model)
    assert rough.dtype == jnp.float32
    assert float(rough) == pytest.approx(float(exact), abs=0.02)
    for path, got in jax.tree_util.tree_leaves_with_path(of_rough):
        wanted = dict(jax.tree_util.tree_leaves_with_path(of_exact))[path]
        assert got.dtype == jnp.float32
        error = float(jnp.linalg.norm(got - wanted))
        assert error <= 0.05 * float(jnp.linalg.norm(wanted)), dotted(path)


def test_a_cast_to_fp32_is_the_model_itself(model: LanguageModel) -> None:
    for mine, other in zip(jax.tree.leaves(cast_for_compute(model, "float32")), jax.tree.leaves(model), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_fp16_is_refused(model: LanguageModel) -> None:
    with pytest.raises(TrainingError, match="float16 overflows in a state"):
        cast_for_compute(model, jnp.float16)
