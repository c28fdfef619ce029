"""Where every array of a run lies: the one table from the axes of the model to the axes of the mesh.

A mesh has three axes. `data` has a copy of the parameters each, and its own rows of the batch; `fsdp` shares out the
parameters, and rows of the batch too (each layer is gathered when it is needed, and its gradient is reduced and
scattered); `tensor` shares out the work inside a layer. The compiler puts the collectives in: this module only says
what lies where, and nothing else in training names an axis of the mesh.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import prod
from types import MappingProxyType
from typing import Any, Final, TypeVar, final

import equinox as eqx
import jax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, PyTree

from training.errors import TrainingError
from training.model.paths import Path, dotted, is_stacked, names_of

ModuleT = TypeVar("ModuleT")


@final
class MeshAxis(enum.StrEnum):
    """An axis of devices."""

    DATA = "data"
    """Copies of the model."""
    FSDP = "fsdp"
    """Parts of each parameter, and of the optimizer's state; the rows of the batch are shared out here too."""
    TENSOR = "tensor"
    """Parts of each layer's work."""


@final
class Axis(enum.StrEnum):
    """An axis of the model's arrays, by what it counts."""

    BATCH = "batch"
    """Rows of a batch."""
    TIME = "time"
    """Tokens of a row."""
    ACTIVATION = "activation"
    """Channels of the residual stream."""
    MODEL = "model"
    """The same channels, where a parameter has them."""
    INNER = "inner"
    """Channels inside a layer: heads times their size, or the hidden units of a feed-forward."""
    VOCABULARY = "vocabulary"
    """Tokens that there are."""
    LAYERS = "layers"
    """Layers of one stack."""
    SMALL = "small"
    """What is too small to share out: the taps of a convolution, a number a head."""


TABLE: Final[Mapping[Axis, tuple[MeshAxis, ...]]] = MappingProxyType(
    {
        Axis.BATCH: (MeshAxis.DATA, MeshAxis.FSDP),
        Axis.TIME: (),
        Axis.ACTIVATION: (),
        Axis.MODEL: (MeshAxis.FSDP,),
        Axis.INNER: (MeshAxis.TENSOR,),
        Axis.VOCABULARY: (MeshAxis.TENSOR,),
        Axis.LAYERS: (),
        Axis.SMALL: (),
    }
)
"""The one table. Another way of sharing out is another right-hand side here."""

IN_USE: Final[Mapping[Axis, Axis]] = MappingProxyType({Axis.MODEL: Axis.ACTIVATION})
"""What the axes of a parameter become while a layer computes with it."""
GATHERED: Final = "gathered_parameter"
"""What policies of `jax.checkpoint` call a gathered parameter: not kept for the backward pass but gathered again."""

VOCABULARY_LAYERS: Final = frozenset({"embedding", "lm_head"})
"""Modules whose weight is (vocabulary, model)."""
MODEL_NORMS: Final = frozenset({"mixer_norm", "feed_forward_norm", "final_norm"})
"""Norms over the residual stream."""
OUTWARD_PROJECTIONS: Final = frozenset({"o_proj", "out_proj", "down_proj"})
"""Projections back onto the residual stream; every other `*_proj` comes from it."""


