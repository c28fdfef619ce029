"""The blockwise loss against optax's on the whole logits, its memory, and which tokens count."""

from __future__ import annotations

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jaxtyping import Array

from training.model.documents import next_is_of_same_document, positions_in_documents
from training.model.loss import LossSums, blockwise_cross_entropy, next_token_loss

ROWS, TIME, CHANNELS, VOCABULARY = 3, 11, 8, 29
Z_LOSS = 0.01


@dataclasses.dataclass
class Inputs:
    """A batch of hidden states, and what is wanted of them."""

    hidden: Array
    weight: Array
    targets: Array
    counted: Array


@pytest.fixture(scope="module")
def inputs() -> Inputs:
    """Logits of a spread of about 3, so that probabilities are uneven."""
    keys = jax.random.split(jax.random.key(0), 4)
    return Inputs(
        hidden=jax.random.normal(keys[0], (ROWS, TIME, CHANNELS)),
        weight=jax.random.normal(keys[1], (VOCABULARY, CHANNELS)),
        targets=jax.random.randint(keys[2], (ROWS, TIME), 0, VOCABULARY),
        counted=jax.random.bernoulli(keys[3], 0.7, (ROWS, TIME)),
    )


def oracle(hidden: Array, weight: Array, inputs: Inputs) -> tuple[Array, Array]:
    """Both sums from the whole logits, by optax."""
    logits = hidden @ weight.T
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, inputs.targets)
    squares = jnp.square(jax.nn.logsumexp(logits, axis=-1))
    return jnp.sum(losses * inputs.counted), jnp.sum(squares * inputs.counted)


def blockwise(hidden: Array, weight: Array, inputs: Inputs, block: int) -> tuple[Array, Array]:
    return blockwise_cross_entropy(hidden, weight, inputs.targets, inputs.counted, block=block)


@pytest.mark.parametrize("block", [1, 12, 4096])  # 1, 4 and all of the 11 positions at once
def test_values_and_gradients_are_those_of_optax(inputs: Inputs, block: int) -> None:
    def of(sums: tuple[Array, Array]) -> Array:
        return sums[0] + Z_LOSS * sums[1]

    def ours(hidden: Array, weight: Array) -> Array:
        return of(blockwise(hidden, weight, inputs, block))

    def theirs(hidden: Array, weight: Array) -> Array:
        return of(oracle(hidden, weight, inputs))

    np.testing.assert_allclose(
        blockwise(inputs.hidden, inputs.weight, inputs, block), oracle(inputs.hidden, inputs.weight, inputs), rtol=2e-6
    )
    got = jax.jit(jax.grad(ours, argnums=(0, 1)))(inputs.hidden, inputs.weight)
    wanted = jax.grad(theirs, argnums=(0, 1))(inputs.hidden, inputs.weight)
    for mine, other in zip(got, wanted, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-5)


def test_the_gradient_of_each_sum_is_its_own(inputs: Inputs) -> None:
    for which in (0, 1):
        got = jax.grad(lambda h, which=which: blockwise(h, inputs.weight, inputs, 6)[which])(inputs.hidden)
        wanted = jax.grad(lambda h, which=which: oracle(h, inputs.weight, inputs)[which])(inputs.hidden)
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def test_a_gradient_in_bf16_is_summed_up_in_fp32() -> None:
    # 4096 tokens each add 1/2 to the row of token 0 (and take as much from that of token 1). A sum in bf16 would stop
    # at 128, where 1/2 is less than half of what one of its steps is there.
    tokens = 4096
    ones = jnp.ones((1, tokens, 1), jnp.bfloat16)
    targets = jnp.ones((1, tokens), jnp.int32)
    counted = jnp.ones((1, tokens), bool)
    weight = jnp.zeros((2, 1), jnp.bfloat16)
    gradient = jax.grad(lambda w: blockwise_cross_entropy(ones, w, targets, counted, block=16)[0])(weight)
    assert gradient.dtype == jnp.bfloat16
    np.testing.assert_array_equal(np.asarray(gradient, np.float32), [[tokens / 2], [-tokens / 2]])


@pytest.mark.parametrize("differentiated", [False, True])
def test_the_logits_of_the_whole_batch_are_never_there(differentiated: bool) -> None:
    rows, time, channels, vocabulary, block = 2, 512, 8, 1024, 32

    def loss(hidden: Array, weight: Array) -> Array:
        targets = jnp.zeros((rows, time), jnp.int32)
        return blockwise_cross_entropy(hidden, weight, targets, jnp.ones((rows, time), bool), block=block)[0]

    run = jax.grad(loss, argnums=(0, 1)) if differentiated else loss
    compiled = jax.jit(run).lower(jnp.zeros((rows, time, channels)), jnp.zeros((vocabulary, channels))).compile()
    memory = compiled.memory_analysis()
    if memory is None:
        pytest.skip("this backend does not say what a program needs")
    of_block, of_all = 4 * block * vocabulary, 4 * rows * time * vocabulary
    assert memory.temp_size_in_bytes < 6 * of_block < of_all / 5


