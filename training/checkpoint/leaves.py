"""The arrays of a tree, as a checkpoint knows them: by path, shape and dtype, with the shards that this host has."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.sharding import Sharding
from jaxtyping import PyTree

from training.checkpoint.errors import CheckpointError
from training.checkpoint.grid import Box, box_of, whole

_INTEGERS: Final = ("bool", "int4", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FLOATS: Final = ("bfloat16", "float16", "float32", "float64", "complex64", "complex128")
_SMALL_FLOATS: Final = (
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e4m3b11fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
)
DTYPES: Final = frozenset([*_INTEGERS, *_FLOATS, *_SMALL_FLOATS])
"""What zarr stores; numpy calls them the same."""
_PRNGS: Final = ("threefry2x32", "rbg", "unsafe_rbg")
Owns: TypeAlias = Callable[[jax.Device], bool]
"""Whether this host writes what lies on a device."""


@final
@dataclass(frozen=True, kw_only=True)
class LeafSpec:
    """An array without its values."""

    path: str
    """Where it stands in the tree, as `jax.tree_util.keystr` writes it."""
    shape: tuple[int, ...]
    """Of a PRNG key: of its data."""
    dtype: str
    """Of a PRNG key: of its data."""
    prng: str | None = None
    """The implementation of a PRNG key; None for other arrays."""

    def __str__(self) -> str:
        key = f" (a {self.prng} key)" if self.prng else ""
        return f"{self.dtype}[{','.join(map(str, self.shape))}]{key}"


@final
@dataclass(frozen=True, kw_only=True)
class Leaf:
    """An array of which this host has shards."""

    spec: LeafSpec
    shards: tuple[tuple[Box, Any], ...]
    """The boxes that this host writes, and their values on a device or in memory; no element twice, over all hosts."""


def leaves_of(tree: PyTree, *, first_host: bool = True, owns: Owns = lambda device: True) -> tuple[Leaf, ...]:
    """The arrays of a tree in its order. What lies on no device is written by the first host.

    Raises CheckpointError for a leaf that is no array, by its path.
    """
    found = jax.tree_util.tree_leaves_with_path(tree)
    specs = specs_of(tree)
    return tuple(
        Leaf(spec=spec, shards=_shards(leaf, first_host, owns)) for spec, (_, leaf) in zip(specs, found, strict=True)
    )


def specs_of(tree: PyTree) -> tuple[LeafSpec, ...]:
    """The arrays of a tree, or of one of ShapeDtypeStructs, without their values. Raises as `leaves_of` does."""
    found = jax.tree_util.tree_leaves_with_path(tree)
    specs = tuple(_spec(jax.tree_util.keystr(path), leaf) for path, leaf in found)
    if len({spec.path for spec in specs}) < len(specs):
        raise CheckpointError("two arrays of the tree have one path; give the keys of its dicts different names")
    return specs


def slug(path: str) -> str:
    """A path as a part of an object's name: for the eye, since the names are told apart by a number."""
    return re.sub(r"[^A-Za-z0-9_]+", ".", path).strip(".")[:80]


def data_of(leaf: Any) -> Any:
    """The values of a leaf: of a PRNG key its data."""
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _is_key(leaf: Any) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def _spec(path: str, leaf: Any) -> LeafSpec:
    if not isinstance(leaf, jax.Array | np.ndarray | np.generic | jax.ShapeDtypeStruct):
        raise CheckpointError(
            f"{path or 'the tree'} is {leaf!r}, no array: make it one, or put it in what is said beside the arrays"
        )
    prng = None
    if _is_key(leaf):
        data = jax.eval_shape(jax.random.key_data, leaf)
        prng, shape, dtype = _implementation(leaf), data.shape, data.dtype
    else:
        shape, dtype = leaf.shape, leaf.dtype
    name = np.dtype(dtype).name
    if name not in DTYPES:
        raise CheckpointError(f"{path} is {name}, which zarr cannot store; it stores {', '.join(sorted(DTYPES))}")
    return LeafSpec(path=path, shape=tuple(map(int, shape)), dtype=name, prng=prng)


def _implementation(leaf: Any) -> str:
    """The name under which JAX knows the implementation of a key."""
    if isinstance(leaf, jax.Array):
        return str(jax.random.key_impl(leaf))
    for name in _PRNGS:
        if jax.eval_shape(functools.partial(jax.random.key, 0, impl=name)).dtype == leaf.dtype:
            return name
    raise CheckpointError(f"a key of {leaf.dtype} is of none of {', '.join(_PRNGS)}, which JAX brings along")


def _shards(leaf: Any, first_host: bool, owns: Owns) -> tuple[tuple[Box, Any], ...]:
    values = data_of(leaf)
    if not isinstance(values, jax.Array):
        return ((whole(values.shape), values),) if first_host else ()
    return tuple(
        (box_of(shard.index, values.shape), shard.data)
        for shard in values.addressable_shards
        if shard.replica_id == 0 and owns(shard.device)
    )


def on_host(values: Any) -> npt.NDArray[Any]:
    """The values of a shard in memory: they may be a view, good until the device overwrites them."""
    return np.asarray(values)


def start_transfers(leaves: Sequence[Leaf]) -> None:
    """Have the devices send everything at once."""
    for leaf in leaves:
        for _, values in leaf.shards:
            if isinstance(values, jax.Array):
                values.copy_to_host_async()


def shardings_like(like: PyTree, shardings: PyTree | Sharding | None) -> list[Sharding | None]:
    """Where each array is to lie, in the order of the tree; None: memory for numpy, else the default device.

    `shardings` is one for all, or a tree of them over a tree of the same arrays, None where `like` says it.
    """
    leaves = jax.tree_util.tree_leaves(like)
    if shardings is None:
        return [getattr(leaf, "sharding", None) for leaf in leaves]
    if isinstance(shardings, Sharding):
        return [shardings] * len(leaves)
    given = jax.tree_util.tree_leaves(shardings, is_leaf=lambda node: isinstance(node, Sharding))
    if len(given) != len(leaves):
        raise CheckpointError(f"{len(given)} shardings were given for {len(leaves)} arrays; give one for each, or one")
    return list(given)
