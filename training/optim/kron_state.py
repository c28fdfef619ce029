"""The state of PSGD-Kron: arrays only, its size before it exists, and how it is laid over a mesh."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec

from training.errors import TrainingError
from training.optim.blocks import Group, KeyPath, Layout, plan_blocks
from training.optim.chunks import lanes_of
from training.optim.factor_kind import Kind
from training.optim.kron_config import KronConfig


class StackState(NamedTuple):
    """The preconditioner of all blocks of one shape."""

    q: tuple[Any, ...]
    """The factor Q of each axis: (rows, d, d) dense, (rows, d) diagonal."""
    p: tuple[Any, ...]
    """P = Q'Q of each dense axis, which every update needs; None for a diagonal one."""
    lipschitz: Any
    """(rows, axes) fp32: the running bound of each factor's step. 0 for a block that was never refreshed."""


class KronState(NamedTuple):
    """The state of `scale_by_kron`."""

    count: Any
    """Updates so far, int32."""
    momentum: Any
    """The averaged gradient in fp32, a tree like the parameters with None for those that are left alone; None
    altogether where `b1` is 0."""
    stacks: dict[str, StackState]
    """The preconditioners, by the name of their group."""


def init_state(params: Any, config: KronConfig, stacked: Callable[[KeyPath], bool]) -> KronState:
    """The state before the first update. Raises TrainingError over the budget, and for a leaf of a wrong kind."""
    layout = plan_blocks(params, config, stacked)
    _check_budget(layout, config)
    tree: Any = jax.tree.structure(params)
    momentum = [jnp.zeros(leaf.shape, jnp.float32) if leaf.trained else None for leaf in layout.leaves]
    return KronState(
        count=jnp.zeros((), jnp.int32),
        momentum=tree.unflatten(momentum) if config.b1 else None,
        stacks={group.name: _init_stack(group, config) for group in layout.groups},
    )


def _init_stack(group: Group, config: KronConfig) -> StackState:
    """Multiples of the identity whose product over the axes is the initial scale."""
    dtype = jnp.dtype(config.factor_dtype.value)
    scale = (config.initial_scale or 1.0) ** (1 / len(group.shape))
    q = []
    for size, kind in zip(group.shape, group.kinds, strict=True):
        factor = jnp.eye(size) if kind is Kind.DENSE else jnp.ones(size)
        q.append(jnp.broadcast_to((scale * factor).astype(dtype), (group.rows, *factor.shape)))
    p = tuple(
        jnp.square(factor.astype(jnp.float32)).astype(dtype) if kind is Kind.DENSE else None
        for factor, kind in zip(q, group.kinds, strict=True)
    )
    return StackState(q=tuple(q), p=p, lipschitz=jnp.zeros((group.rows, len(group.shape)), jnp.float32))


def state_bytes(params: Any, config: KronConfig, stacked: Callable[[KeyPath], bool]) -> int:
    """Bytes of the state for parameters of these shapes; nothing is allocated, and no budget is held."""
    free = dataclasses.replace(config, memory_budget_bytes=None)
    state = jax.eval_shape(lambda tree: init_state(tree, free, stacked), params)
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))


def leaf_bytes(layout: Layout, config: KronConfig) -> dict[str, int]:
    """Bytes of state that each trained leaf takes, by its path."""
    width = jnp.dtype(config.factor_dtype.value).itemsize
    taken = {leaf.path: 4 * math.prod(leaf.shape) * bool(config.b1) for leaf in layout.leaves if leaf.trained}
    for group in layout.groups:
        row = sum(
            2 * size * size * width if kind is Kind.DENSE else size * width
            for size, kind in zip(group.shape, group.kinds, strict=True)
        ) + 4 * len(group.shape)
        for region in group.regions:
            taken[layout.leaves[region.leaf].path] += region.rows * row
    return taken


def _check_budget(layout: Layout, config: KronConfig) -> None:
    """Refuse a state over the budget, before anything is allocated or compiled."""
    budget = config.memory_budget_bytes
    taken = leaf_bytes(layout, config)
    total = sum(taken.values())
    if budget is None or total <= budget:
        return
    worst = max(taken, key=lambda path: taken[path])
    shape = next(leaf.shape for leaf in layout.leaves if leaf.path == worst)
    raise TrainingError(
        f"kron: its state would take {total / 2**30:.2f} GiB, over memory_budget_bytes ({budget / 2**30:.2f} GiB).\n"
        f"  {worst} {shape} takes most of it: {taken[worst] / 2**30:.2f} GiB.\n"
        f"  Smaller are memory: one_sided or diagonal, a lower block_size or max_dense, and factor_dtype: bfloat16."
    )


def state_specs(
    params: Any, param_specs: Any, config: KronConfig, mesh: Mesh, *, stacked: Callable[[KeyPath], bool]
) -> KronState:
    """How the state is sharded: momentum as its parameter, a stack over its first axis, by what of the mesh divides it.

    A tree like the state, with PartitionSpecs for arrays.
    """
    layout = plan_blocks(params, config, stacked)
    tree: Any = jax.tree.structure(params)
    specs = tree.flatten_up_to(param_specs)
    momentum = [spec if leaf.trained else None for leaf, spec in zip(layout.leaves, specs, strict=True)]
    return KronState(
        count=PartitionSpec(),  # type: ignore[no-untyped-call]
        momentum=tree.unflatten(momentum) if config.b1 else None,
        stacks={group.name: _stack_specs(group, config, mesh) for group in layout.groups},
    )


def _stack_specs(group: Group, config: KronConfig, mesh: Mesh) -> StackState:
    """The first axis over the mesh axes that divide its lanes."""
    lanes = lanes_of(group.rows, config)
    axes: list[str] = []
    for name, size in mesh.shape.items():
        if size > 1 and lanes % size == 0:
            axes.append(str(name))
            lanes //= size
    spec = PartitionSpec(tuple(axes)) if axes else PartitionSpec()  # type: ignore[no-untyped-call]
    return StackState(
        q=(spec,) * len(group.shape),
        p=tuple(spec if kind is Kind.DENSE else None for kind in group.kinds),
        lipschitz=spec,
    )