def test_a_token_outside_the_vocabulary_is_not_passed_over(inputs: Inputs) -> None:
    for wrong in (VOCABULARY, -1):
        targets = inputs.targets.at[1, 3].set(wrong)
        everywhere = jnp.ones_like(inputs.counted)
        assert jnp.isnan(blockwise_cross_entropy(inputs.hidden, inputs.weight, targets, everywhere)[0])


def test_positions_count_from_0_in_each_document() -> None:
    segments = jnp.array([[1, 1, 1, 2, 2, 3, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1]])
    np.testing.assert_array_equal(positions_in_documents(segments)[0, :6], [0, 1, 2, 0, 1, 0])
    np.testing.assert_array_equal(positions_in_documents(segments)[1], range(8))
    goes_on = positions_in_documents(segments, first=jnp.array([5, 10]))
    np.testing.assert_array_equal(goes_on[0, :6], [5, 6, 7, 0, 1, 0])
    np.testing.assert_array_equal(goes_on[1], range(10, 18))


def test_loss_stands_only_where_the_next_token_is_of_the_same_document() -> None:
    segments = jnp.array([[1, 1, 2, 2, 2, 3, 0, 0]])
    np.testing.assert_array_equal(next_is_of_same_document(segments), [[1, 0, 1, 1, 0, 0, 0]])


class Table(eqx.Module):
    """A bigram model: the hidden state of a token is its row."""

    rows: Array
    output_weight: Array

    def hidden(self, tokens: Array, positions: Array, segments: Array) -> Array:
        """The rows, moved a little by the position so that a wrong one shows."""
        return self.rows[tokens] + 0.1 * positions[..., None]


@pytest.fixture(scope="module")
def table() -> Table:
    of_rows, of_outputs = jax.random.split(jax.random.key(1))
    return Table(
        jax.random.normal(of_rows, (VOCABULARY, CHANNELS)), jax.random.normal(of_outputs, (VOCABULARY, CHANNELS))
    )


@pytest.fixture(scope="module")
def batch() -> tuple[Array, Array]:
    tokens = jax.random.randint(jax.random.key(2), (4, TIME + 1), 0, VOCABULARY)
    segments = jnp.array([[1] * 12, [1] * 5 + [2] * 7, [1, 2, 3] + [4] * 6 + [0] * 3, [1] * 11 + [0]])
    return tokens, segments


def test_a_loss_worked_out_by_hand() -> None:
    # Two tokens, logits (0, ln 3) whatever is read: ln 4 - ln 3 for token 1, ln 4 for token 0.
    model = Table(jnp.ones((2, 1)), jnp.array([[0.0], [math.log(3)]]))
    tokens, segments = jnp.array([[0, 1, 0, 1]]), jnp.array([[1, 1, 1, 2]])
    sums = next_token_loss(Still(model.rows, model.output_weight), tokens, segments)
    assert int(sums.count) == 2
    assert float(sums.loss_sum) == pytest.approx(2 * math.log(4) - math.log(3), rel=1e-6)
    assert float(sums.z_sum) == pytest.approx(2 * math.log(4) ** 2, rel=1e-6)
    assert float(sums.mean_loss()) == pytest.approx(math.log(4) - math.log(3) / 2, rel=1e-6)


class Still(Table):
    """The bigram model without positions."""

    def hidden(self, tokens: Array, positions: Array, segments: Array) -> Array:
        """The rows."""
        return self.rows[tokens]


def test_small_batches_add_up_to_the_large_one(table: Table, batch: tuple[Array, Array]) -> None:
    tokens, segments = batch

    def objective(model: Table, tokens: Array, segments: Array) -> tuple[Array, LossSums]:
        sums = next_token_loss(model, tokens, segments, block=8)
        return sums.objective(Z_LOSS), sums

    @jax.jit
    def run(tokens: Array, segments: Array) -> tuple[LossSums, Table]:
        (_, sums), gradient = jax.value_and_grad(objective, has_aux=True)(table, tokens, segments)
        return sums, gradient

    whole, gradient = run(tokens, segments)
    parts = [run(tokens[rows], segments[rows]) for rows in (slice(0, 2), slice(2, 4))]
    added = parts[0][0] + parts[1][0]
    assert int(added.count) == int(whole.count) == 11 + 10 + 5 + 10
    np.testing.assert_allclose(added.loss_sum, whole.loss_sum, rtol=1e-6)
    np.testing.assert_allclose(added.z_sum, whole.z_sum, rtol=1e-6)
    summed = jax.tree.map(lambda *each: sum(each), *(part[1] for part in parts))
    for mine, other in zip(jax.tree.leaves(summed), jax.tree.leaves(gradient), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)


def test_a_batch_of_padding_alone_has_no_loss_and_no_gradient(table: Table) -> None:
    tokens, segments = jnp.zeros((2, 5), jnp.int32), jnp.zeros((2, 5), jnp.int32)
    gradient = jax.grad(lambda m: next_token_loss(m, tokens, segments).objective(Z_LOSS))(table)
    sums = next_token_loss(table, tokens, segments)
    assert (float(sums.loss_sum), float(sums.z_sum), int(sums.count), float(sums.mean_loss())) == (0, 0, 0, 0)
    assert all(not jnp.any(leaf) for leaf in jax.tree.leaves(gradient))
