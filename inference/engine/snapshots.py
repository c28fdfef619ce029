"""Snapshots of a state in host memory: sealed when they are taken, and held against the seal when they are put back."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from inference.engine.abstract_engine import Snapshot


def seal(position: int, arrays: Sequence[Any]) -> Snapshot:
    """The snapshot of these arrays, which nobody writes to any more."""
    held = tuple(np.asarray(array) for array in arrays)
    for array in held:
        array.flags.writeable = False
    return Snapshot(
        position=position,
        arrays=held,
        nbytes=sum(array.nbytes for array in held),
        digest=digest(position, held),
    )


def digest(position: int, arrays: Sequence[np.ndarray]) -> str:
    """SHA-256 of the position, and of dtype, shape and bytes of each array."""
    taken = hashlib.sha256(str(position).encode())
    for array in arrays:
        taken.update(f"{array.dtype.name}{array.shape}".encode())
        taken.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return taken.hexdigest()


def check(snapshot: Snapshot, *, shapes: Sequence[Any], grid: int, prompt: int) -> None:
    """Raises ValueError unless the snapshot can be gone on from: whole, of such a state, on the grid, in the prompt."""
    where = f"the snapshot at {snapshot.position}"
    if snapshot.position < 0 or snapshot.position % grid:
        raise ValueError(f"{where}: states are kept at multiples of {grid} tokens")
    if snapshot.position >= prompt:
        raise ValueError(f"{where} is not shorter than the prompt of {prompt} tokens, whose last is always read")
    wanted = [(shape.shape, np.dtype(shape.dtype)) for shape in shapes]
    if [(array.shape, array.dtype) for array in snapshot.arrays] != wanted:
        raise ValueError(f"{where} is of another model, context or dtype than this engine")
    if digest(snapshot.position, snapshot.arrays) != snapshot.digest:
        raise ValueError(f"{where} is damaged: its bytes are not those of its digest. Read the prompt instead")