def make_mesh(
    *, data: int | None = None, fsdp: int = 1, tensor: int = 1, devices: Sequence[jax.Device] | None = None
) -> Mesh:
    """The mesh of a run, over all devices unless `devices` says which.

    Without `data`, that axis takes the devices that the others leave. Neighbours in the list of devices differ in
    `tensor` first, which talks most. Raises TrainingError where the sizes do not make up the devices.
    """
    present = tuple(jax.devices() if devices is None else devices)
    sizes = {MeshAxis.DATA: data, MeshAxis.FSDP: fsdp, MeshAxis.TENSOR: tensor}
    for axis, size in sizes.items():
        if size is not None and size < 1:
            raise TrainingError(f"mesh.{axis}: {size} is no number of devices; an axis has at least 1")
    if data is None:
        sizes[MeshAxis.DATA] = max(1, len(present) // (fsdp * tensor))
    shape = tuple(size for size in sizes.values() if size is not None)
    if prod(shape) != len(present):
        wanted = " × ".join(f"{axis} {size}" for axis, size in zip(sizes, shape, strict=True))
        raise TrainingError(
            f"mesh: {wanted} makes {prod(shape)} devices, and there are {len(present)}. "
            f"The product of the three must be {len(present)}"
        )
    return jax.make_mesh(shape, tuple(sizes), axis_types=(AxisType.Auto,) * len(shape), devices=present)


def spec(*axes: Axis) -> PartitionSpec:
    """How an array of these axes is shared out, by the table."""
    return PartitionSpec(*(_entry(TABLE[axis]) for axis in axes))  # type: ignore[no-untyped-call]


def batch_spec(mesh: Mesh, batch_size: int | None = None) -> PartitionSpec:
    """How the rows of a batch are shared out. Raises TrainingError where `batch_size` rows cannot be."""
    shards = _shards(Axis.BATCH, mesh)
    if batch_size is not None and batch_size % shards:
        raise TrainingError(
            f"batch.size: {batch_size} rows are shared out over {_mesh_text(Axis.BATCH, mesh)}, "
            f"and {batch_size} is no multiple of {shards}. Choose {_nearest_multiple(batch_size, shards)}"
        )
    return spec(Axis.BATCH)


def parameter_axes(path: Path, shape: Sequence[int]) -> tuple[Axis, ...]:
    """What the axes of a parameter count, from its name; `shape` has the stack axis where there is one."""
    stack = (Axis.LAYERS,) if is_stacked(path) else ()
    rank = len(shape) - len(stack)
    return stack + _own_axes(names_of(path), rank)


def parameter_specs(model: PyTree[Any], mesh: Mesh) -> PyTree[Any]:
    """The PartitionSpec of every array of `model`, in a tree of its structure; what is no array has None.

    `model` is a LanguageModel, one of its gradients, or what `eqx.filter_eval_shape` makes of one. Raises TrainingError
    that names every parameter whose axis the mesh does not divide.
    """
    wrong: list[str] = []

    def of(path: Path, leaf: Any) -> PartitionSpec | None:
        if not eqx.is_array(leaf) and not isinstance(leaf, jax.ShapeDtypeStruct):
            return None
        axes = parameter_axes(path, leaf.shape)
        wrong.extend(_misfits(dotted(path), axes, leaf.shape, mesh))
        return spec(*axes)

    specs = jax.tree_util.tree_map_with_path(of, model)
    if wrong:
        raise TrainingError("the model does not fit the mesh:\n  " + "\n  ".join(wrong))
    return specs


def named_shardings(specs: PyTree[Any], mesh: Mesh) -> PyTree[Any]:
    """The specs as shardings on `mesh`: what `jax.device_put` and `jax.jit` take."""
    return jax.tree.map(lambda each: NamedSharding(mesh, each), specs)


def shard(tree: PyTree[Any], specs: PyTree[Any], mesh: Mesh) -> PyTree[Any]:
    """`tree` with every array laid out as `specs` says."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, named_shardings(specs, mesh)), rest)


def constrain(x: Array, *axes: Axis) -> Array:
    """Hold an activation to the table, where a mesh is set (`jax.set_mesh`); without one, `x` as it is.

    An axis of the mesh that does not divide the array is left to the compiler, as in a decoding step of one row.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty:
        return x
    entries = (
        _entry(TABLE[axis] if size % _shards(axis, mesh) == 0 else ()) for axis, size in zip(axes, x.shape, strict=True)
    )
    held: Array = jax.lax.with_sharding_constraint(x, PartitionSpec(*entries))  # type: ignore[no-untyped-call]
    return held


def gather(parameter: Array, *axes: Axis) -> Array:
    """A parameter as a layer uses it: gathered over `fsdp`, where a mesh is set. Its gradient is laid out as it is."""
    if jax.sharding.get_abstract_mesh().empty:
        return parameter
    used = tuple(IN_USE.get(axis, axis) for axis in axes)
    named: Array = checkpoint_name(_resharded(parameter, axes, used), GATHERED)  # type: ignore[no-untyped-call]
    return named


def gather_parameters(module: ModuleT) -> ModuleT:
    """A module of one layer with every parameter gathered to be used."""
    gathered: ModuleT = jax.tree_util.tree_map_with_path(
        lambda path, leaf: gather(leaf, *parameter_axes(path, leaf.shape)), module
    )
    return gathered


def gathers_parameters() -> bool:
    """Whether the mesh that is set shares out parameters that a layer must gather."""
    mesh = jax.sharding.get_abstract_mesh()
    return not mesh.empty and mesh.shape[MeshAxis.FSDP] > 1


def batch_shards(rows: int) -> int:
    """Into how many parts the mesh that is set shares out `rows` rows: 1 without one, or where they do not divide."""
    mesh = jax.sharding.get_abstract_mesh()
    shards = 1 if mesh.empty else _shards(Axis.BATCH, mesh)
    return shards if rows % shards == 0 else 1


@partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _resharded(parameter: Array, stored: tuple[Axis, ...], used: tuple[Axis, ...]) -> Array:
    """A sharding constraint whose gradient goes back to where the parameter is stored (by itself it would not)."""
    return constrain(parameter, *used)


def _resharded_forward(parameter: Array, stored: tuple[Axis, ...], used: tuple[Axis, ...]) -> tuple[Array, None]:
    return constrain(parameter, *used), None


def _resharded_backward(
    stored: tuple[Axis, ...], used: tuple[Axis, ...], saved: None, cotangent: Array
) -> tuple[Array]:
    return (constrain(constrain(cotangent, *used), *stored),)


_resharded.defvjp(_resharded_forward, _resharded_backward)


def _own_axes(names: Sequence[str], rank: int) -> tuple[Axis, ...]:
    module = names[-2] if len(names) > 1 else ""
    if module in VOCABULARY_LAYERS and rank == 2:
        return (Axis.VOCABULARY, Axis.MODEL)
    if module in MODEL_NORMS and rank == 1:
        return (Axis.MODEL,)
    if module.endswith("_proj") and rank in (1, 2):
        axes = (Axis.MODEL, Axis.INNER) if module in OUTWARD_PROJECTIONS else (Axis.INNER, Axis.MODEL)
        return axes[:rank]
    return (Axis.SMALL,) * rank


def _misfits(name: str, axes: Iterable[Axis], shape: Sequence[int], mesh: Mesh) -> list[str]:
    return [
        f"{name}: its axis {axis} of {size} is shared out over {_mesh_text(axis, mesh)}, and {size} is no multiple of "
        f"{_shards(axis, mesh)}"
        for axis, size in zip(axes, shape, strict=True)
        if size % _shards(axis, mesh)
    ]


def _shards(axis: Axis, mesh: Mesh | jax.sharding.AbstractMesh) -> int:
    return prod(mesh.shape[each] for each in TABLE[axis])


def _mesh_text(axis: Axis, mesh: Mesh) -> str:
    return " × ".join(f"{each}={mesh.shape[each]}" for each in TABLE[axis])


def _nearest_multiple(size: int, of: int) -> str:
    below = size // of * of
    return f"{below} or {below + of}" if below else str(of)


def _entry(axes: tuple[MeshAxis, ...]) -> str | tuple[str, ...] | None:
    names = tuple(str(axis) for axis in axes)
    match names:
        case ():
            return None
        case (name,):
            return name
        case _:
            return names
