"""The host memory of a target while it is read, and what comes out of it when its bytes are all there."""

from __future__ import annotations

import math
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from inference.errors import ServingError
from inference.weights.arena import aligned_empty, bytes_of
from inference.weights.plan import Target

BLOCK: Final = 1 << 20
"""Numbers that are looked at at once, so that looking takes no memory to speak of."""
BYTE: Final = np.dtype(np.uint8)


@final
class Buffers:
    """Of one target: one array a box, or all its bytes where it is staged. Made when its first byte is to be read."""

    def __init__(self, target: Target) -> None:
        self._target = target
        shapes = [tuple(end - begin for begin, end in box) for box in target.boxes]
        self._arrays = [] if target.staged else [aligned_empty(shape, target.dtype) for shape in shapes]
        self._staging = aligned_empty([target.placed.tensor.nbytes], BYTE) if target.staged else None

    def view(self, part: int) -> memoryview:
        """Where the bytes of a part go."""
        return bytes_of(self._arrays[part] if self._staging is None else self._staging)

    def finished(self, *, finite: bool) -> list[NDArray[Any]]:
        """The boxes of the target in their order, read-only, in the dtype of the model.

        Raises ServingError where `finite` is asked for and a number is not.
        """
        arrays = self._arrays if self._staging is None else self._cut(self._staging)
        for array in arrays:
            if finite and not all_finite(array):
                raise ServingError(
                    f"{self._target.placed.file.path}: {self._target.name} has numbers that are not finite. Export a "
                    "checkpoint from before the loss went wrong, or load without this check"
                )
            array.flags.writeable = False
        return arrays

    def _cut(self, staging: NDArray[np.uint8]) -> list[NDArray[Any]]:
        stored = staging.view(self._target.stored).reshape(self._target.shape)
        arrays = []
        for box in self._target.boxes:
            part = stored[tuple(slice(*side) for side in box)]
            array = aligned_empty(part.shape, self._target.dtype)
            array[...] = part
            arrays.append(array)
        return arrays


def all_finite(array: NDArray[Any]) -> bool:
    """Whether no number is an infinity or none at all."""
    flat = array.reshape(-1)
    return all(np.isfinite(flat[at : at + BLOCK]).all() for at in range(0, math.prod(array.shape), BLOCK))
