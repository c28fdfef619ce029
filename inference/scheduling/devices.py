"""The devices of an engine, as those see them who give out its slots: what is free, and whose prompt is read next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from inference.engine.abstract_engine import Limits
from inference.scheduling.fairness import ReadingOrder


@final
class Devices:
    """The free slots of each, and the prompts that are read there."""

    def __init__(self, limits: Limits, free: Iterable[int]) -> None:
        self._limits = limits
        self._free: tuple[list[int], ...] = tuple([] for _ in range(limits.devices))
        for slot in sorted(free, reverse=True):
            self.give(slot)
        self.orders = tuple(ReadingOrder() for _ in range(limits.devices))
        """Of each device."""

    @property
    def has_room(self) -> bool:
        """Whether a slot is free."""
        return any(self._free)

    def take(self) -> int:
        """A slot of the least busy device: with the most free ones; of equals, with the least to read; or the first."""
        most = max(map(len, self._free))
        equals = (device for device, free in enumerate(self._free) if len(free) == most)
        return self._free[min(equals, key=lambda device: self.orders[device].tokens)].pop()

    def give(self, slot: int) -> None:
        """A slot is free."""
        self._free[self._limits.device_of(slot)].append(slot)

    def order(self, slot: int) -> ReadingOrder:
        """That of the device of a slot."""
        return self.orders[self._limits.device_of(slot)]
