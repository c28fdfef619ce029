"""How parameters are cut into blocks: every leaf into blocks of even size, blocks of one shape into one stack.

A leaf is first brought to as few axes as it has real dimensions (a convolution (h, w, in, out) becomes
(h*w*in, out)), then every axis with a dense factor is split evenly into parts of at most `block_size`, and the blocks
of all leaves that have the same shape and the same kinds of factors are laid on one leading axis. Nothing is padded.
All of it is arithmetic on shapes, done once a trace.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import jax
import jax.numpy as jnp

from training.errors import TrainingError
from training.optim.factor_kind import Kind
from training.optim.kron_config import KronConfig, Memory

KeyPath = tuple[Any, ...]
"""Where a leaf stands in its tree, as `jax.tree_util` writes it."""

REAL = 8
"""From this size on a dimension is one of the layer's own, and is never merged with another such."""


@final
@dataclass(frozen=True, kw_only=True)
class Region:
    """A rectangle of one leaf that is cut into an even grid of blocks of one shape."""

    leaf: int
    """Which leaf, counted in the order of the flattened tree."""
    starts: tuple[int, ...]
    """Where the rectangle begins on each axis."""
    counts: tuple[int, ...]
    """How many blocks stand along each axis."""
    row: int
    """The first row of the stack that belongs to it."""
    layers: int
    """How many layers the leaf stacks (1 when it is not stacked); each has its own blocks."""

    @property
    def blocks(self) -> int:
        """Blocks of one layer."""
        return math.prod(self.counts)

    @property
    def rows(self) -> int:
        """Rows of the stack: the layers one after another."""
        return self.layers * self.blocks


@final
@dataclass(frozen=True, kw_only=True)
class Group:
    """All blocks of one shape and one choice of factors: a stack (rows, *shape)."""

    shape: tuple[int, ...]
    """The shape of a block."""
    kinds: tuple[Kind, ...]
    """The kind of factor of each axis."""
    regions: tuple[Region, ...]
    """What the rows are, in their order."""

    @property
    def name(self) -> str:
        """What the stack is called in the state, as `dense192_dense256`."""
        return "_".join(f"{kind.value}{size}" for kind, size in zip(self.kinds, self.shape, strict=True))

    @property
    def rows(self) -> int:
        """Blocks in the stack."""
        return sum(region.rows for region in self.regions)

    @property
    def has_dense(self) -> bool:
        """Whether refreshing a block costs matrix products."""
        return Kind.DENSE in self.kinds


@final
@dataclass(frozen=True, kw_only=True)
class Leaf:
    """One parameter as the optimizer sees it."""

    path: str
    """Its name for messages."""
    shape: tuple[int, ...]
    """Its own shape."""
    layers: int
    """How many layers it stacks on its first axis; 1 when it is not stacked."""
    axes: tuple[int, ...]
    """The sizes of the axes after small dimensions are merged; empty when the leaf is left alone."""
    kinds: tuple[Kind, ...]
    """The kind of factor of each axis."""

    @property
    def trained(self) -> bool:
        """Whether it is preconditioned: neither integer nor of size 0."""
        return bool(self.axes)


@final
@dataclass(frozen=True, kw_only=True)
class Layout:
    """The cut of a whole tree of parameters."""

    leaves: tuple[Leaf, ...]
    """Every leaf, in the order of the flattened tree."""
    groups: tuple[Group, ...]
    """The stacks, in the order of their names."""


def merged_axes(shape: Sequence[int]) -> tuple[int, ...]:
    """The axes of a parameter: sizes of 1 dropped, small dimensions merged into neighbours until two axes are left.

    Two dimensions that are both >= 8 are never merged, and nothing is merged below two axes: (3, 3, 64, 128) gives
    (576, 128), (64, 3) stays, (16, 12, 64) stays and gets three factors.
    """
    axes = [(size, size >= REAL) for size in shape if size != 1]
    while len(axes) > 2:
        pairs = [i for i in range(len(axes) - 1) if not (axes[i][1] and axes[i + 1][1])]
        if not pairs:
            break
        at = min(pairs, key=lambda i: (axes[i][0] * axes[i + 1][0], i))
        axes[at : at + 2] = [(axes[at][0] * axes[at + 1][0], axes[at][1] or axes[at + 1][1])]
    return tuple(size for size, _ in axes) or (1,)


