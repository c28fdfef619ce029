"""Between the leaves of a tree and the stacks of equal blocks that the optimizer computes on.

The rows of a stack are laid out as its regions say: layer by layer, and within a layer the grid of blocks, last axis
fastest. Both directions are copies without arithmetic, exact inverses of one another.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from training.optim.blocks import Group, Layout, Leaf, Region


def gather_blocks(layout: Layout, leaves: Sequence[Array | None]) -> dict[str, Array]:
    """The stacks (rows, *block) of all groups, in fp32, from the leaves (those that are not trained may be None)."""
    return {group.name: _stack(group, layout.leaves, leaves) for group in layout.groups}


def scatter_blocks(layout: Layout, stacks: dict[str, Array]) -> list[Array | None]:
    """The leaves again, fp32 and in their own shapes; None for those that are not trained."""
    rectangles: dict[int, list[tuple[Region, Array]]] = {}
    for group in layout.groups:
        for region in group.regions:
            rows = lax.slice_in_dim(stacks[group.name], region.row, region.row + region.rows)
            rectangles.setdefault(region.leaf, []).append((region, _rectangle(rows, region, group.shape)))
    return [
        _assemble(leaf, rectangles[index]).reshape(leaf.shape) if leaf.trained else None
        for index, leaf in enumerate(layout.leaves)
    ]


def _stack(group: Group, described: Sequence[Leaf], leaves: Sequence[Array | None]) -> Array:
    """The rows of one group."""
    parts = []
    for region in group.regions:
        leaf = leaves[region.leaf]
        assert leaf is not None
        parts.append(_rows(leaf.astype(jnp.float32), described[region.leaf], region, group.shape))
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)


def _rows(value: Array, leaf: Leaf, region: Region, block: tuple[int, ...]) -> Array:
    """The blocks (layers * grid, *block) of one rectangle."""
    value = value.reshape(leaf.layers, *leaf.axes)
    extents = [count * size for count, size in zip(region.counts, block, strict=True)]
    for axis, (start, extent) in enumerate(zip(region.starts, extents, strict=True), start=1):
        if extent != value.shape[axis]:
            value = lax.slice_in_dim(value, start, start + extent, axis=axis)
    grid = [size for pair in zip(region.counts, block, strict=True) for size in pair]
    rank = len(block)
    order = [0, *range(1, 2 * rank, 2), *range(2, 2 * rank + 1, 2)]
    return value.reshape(leaf.layers, *grid).transpose(order).reshape(region.rows, *block)


def _rectangle(rows: Array, region: Region, block: tuple[int, ...]) -> Array:
    """The rectangle (layers, *extents) that a region's rows came from."""
    rank = len(block)
    order = [0, *(axis for i in range(rank) for axis in (1 + i, 1 + rank + i))]
    extents = [count * size for count, size in zip(region.counts, block, strict=True)]
    grid = rows.reshape(region.layers, *region.counts, *block)
    return grid.transpose(order).reshape(region.layers, *extents)


def _assemble(leaf: Leaf, rectangles: Sequence[tuple[Region, Array]]) -> Array:
    """The rectangles of one leaf put together."""
    if len(rectangles) == 1:
        return rectangles[0][1]
    whole = jnp.zeros((leaf.layers, *leaf.axes), rectangles[0][1].dtype)
    for region, value in rectangles:
        whole = lax.dynamic_update_slice(whole, value, (0, *region.starts))
    return whole
