"""From host memory to devices: one array a device, and the sharded array that they are together."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, final

import jax
from jax.sharding import Sharding
from numpy.typing import NDArray

from inference.weights.plan import Target


@final
class Placer:
    """Takes what was read, and has the arrays of the model when all of it was taken.

    On a CPU the devices take over the aligned memory as it is, all that need one box the same. Elsewhere it is copied,
    and free again when `place` returns.
    """

    def __init__(self, shardings: Mapping[str, Sharding]) -> None:
        self._shardings = shardings
        self.arrays: dict[str, jax.Array] = {}
        """By the name of the target."""
        self.seconds = 0.0
        """That devices have taken."""

    def place(self, target: Target, boxes: list[NDArray[Any]]) -> None:
        """Put the boxes of a target, in their order, on the devices that need them."""
        began = time.perf_counter()
        parts = [
            jax.device_put(box, device, may_alias=True)
            for box, devices in zip(boxes, target.boxes.values(), strict=True)
            for device in devices
        ]
        for part in parts:
            part.block_until_ready()
        self.arrays[target.name] = jax.make_array_from_single_device_arrays(
            target.shape, self._shardings[target.name], parts
        )
        self.seconds += time.perf_counter() - began
