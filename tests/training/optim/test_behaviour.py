"""What every optimizer does: a new one is a file in training/optim, and a row of the table beside this."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import PartitionSpec
from jax.tree_util import keystr
from jaxtyping import Array

from tests.training.model.patterns import quick_jit
from tests.training.optim.optimizers import ROWS, Row, every_row
from training.optim.build import build_optimizer
from training.optim.guard import GuardState, all_finite
from training.optim.learning import LearningConfig, ScheduleKind
from training.optim.state_specs import optimizer_specs
from training.sharding import make_mesh, named_shardings

RATE, DECAY = 0.02, 0.1
CONSTANT: Final = LearningConfig(rate=RATE, warmup_steps=0, schedule=ScheduleKind.CONSTANT, weight_decay=DECAY)


def stacked(path: Any) -> bool:
    return "stack" in keystr(path)


def build(row: Row, learning: LearningConfig = CONSTANT, steps: int = 200) -> optax.GradientTransformationExtraArgs:
    return build_optimizer(row.config, learning, steps=steps, stacked=stacked)


def odd_parameters() -> dict[str, Any]:
    """Every shape that is legal, one dtype of half the width, and leaves that no optimizer may touch."""
    draw = np.random.default_rng(0)
    shapes = {"scalar": (), "one": (1,), "one_by_one": (1, 1), "column": (50, 1), "fourteen": (1,) * 14}
    shapes |= {"conv": (3, 3, 2, 8), "embedding": (20, 6), "first": (8, 6), "second": (8, 6), "bias": (6,)}
    tree: dict[str, Any] = {
        name: jnp.asarray(0.3 * draw.standard_normal(shape) + 0.3, jnp.float32) for name, shape in shapes.items()
    }
    tree["stack"] = jnp.stack([tree["first"], tree["second"]])
    tree["stack_bias"] = jnp.ones((2, 6))
    tree["half"] = tree["first"].astype(jnp.bfloat16)
    return tree | {
        "no_rows": jnp.zeros((0, 4)),
        "no_numbers": jnp.zeros((0,)),
        "nothing": {},
        "none": None,
        "integers": jnp.arange(6, dtype=jnp.int32).reshape(2, 3),
    }


TRAINED: Final = (
    "scalar",
    "one",
    "one_by_one",
    "column",
    "fourteen",
    "conv",
    "embedding",
    "first",
    "bias",
    "half",
    "stack",
)


class Trainer:
    """One optimizer on the odd tree, whose loss is the square of every number. Its step is compiled once."""

    def __init__(self, row: Row) -> None:
        self.optimizer = build(row)
        self.traces = 0

        def step(params: Any, state: GuardState, size: Array) -> tuple[Any, GuardState, Any]:
            self.traces += 1
            grads = jax.tree.map(lambda leaf: leaf * size.astype(leaf.dtype), params)
            updates, state = self.optimizer.update(grads, state, params, loss=jnp.ones(()))
            return optax.apply_updates(params, updates), state, updates

        self._step = quick_jit(step, donate_argnums=(0, 1))

    def run(self, params: Any, state: GuardState, size: float, steps: int) -> tuple[Any, GuardState, Any]:
        """So many steps, with gradients of that size; the updates are those of the last. What goes in is given up."""
        updates = None
        for _ in range(steps):
            params, state, updates = self._step(params, state, jnp.float32(size))
        return params, state, updates


@pytest.fixture(scope="module")
def trainers() -> dict[str, Trainer]:
    return {}


@pytest.fixture(params=ROWS)
def trainer(request: pytest.FixtureRequest, trainers: dict[str, Trainer]) -> Trainer:
    """One for each row, whose program is compiled once for all tests."""
    if request.param not in trainers:
        trainers[request.param] = Trainer(ROWS[request.param])
    return trainers[request.param]


def bits(tree: Any) -> list[tuple[str, bytes]]:
    return [(str(leaf.dtype), np.asarray(leaf).tobytes()) for leaf in jax.tree.leaves(tree)]


def test_two_hundred_steps_train_every_shape_in_one_program(trainer: Trainer) -> None:
    """Donated, and warnings are errors here: no buffer is left over."""
    before = odd_parameters()
    params = odd_parameters()
    dtypes = [leaf.dtype for leaf in jax.tree.leaves(trainer.optimizer.init(params))]
    params, state, updates = trainer.run(params, trainer.optimizer.init(params), 1.0, 200)
    assert trainer.traces == 1
    assert [leaf.dtype for leaf in jax.tree.leaves(state)] == dtypes
    assert all(dtype in (jnp.float32, jnp.int32) for dtype in dtypes)
    for update, parameter in zip(jax.tree.leaves(updates), jax.tree.leaves(before), strict=True):
        assert (update.dtype, update.shape) == (parameter.dtype, parameter.shape)
    assert all_finite((params, state))
    for name in TRAINED:
        assert np.sum(np.square(params[name], dtype=float)) < 0.5 * np.sum(np.square(before[name], dtype=float)), name
    assert bits(params["integers"]) == bits(before["integers"])
    assert (params["no_rows"].shape, params["none"], params["nothing"]) == ((0, 4), None, {})


def test_without_a_gradient_matrices_decay_and_nothing_else_moves(trainer: Trainer) -> None:
    """The first gradient of all may well be zero, and nothing is divided by it."""
    before = odd_parameters()
    params = odd_parameters()
    params, state, updates = trainer.run(params, trainer.optimizer.init(params), 0.0, 1)
    decaying = {"one_by_one", "column", "fourteen", "conv", "embedding", "first", "second", "half", "stack"}
    for path, update in jax.tree_util.tree_leaves_with_path(updates):
        name = path[0].key
        expected = -RATE * DECAY * np.asarray(before[name], float) if name in decaying else np.zeros(update.shape)
        np.testing.assert_allclose(np.asarray(update, float), expected, rtol=1e-2 if name == "half" else 1e-5)
    params, state, _ = trainer.run(params, state, 1.0, 20)
    assert all_finite((params, state))
    assert np.sum(np.square(params["first"])) < np.sum(np.square(before["first"]))


def test_a_layer_of_a_stack_is_a_parameter_by_itself(trainer: Trainer) -> None:
    params = odd_parameters()
    params, _, _ = trainer.run(params, trainer.optimizer.init(params), 1.0, 4)
    np.testing.assert_allclose(params["stack"], np.stack([params["first"], params["second"]]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [1e-30, 1e-20, 1e-10, 1e10, 1e20, 1e30])
def test_gradients_of_every_size_leave_finite_numbers(trainer: Trainer, size: float) -> None:
    params = odd_parameters()
    params, state, updates = trainer.run(params, trainer.optimizer.init(params), size, 5)
    assert all_finite((params, state, updates))
    assert int(state.skipped) == 0
    params, state, updates = trainer.run(params, state, 1.0, 5)
    assert all_finite((params, state, updates))
    assert trainer.traces == 1


def test_a_state_that_went_through_the_host_goes_on_bit_for_bit(trainer: Trainer) -> None:
    params = odd_parameters()
    params, state, _ = trainer.run(params, trainer.optimizer.init(params), 1.0, 3)
    saved = jax.tree.map(lambda leaf: np.array(leaf, copy=True), (params, state))
    straight = trainer.run(params, state, 1.0, 3)
    resumed = trainer.run(*jax.tree.map(jnp.asarray, saved), 1.0, 3)
    assert bits(straight) == bits(resumed)


@every_row
def test_an_empty_tree_is_no_work(row: Row) -> None:
    optimizer = build(row)
    updates, state = optimizer.update({}, optimizer.init({}), {}, loss=jnp.ones(()))
    assert updates == {}
    assert int(state.skipped) == 0


@every_row
def test_a_large_vocabulary_takes_no_more_than_a_large_matrix(row: Row) -> None:
    """Shapes alone: a dense factor of 262 144 tokens would take 256 GiB."""
    shapes = {
        "embedding": jax.ShapeDtypeStruct((262_144, 4096), "float32"),
        "w": jax.ShapeDtypeStruct((4096, 4096), "float32"),
    }
    optimizer = build_optimizer(row.toy_config or row.config, CONSTANT, steps=200, stacked=stacked)
    state = jax.eval_shape(optimizer.init, shapes)
    taken = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    numbers = sum(leaf.size for leaf in shapes.values())
    assert taken / numbers <= row.bytes_per_number
    updates, after = jax.eval_shape(lambda *given: optimizer.update(*given, loss=jnp.ones(())), shapes, state, shapes)
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), (updates, after)) == jax.tree.map(
        lambda leaf: (leaf.shape, leaf.dtype), (shapes, state)
    )


SHARDED: Final = {
    "both": ((32, 32), PartitionSpec("fsdp", "tensor")),
    "rows": ((16, 24), PartitionSpec("fsdp", None)),
    "stack": ((2, 16, 16), PartitionSpec(None, "tensor", "fsdp")),
    "bias": ((16,), PartitionSpec("tensor")),
    "scale": ((), PartitionSpec()),
}


@every_row
def test_eight_devices_compute_what_one_does(row: Row) -> None:
    draw = np.random.default_rng(1)
    params = {name: jnp.asarray(draw.standard_normal(shape), jnp.float32) for name, (shape, _) in SHARDED.items()}
    batches = [
        jax.tree.map(lambda leaf: jnp.asarray(draw.standard_normal(leaf.shape), jnp.float32), params) for _ in range(6)
    ]
    optimizer = build(row)

    def step(params: Any, state: GuardState, grads: Any) -> tuple[Any, GuardState]:
        updates, state = optimizer.update(grads, state, params, loss=jnp.ones(()))
        return optax.apply_updates(params, updates), state

    def run(step: Callable[..., Any], params: Any, state: GuardState) -> tuple[Any, GuardState]:
        for grads in batches:
            params, state = step(params, state, grads)
        return params, state

    mesh = make_mesh(data=2, fsdp=2, tensor=2)
    specs = {name: spec for name, (_, spec) in SHARDED.items()}
    state_specs = optimizer_specs(row.config, optimizer.init(params), params, specs, mesh, stacked=stacked)
    lain = named_shardings((specs, state_specs), mesh)
    alone = run(quick_jit(step), params, optimizer.init(params))
    shared = run(
        quick_jit(step, out_shardings=lain, donate_argnums=(0, 1)),
        *jax.device_put((params, optimizer.init(params)), lain),
    )
    for left, right in zip(jax.tree.leaves(alone), jax.tree.leaves(shared), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5)
    split = [leaf for leaf in jax.tree.leaves(shared[1]) if not leaf.sharding.is_fully_replicated]
    assert sum(leaf.size for leaf in split) > 0.9 * sum(leaf.size for leaf in jax.tree.leaves(shared[1]))
