"""How leaves are cut into blocks, and that the cut loses nothing."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from training.errors import TrainingError
from training.optim.blocks import even_split, merged_axes, plan_blocks
from training.optim.chunks import Chunks, from_lanes, lanes_of, put_chunk, refresh_chunks, take_chunk, to_lanes
from training.optim.kron import nothing_stacked
from training.optim.kron_config import FactorDtype, KronConfig, Memory
from training.optim.kron_state import init_state, leaf_bytes, state_bytes
from training.optim.rotation import chunk_range, is_balanced, precondition_rate
from training.optim.stacks import gather_blocks, scatter_blocks


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((), (1,)),
        ((1,), (1,)),
        ((1, 1), (1,)),
        ((50, 1), (50,)),
        ((64, 3), (64, 3)),
        ((3, 3, 64, 128), (576, 128)),
        ((64, 3, 3), (64, 9)),
        ((16, 12, 64), (16, 12, 64)),
        ((384, 6, 64), (384, 384)),
        ((1,) * 14, (1,)),
        ((2,) * 14, (256, 64)),
    ],
)
def test_small_dimensions_are_merged_and_real_ones_are_not(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    assert merged_axes(shape) == axes


@pytest.mark.parametrize(
    ("size", "limit", "runs"),
    [
        (100, 256, ((100, 1),)),
        (384, 256, ((192, 2),)),
        (1536, 256, ((256, 6),)),
        (257, 256, ((129, 1), (128, 1))),
        (770, 256, ((154, 5),)),
        (1021, 256, ((256, 1), (255, 3))),
    ],
)
def test_axes_are_split_evenly_without_padding(size: int, limit: int, runs: tuple[tuple[int, int], ...]) -> None:
    assert even_split(size, limit) == runs
    assert sum(part * count for part, count in runs) == size


def tree() -> dict[str, Any]:
    """Leaves of all kinds, with numbers that tell places apart."""
    shapes = {
        "even": (8, 12),
        "uneven": (7, 11),
        "stacked": (3, 8, 7),
        "vector": (5,),
        "scalar": (),
        "three": (9, 10, 8),
    }
    numbers = {name: np.arange(np.prod(shape), dtype=np.float32).reshape(shape) for name, shape in shapes.items()}
    return {**numbers, "empty": np.zeros((0, 4), np.float32), "integer": np.zeros(3, np.int32), "none": None}


def is_stacked(path: Any) -> bool:
    return "stacked" in jax.tree_util.keystr(path)


def test_blocks_are_gathered_and_scattered_without_loss() -> None:
    layout = plan_blocks(tree(), KronConfig(block_size=4), is_stacked)
    flat = [jnp.asarray(leaf) for leaf in jax.tree.leaves(tree())]
    stacks = gather_blocks(layout, flat)
    assert sum(stack.size for stack in stacks.values()) == sum(leaf.size for leaf in flat if leaf.dtype == jnp.float32)
    for value, leaf, described in zip(scatter_blocks(layout, stacks), flat, layout.leaves, strict=True):
        assert described.trained == (leaf.size > 0 and leaf.dtype == jnp.float32)
        if value is not None:
            np.testing.assert_array_equal(value, leaf)


def test_a_block_is_a_rectangle_of_its_own_layer() -> None:
    layout = plan_blocks({"stacked": tree()["stacked"]}, KronConfig(block_size=4), is_stacked)
    assert {group.name: group.rows for group in layout.groups} == {"dense4_dense3": 6, "dense4_dense4": 6}
    stacks = gather_blocks(layout, [jnp.asarray(tree()["stacked"])])
    np.testing.assert_array_equal(stacks["dense4_dense3"][3], tree()["stacked"][1, 4:8, 4:7])


def test_one_sided_keeps_the_smaller_side_dense_and_diagonal_none() -> None:
    params = {"w": jnp.zeros((6, 4)), "square": jnp.zeros((6, 6))}
    one = plan_blocks(params, KronConfig(memory=Memory.ONE_SIDED), nothing_stacked)
    assert [group.name for group in one.groups] == ["dense6_diagonal6", "diagonal6_dense4"]
    none = plan_blocks(params, KronConfig(memory=Memory.DIAGONAL), nothing_stacked)
    assert [group.name for group in none.groups] == ["diagonal6_diagonal4", "diagonal6_diagonal6"]


def test_the_axis_of_a_vocabulary_is_diagonal_and_the_size_of_the_state_known_before_it_exists() -> None:
    shapes = {
        "embed": jax.ShapeDtypeStruct((262144, 4096), "float32"),
        "w": jax.ShapeDtypeStruct((4096, 4096), "float32"),
    }
    config = KronConfig(block_size=256)
    layout = plan_blocks(shapes, config, nothing_stacked)
    assert [(group.name, group.rows) for group in layout.groups] == [
        ("dense256_dense256", 256),
        ("diagonal262144_dense256", 16),
    ]
    momentum = 4 * (262144 * 4096 + 4096 * 4096)
    w = 256 * (4 * 256 * 256 * 4 + 2 * 4)
    embed = 16 * (262144 * 4 + 2 * 256 * 256 * 4 + 2 * 4)
    assert state_bytes(shapes, config, nothing_stacked) == momentum + w + embed + 4
    assert sum(leaf_bytes(layout, config).values()) == momentum + w + embed


def test_a_state_over_the_budget_is_refused_before_it_is_made() -> None:
    shapes = {
        "embed": jax.ShapeDtypeStruct((262144, 4096), "float32"),
        "w": jax.ShapeDtypeStruct((4096, 4096), "float32"),
    }
    config = KronConfig(memory_budget_bytes=2**32)
    with pytest.raises(
        TrainingError, match=r"over memory_budget_bytes \(4\.00 GiB\)\.\n +\['embed'\] \(262144, 4096\)"
    ):
        jax.eval_shape(lambda params: init_state(params, config, nothing_stacked), shapes)


def test_the_size_of_a_state_is_that_of_its_arrays() -> None:
    params = {name: leaf for name, leaf in tree().items() if leaf is not None}
    for config in (KronConfig(block_size=4), KronConfig(factor_dtype=FactorDtype.BFLOAT16, b1=0.0)):
        state = init_state(jax.tree.map(jnp.asarray, params), config, is_stacked)
        assert state_bytes(params, config, is_stacked) == sum(leaf.nbytes for leaf in jax.tree.leaves(state))


def test_a_complex_leaf_and_a_stacked_scalar_are_refused_by_name() -> None:
    with pytest.raises(TrainingError, match=r"\['w'\] is complex"):
        plan_blocks({"w": jnp.zeros(2, jnp.complex64)}, KronConfig(), nothing_stacked)
    with pytest.raises(TrainingError, match=r"\['s'\] is a scalar"):
        plan_blocks({"s": jnp.zeros(())}, KronConfig(), lambda _: True)


@pytest.mark.parametrize("rows", [1, 2, 7, 30, 64, 96])
@pytest.mark.parametrize("period", [1, 2, 3, 10])
def test_every_block_is_refreshed_once_in_a_period(rows: int, period: int) -> None:
    config = KronConfig(refresh_period=period, dense_steps=5, lanes=4)
    chunks = refresh_chunks(rows, config)
    assert chunks.lanes * chunks.size * chunks.count == rows
    spans = [chunk_range(jnp.int32(step), chunks, 3, config) for step in range(5, 5 + period)]
    seen = sorted(index for first, end in spans for index in range(int(first), int(end)))
    assert seen == list(range(chunks.count))
    assert tuple(map(int, chunk_range(jnp.int32(4), chunks, 3, config))) == (0, chunks.count)


def test_lanes_are_shares_of_a_stack_and_their_chunks_are_put_back() -> None:
    assert lanes_of(96, KronConfig(lanes=8, refresh_period=2)) == 8
    assert lanes_of(96, KronConfig(lanes=8, refresh_period=10)) == 1
    chunks = Chunks(lanes=2, size=2, count=3)
    stack = jnp.arange(12.0)
    lanes = to_lanes(stack, chunks)
    part = take_chunk(lanes, jnp.int32(1), chunks)
    np.testing.assert_array_equal(part, [2, 3, 8, 9])
    changed = from_lanes(put_chunk(lanes, -part, jnp.int32(1), chunks), chunks)
    np.testing.assert_array_equal(changed, [0, 1, -2, -3, 4, 5, 6, 7, -8, -9, 10, 11])


def test_the_step_size_of_the_factors_is_annealed_and_bf16_keeps_its_floor() -> None:
    config = KronConfig(anneal_steps=100)
    rates = [float(precondition_rate(jnp.int32(step), config)) for step in (0, 50, 100, 10**9)]
    np.testing.assert_allclose(rates, [0.5, 0.275, 0.05, 0.05], rtol=1e-6)
    low = KronConfig(anneal_steps=100, factor_dtype=FactorDtype.BFLOAT16)
    assert float(precondition_rate(jnp.int32(100), low)) == pytest.approx(0.1)


def test_balancing_comes_round_once_in_so_many_refreshes() -> None:
    config = KronConfig(dense_steps=4, refresh_period=2, balance_every=3)
    chosen = [step for step in range(16) if is_balanced(jnp.int32(step), config)]
    assert chosen == [0, 3, 8, 9, 14, 15]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"b1": 1.0}, r"b1 is 1\.0, but it is below 1"),
        ({"precondition_rate": float("nan")}, "precondition_rate is nan"),
        ({"precondition_rate": 2.0}, "a greater step overshoots"),
        ({"refresh_period": 0}, "refresh_period is 0, but it is at least 1"),
        ({"initial_scale": 0.0}, "or null for one taken from the gradient"),
        ({"geometry": "quat"}, r"geometry is 'quat', but it is one of quad\. Did you mean quad\?"),
        ({"precondition_rate": 0.05, "factor_dtype": FactorDtype.BFLOAT16}, "at least 0.1 with bfloat16 factors"),
        ({"memory_budget_bytes": -1}, "or null for no budget"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        KronConfig(**setting)
