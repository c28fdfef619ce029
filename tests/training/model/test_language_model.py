"""The forward and backward pass: scanned as unrolled, checkpointed as not, and counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from tests.training.model.patterns import LIGHTNING, SOFTMAX, VOCABULARY, fresh, quick_jit, tiny
from training.model.config import CheckpointPolicy
from training.model.embedding import Embedding
from training.model.language_model import LanguageModel, parameter_count, unrolled
from training.model.loss import next_token_loss
from training.model.paths import dotted, is_stacked

ROWS, TIME = 3, 11
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
LENGTHS = (4, 1, 6)


@pytest.fixture(scope="module")
def tokens() -> Array:
    return jax.random.randint(jax.random.key(1), (ROWS, TIME), 0, VOCABULARY)


@pytest.fixture(scope="module")
def segments() -> Array:
    """Three documents in the first row; one and padding in the others."""
    first = jnp.repeat(jnp.array([1, 2, 3]), jnp.array(LENGTHS))
    return jnp.stack([first, *(jnp.where(jnp.arange(TIME) < 9, 1, 0),) * (ROWS - 1)])


@pytest.fixture(scope="module")
def deep() -> LanguageModel:
    """Two layers of one stack."""
    return fresh(tiny(LIGHTNING))


@quick_jit
def slope(model: LanguageModel, tokens: Array, segments: Array) -> tuple[Array, LanguageModel]:
    """The objective and its gradient."""
    return jax.value_and_grad(lambda m: next_token_loss(m, tokens, segments, block=8).objective(1e-3))(model)


@pytest.fixture(scope="module")
def wanted(deep: LanguageModel, tokens: Array, segments: Array) -> tuple[Array, LanguageModel]:
    """Its objective and gradient, without any recomputation."""
    return slope(deep, tokens, segments)


def assert_close(got: Any, wanted: Any) -> None:
    """Every array of two trees, by the size of the greatest number in it."""
    for mine, other in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        scale = float(jnp.max(jnp.abs(other), initial=1e-3))
        np.testing.assert_allclose(mine / scale, other / scale, **CLOSE)


def test_what_stands_in_padding_changes_no_loss_and_no_gradient(
    deep: LanguageModel, tokens: Array, segments: Array, wanted: tuple[Array, LanguageModel]
) -> None:
    loss, gradient = slope(deep, jnp.where(segments > 0, tokens, -1), segments)
    assert float(loss) == float(wanted[0])
    for mine, other in zip(jax.tree.leaves(gradient), jax.tree.leaves(wanted[1]), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_stacked_and_scanned_is_a_loop_over_layers(
    deep: LanguageModel, tokens: Array, segments: Array, wanted: tuple[Array, LanguageModel]
) -> None:
    loss, gradient = slope(unrolled(deep), tokens, segments)
    np.testing.assert_allclose(loss, wanted[0], rtol=1e-6)
    assert len(gradient.blocks) == 2 * len(deep.blocks) == deep.config.n_layers
    assert_close(gradient, unrolled(wanted[1]))


@pytest.mark.parametrize("policy", [CheckpointPolicy.DOTS, CheckpointPolicy.FULL])
def test_what_is_computed_again_is_what_it_was(
    deep: LanguageModel,
    tokens: Array,
    segments: Array,
    wanted: tuple[Array, LanguageModel],
    policy: CheckpointPolicy,
) -> None:
    loss, gradient = slope(_with_policy(deep, policy), tokens, segments)
    np.testing.assert_allclose(loss, wanted[0], rtol=1e-6)
    assert_close(jax.tree.leaves(gradient), jax.tree.leaves(wanted[1]))


def test_each_policy_keeps_less_than_the_one_before(deep: LanguageModel, tokens: Array, segments: Array) -> None:
    def kept(policy: CheckpointPolicy) -> int:
        """Numbers that stand in memory between the forward and the backward pass."""
        _, pull = jax.eval_shape(
            lambda m: jax.vjp(lambda at: next_token_loss(at, tokens, segments).loss_sum, m), _with_policy(deep, policy)
        )
        return sum(leaf.size for leaf in jax.tree.leaves(pull))

    nothing, dots, full = (kept(policy) for policy in CheckpointPolicy)
    assert nothing > 1.2 * dots
    assert dots > 1.2 * full


def _with_policy(model: LanguageModel, policy: CheckpointPolicy) -> LanguageModel:
    config = replace(model.config, checkpoint_policy=policy)
    return LanguageModel(model.embedding, model.blocks, model.final_norm, model.lm_head, config)


def test_stacks_have_the_repeats_first_and_every_layer_is_its_own(deep: LanguageModel) -> None:
    for path, leaf in jax.tree_util.tree_leaves_with_path(deep):
        assert is_stacked(path) == dotted(path).startswith("blocks.")
        if is_stacked(path):
            assert leaf.shape[0] == 2, dotted(path)
    gate = deep.blocks[0].feed_forward.gate_proj.weight
    assert abs(float(jnp.corrcoef(gate[0].ravel(), gate[1].ravel())[0, 1])) < 0.2


def test_layers_do_not_depend_on_how_they_are_stacked(deep: LanguageModel) -> None:
    apart = fresh(tiny(LIGHTNING, LIGHTNING, n_layers=2))
    for mine, other in zip(jax.tree.leaves(unrolled(deep)), jax.tree.leaves(apart), strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("tied", [True, False])
def test_parameters_are_counted(tied: bool) -> None:
    # Per layer of width d = 16 with 2 heads of 8 and 1 of keys and values: q, o (d d each), k, v (8 d each), three
    # matrices of the feed-forward (24 d each), two norms (d each).
    d, hidden, layers = 16, 24, 2
    of_layer = 2 * d * d + 2 * 8 * d + 3 * hidden * d + 2 * d
    wanted = VOCABULARY * d * (1 if tied else 2) + layers * of_layer + d
    config = tiny(SOFTMAX, tie_embeddings=tied)
    assert parameter_count(jax.eval_shape(lambda key: LanguageModel.init(config, key), jax.random.key(0))) == wanted


def test_numbers_that_are_not_trained_are_not_counted(deep: LanguageModel) -> None:
    assert parameter_count(deep) == sum(leaf.size for leaf in jax.tree.leaves(deep)) - 2 * 2  # 2 layers of 2 slopes


def test_a_fresh_model_predicts_nothing_and_is_scaled_by_its_depth() -> None:
    model = fresh(tiny(LIGHTNING, vocab_size=256, d_model=64, d_feed_forward=96))
    tokens = jax.random.randint(jax.random.key(1), (16, 32), 0, 256)
    logits = quick_jit(lambda m, t: m(t))(model, tokens)
    # Logits of variance 1 have a log-sum-exp of ln V + 1/2.
    assert float(jnp.mean(jax.nn.logsumexp(logits, axis=-1))) == pytest.approx(np.log(256) + 0.5, abs=0.2)
    # Input and output are one matrix, and yet the token just read does not stand out: not by sqrt(64 / 2) = 5.7.
    assert float(jnp.mean(jnp.take_along_axis(logits, tokens[..., None], axis=-1))) < 2.5
    down = model.blocks[0].feed_forward.down_proj.weight
    assert float(jnp.std(down)) == pytest.approx((96 * 2 * 2) ** -0.5, rel=0.05)


def test_untied_logits_come_from_their_own_matrix(deep: LanguageModel) -> None:
    head = Embedding(jax.random.normal(jax.random.key(3), (VOCABULARY, 16)))
    untied = LanguageModel(deep.embedding, deep.blocks, deep.final_norm, head, deep.config)
    hidden = jax.random.normal(jax.random.key(2), (ROWS, TIME, 16))
    np.testing.assert_allclose(untied.logits(hidden), hidden @ head.weight.T, **CLOSE)


def test_a_token_outside_the_vocabulary_is_not_passed_over(deep: LanguageModel) -> None:
    assert jnp.all(jnp.isnan(deep.embedding(jnp.array([VOCABULARY]))))
    np.testing.assert_array_equal(deep.embedding(jnp.array([3]))[0], deep.embedding.weight[3])