def factor_kinds(axes: Sequence[int], config: KronConfig) -> tuple[Kind, ...]:
    """The kind of factor of each axis: vectors are diagonal, and so is an axis longer than `max_dense`.

    `one_sided` keeps only the smallest axis dense (of equal ones the first), `diagonal` none.
    """
    if len(axes) < 2 or config.memory is Memory.DIAGONAL:
        return (Kind.DIAGONAL,) * len(axes)
    smallest = min(range(len(axes)), key=lambda i: (axes[i], i))
    one_sided = config.memory is Memory.ONE_SIDED
    return tuple(
        Kind.DENSE if size <= config.max_dense and (not one_sided or i == smallest) else Kind.DIAGONAL
        for i, size in enumerate(axes)
    )


def even_split(size: int, limit: int) -> tuple[tuple[int, int], ...]:
    """`size` cut into parts of at most `limit`: runs of (part size, how many), without padding.

    The fewest parts that divide the size are taken, unless that needs half as many parts again as necessary; then the
    parts differ by one: 384 by 256 is 2 x 192, 257 by 256 is 129 + 128.
    """
    fewest = -(-size // limit)
    for parts in range(fewest, fewest + fewest // 2 + 1):
        if size % parts == 0:
            return ((size // parts, parts),)
    small, longer = divmod(size, fewest)
    return ((small + 1, longer), (small, fewest - longer))


def plan_blocks(params: Any, config: KronConfig, stacked: Callable[[KeyPath], bool]) -> Layout:
    """The cut of a tree of arrays (or of their shapes). Raises TrainingError for a leaf that cannot be trained."""
    flat = jax.tree_util.tree_flatten_with_path(params)[0]
    leaves = tuple(_leaf(path, value, config, stacked) for path, value in flat)
    members: dict[tuple[tuple[int, ...], tuple[Kind, ...]], list[Region]] = {}
    for index, leaf in enumerate(leaves):
        for shape, region in _regions(index, leaf, config.block_size):
            rows = members.setdefault((shape, leaf.kinds), [])
            row = rows[-1].row + rows[-1].rows if rows else 0
            rows.append(Region(leaf=index, starts=region[0], counts=region[1], row=row, layers=leaf.layers))
    groups = [Group(shape=shape, kinds=kinds, regions=tuple(rows)) for (shape, kinds), rows in members.items()]
    return Layout(leaves=leaves, groups=tuple(sorted(groups, key=lambda group: group.name)))


def _leaf(path: KeyPath, value: Any, config: KronConfig, stacked: Callable[[KeyPath], bool]) -> Leaf:
    """One leaf: what it is called, how many layers it stacks, and its axes."""
    name = jax.tree_util.keystr(path) or "the parameter"
    shape = tuple(jnp.shape(value))
    if jnp.issubdtype(value.dtype, jnp.complexfloating):
        raise TrainingError(
            f"{name} is complex ({value.dtype}), and Kron whitens real gradients only. "
            f"Keep its real and imaginary part as two parameters."
        )
    if not jnp.issubdtype(value.dtype, jnp.floating) or 0 in shape:
        return Leaf(path=name, shape=shape, layers=1, axes=(), kinds=())
    is_stacked = stacked(path)
    if is_stacked and not shape:
        raise TrainingError(
            f"{name} is a scalar, but is said to be stacked: a stacked parameter has its layers on a first axis. "
            f"Let `stacked` answer False for it."
        )
    axes = merged_axes(shape[1:] if is_stacked else shape)
    layers = shape[0] if is_stacked else 1
    return Leaf(path=name, shape=shape, layers=layers, axes=axes, kinds=factor_kinds(axes, config))


def _regions(
    index: int, leaf: Leaf, block_size: int
) -> Iterator[tuple[tuple[int, ...], tuple[tuple[int, ...], tuple[int, ...]]]]:
    """Block shape, starts and counts of every rectangle of a leaf."""
    runs = []
    for size, kind in zip(leaf.axes, leaf.kinds, strict=True):
        split = even_split(size, block_size) if kind is Kind.DENSE else ((size, 1),)
        starts = itertools.accumulate((part * count for part, count in split), initial=0)
        runs.append([(start, part, count) for start, (part, count) in zip(starts, split, strict=False)])
    if leaf.trained:
        for rectangle in itertools.product(*runs):
            starts_, parts, counts = zip(*rectangle, strict=True)
            yield parts, (starts_, counts)
