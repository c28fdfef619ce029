"""A stack cut into chunks of a few rows, which a loop works through without copying the stack."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar, final

import jax
from jax import lax
from jaxtyping import Array, Int

from training.optim.kron_config import KronConfig

StackT = TypeVar("StackT")
"""A tree of arrays with the rows of one stack as their first axis."""

LANE_CHUNKS = 4
"""A stack gets lanes where each still has so many rows a step of the rotation: fewer would not be worth a device."""


@final
@dataclass(frozen=True, kw_only=True)
class Chunks:
    """A stack of lanes * count * size rows, seen as (lanes, count * size): chunk i is rows i * size ... of every lane.

    A stack may be sharded over its lanes: then every device works on its own share of every chunk.
    """

    lanes: int
    """Stretches of the stack that are worked on side by side."""
    size: int
    """Rows of a lane in a chunk."""
    count: int
    """Chunks in the stack."""


def lanes_of(rows: int, config: KronConfig) -> int:
    """As many lanes as divide a stack, one where it is small."""
    lanes = math.gcd(rows, config.lanes)
    return lanes if rows // lanes >= LANE_CHUNKS * config.refresh_period else 1


def apply_chunks(rows: int, config: KronConfig) -> Chunks:
    """The chunks in which P is applied: `chunk_rows` at once, or the next smaller number that divides."""
    return _cut(rows, config.chunk_rows, config)


def refresh_chunks(rows: int, config: KronConfig) -> Chunks:
    """The chunks of the rotation: small enough for two a step at least, so that steps cost about the same."""
    inner = rows // lanes_of(rows, config)
    return _cut(rows, min(config.chunk_rows, rows // inner * (inner // (2 * config.refresh_period))), config)


def _cut(rows: int, at_once: int, config: KronConfig) -> Chunks:
    """Chunks of at most so many rows."""
    lanes = lanes_of(rows, config)
    inner = rows // lanes
    size = max(divisor for divisor in range(1, max(1, at_once // lanes) + 1) if inner % divisor == 0)
    return Chunks(lanes=lanes, size=size, count=inner // size)


def to_lanes(stack: StackT, chunks: Chunks) -> StackT:
    """(rows, ...) -> (lanes, rows of a lane, ...)."""
    inner = chunks.size * chunks.count
    cut: StackT = jax.tree.map(lambda x: x.reshape(chunks.lanes, inner, *x.shape[1:]), stack)
    return cut


def from_lanes(stack: StackT, chunks: Chunks) -> StackT:
    """(lanes, rows of a lane, ...) -> (rows, ...)."""
    rows = chunks.lanes * chunks.size * chunks.count
    joined: StackT = jax.tree.map(lambda x: x.reshape(rows, *x.shape[2:]), stack)
    return joined


def take_chunk(stack: StackT, index: Int[Array, ""], chunks: Chunks) -> StackT:
    """One chunk of what `to_lanes` gave, (lanes * size, ...)."""

    def take(x: Array) -> Array:
        part = lax.dynamic_slice_in_dim(x, index * chunks.size, chunks.size, axis=1)
        return part.reshape(chunks.lanes * chunks.size, *x.shape[2:])

    taken: StackT = jax.tree.map(take, stack)
    return taken


def put_chunk(stack: StackT, rows: StackT, index: Int[Array, ""], chunks: Chunks) -> StackT:
    """The same with one chunk replaced."""

    def put(x: Array, part: Array) -> Array:
        cut = part.reshape(chunks.lanes, chunks.size, *x.shape[2:])
        return lax.dynamic_update_slice_in_dim(x, cut, index * chunks.size, axis=1)

    replaced: StackT = jax.tree.map(put, stack, rows)
    return replaced
