"""A verified checkpoint back on devices, bit for bit, whatever mesh it was saved from and wherever it is to lie now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.sharding import Sharding, SingleDeviceSharding
from jaxtyping import PyTree

from training.checkpoint.discovery import Found
from training.checkpoint.documents import DamagedError
from training.checkpoint.errors import CheckpointError, ResumeRefusedError
from training.checkpoint.grid import Box, box_of, overlap, slices, volume, whole
from training.checkpoint.leaves import LeafSpec, shardings_like
from training.checkpoint.manifest import HostPart, LeafRecord
from training.checkpoint.names import part_name
from training.checkpoint.verification import get_all_verified, get_verified
from training.checkpoint.zarr_arrays import METADATA, ArrayReader
from training.fingerprint import compare_trees

_SHOWN = 12


def restore(
    found: Found, like: PyTree, shardings: PyTree | Sharding | None = None, *, at: str = ""
) -> tuple[PyTree, Mapping[str, Any]]:
    """The tree of a checkpoint, and what was said beside it.

    `like` has the arrays that are wanted, or their ShapeDtypeStructs; they may have shardings. `shardings` is one for
    all, or a tree of them. A leaf of numpy comes back in memory, as do 64 bits that JAX does not hold; others
    on devices. `at`: only the arrays whose paths begin so are read, and `like` has them without it.

    Raises ResumeRefusedError (CheckpointError for a part) with the paths that differ for another tree than the saved
    one, DamagedError.
    """
    wanted = tuple(spec for spec in found.manifest.leaves if spec.path.startswith(at))
    _refuse_another(found, tuple(replace(spec, path=spec.path.removeprefix(at)) for spec in wanted), like, at)
    records = records_of(found)
    leaves, tree = jax.tree_util.tree_flatten(like)
    places = shardings_like(like, shardings)
    read = [
        read_leaf(SavedArray(found, spec, records[spec.path]), leaf, place)
        for spec, leaf, place in zip(wanted, leaves, places, strict=True)
    ]
    return jax.tree_util.tree_unflatten(tree, read), found.meta


def _refuse_another(found: Found, saved: tuple[LeafSpec, ...], like: PyTree, at: str) -> None:
    different = compare_trees(saved, like)
    if not different:
        return
    more = (f"and {len(different) - _SHOWN} more",) if len(different) > _SHOWN else ()
    lines = "\n  ".join((*different[:_SHOWN], *more))
    if at:
        raise CheckpointError(f"{found.url} is of another model:\n  {lines}")
    raise ResumeRefusedError(
        f"{found.url} is of another model or optimizer:\n  {lines}\nGive the run another name or folder, or start it "
        "at step 0 (--fresh; the checkpoints are kept)."
    )


def records_of(found: Found) -> dict[str, list[LeafRecord]]:
    """What all hosts have of each array."""
    records: dict[str, list[LeafRecord]] = {spec.path: [] for spec in found.manifest.leaves}
    for host in range(found.manifest.hosts):
        key = part_name(host)
        content = get_verified(found.store, found.prefix, key, found.manifest.objects[key])
        for record in HostPart.of(content, f"{found.url}/{key}").leaves:
            records[record.spec.path].append(record)
    return records


@final
class SavedArray:
    """One array of a checkpoint."""

    def __init__(self, found: Found, spec: LeafSpec, records: Sequence[LeafRecord]) -> None:
        self._found = found
        self.spec = spec
        self._records = records

    def read(self, boxes: Sequence[Box]) -> dict[Box, npt.NDArray[Any]]:
        """The values of some boxes; each chunk that they touch is read once, and verified. Raises DamagedError."""
        wanted = {box: [shared for record in self._records for shared in _shared(record, box)] for box in boxes}
        for box, parts in wanted.items():
            if sum(map(volume, parts)) != volume(box):
                raise DamagedError(f"{self._found.url}: no host has all of {self.spec.path}")
        readers = [self._reader(record, boxes) for record in self._records]
        return {box: self._put_together(box, readers) for box in boxes}

    def read_all(self) -> npt.NDArray[Any]:
        """All values."""
        everything = whole(self.spec.shape)
        return self.read([everything])[everything]

    def _reader(self, record: LeafRecord, boxes: Sequence[Box]) -> ArrayReader | None:
        """What one host has of the boxes; None where that is nothing."""
        objects = {
            chunk.object for chunk in record.objects if any(overlap(box, chunk.slice) is not None for box in boxes)
        }
        if not objects:
            return None
        digests = {key: self._found.manifest.objects[key] for key in (f"{record.folder}/{METADATA}", *objects)}
        contents = get_all_verified(self._found.store, self._found.prefix, digests)
        return ArrayReader({key.removeprefix(f"{record.folder}/"): content for key, content in contents.items()})

    def _put_together(self, box: Box, readers: Sequence[ArrayReader | None]) -> npt.NDArray[Any]:
        sources = [(record, reader) for record, reader in zip(self._records, readers, strict=True) if reader]
        for record, reader in sources:
            if sum(map(volume, _shared(record, box))) == volume(box) > 0:
                return reader.read(box)
        values: npt.NDArray[Any] = np.empty([stop - start for start, stop in box], np.dtype(self.spec.dtype))
        for record, reader in sources:
            for shared in _shared(record, box):
                values[slices(shared, box)] = reader.read(shared)
        return values


def _shared(record: LeafRecord, box: Box) -> list[Box]:
    """The stretches of a box that a host has."""
    return [shared for chunk in record.objects if (shared := overlap(box, chunk.slice)) is not None]


def read_leaf(saved: SavedArray, leaf: Any, place: Sharding | None) -> Any:
    """One array where it is to lie; `leaf` says whether in memory or on devices. Raises DamagedError, StoreError."""
    spec = saved.spec
    if spec.prng is not None:
        data = jnp.asarray(saved.read_all())
        key = jax.random.wrap_key_data(data, impl=spec.prng)
        return key if place is None else jax.device_put(key, place)
    dtype = np.dtype(spec.dtype)
    if isinstance(leaf, np.ndarray | np.generic) or jax.dtypes.canonicalize_dtype(dtype) != dtype:
        values = saved.read_all()  # also of 64 bits, which JAX would cut off unless it is told to keep them
        return values[()] if isinstance(leaf, np.generic) else values
    sharding = SingleDeviceSharding(jax.local_devices()[0]) if place is None else place
    indices = sharding.addressable_devices_indices_map(spec.shape).values()
    shards = saved.read(sorted({_box(index, spec.shape) for index in indices}))
    return jax.make_array_from_callback(
        spec.shape, sharding, lambda index: shards[_box(index, spec.shape)], dtype=dtype
    )


def _box(index: Sequence[slice] | None, shape: Sequence[int]) -> Box:
    return whole(shape) if index is None else box_of(index, shape)
