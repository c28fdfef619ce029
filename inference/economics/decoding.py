"""One decoding step on one slice: bytes, operations, and the time that it takes at least."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from inference.economics.assumptions import BANDWIDTH, HBM, PEAK, SNAPSHOTS, USABLE, Assumption
from inference.economics.variants import Variant
from policies.hardware.machines import machine
from policies.hardware.slices import Shape

_GIB: Final = 2**30


@final
class Bound(enum.Enum):
    """What a step waits for."""

    BANDWIDTH = "bandwidth"
    COMPUTE = "compute"


@final
@dataclass(frozen=True, kw_only=True)
class Machine:
    """The slice that serves."""

    shape: Shape
    hbm: Assumption = HBM
    bandwidth: Assumption = BANDWIDTH
    peak: Assumption = PEAK
    usable: Assumption = USABLE
    snapshots: Assumption = SNAPSHOTS

    @property
    def memory_bytes(self) -> Fraction:
        """Of all chips."""
        return Fraction(self.hbm.value) * 10**9 * self.shape.chips

    @property
    def usable_bytes(self) -> Fraction:
        """For weights, states, keys and values."""
        return self.memory_bytes * Fraction(self.usable.value)

    @property
    def bytes_per_second(self) -> Fraction:
        """Of all chips."""
        return Fraction(self.bandwidth.value) * 10**9 * self.shape.chips

    @property
    def flops_per_second(self) -> Fraction:
        """Of all chips."""
        return Fraction(self.peak.value) * 10**12 * self.shape.chips

    @property
    def host_bytes(self) -> int:
        """Memory of the hosts; 0 where the table of machines does not have it."""
        found = machine(self.shape.machine_type)
        return int(found.memory_gib * _GIB) * self.shape.hosts if found else 0

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Everything that no table of prices or shapes says."""
        return (self.hbm, self.bandwidth, self.peak, self.usable, self.snapshots)


@final
@dataclass(frozen=True, kw_only=True)
class Step:
    """One decoding step of a whole batch."""

    batch: int
    bytes_moved: int
    flops: int
    seconds: Fraction
    """At least."""
    bound: Bound
    state_bytes: int
    """Resident, of the whole batch."""
    cache_bytes: int
    free_bytes: Fraction
    """What is left of the usable memory; below 0 where the batch does not fit."""

    @property
    def fits(self) -> bool:
        """Whether the batch and the weights are within the usable memory."""
        return self.free_bytes >= 0

    @property
    def tokens_per_second(self) -> Fraction:
        """At most."""
        return self.batch / self.seconds

    @property
    def intensity(self) -> Fraction:
        """Operations a byte."""
        return Fraction(self.flops, self.bytes_moved)


def most_requests(variant: Variant, machine: Machine, context: int) -> int:
    """How many requests of `context` tokens fit beside the weights; 0 where none does."""
    room = machine.usable_bytes - variant.weights_bytes
    held = variant.held(context)
    return max(0, int(room // held)) if held else 0


def step(variant: Variant, machine: Machine, batch: int, context: int) -> Step:
    """One token more for each of `batch` requests that have `context` tokens."""
    moved = variant.active_bytes + batch * variant.read(context)
    flops = batch * variant.flops(context)
    reading, computing = moved / machine.bytes_per_second, flops / machine.flops_per_second
    state, cache = batch * variant.state_bytes, batch * variant.cached(context)
    return Step(
        batch=batch,
        bytes_moved=moved,
        flops=flops,
        seconds=max(reading, computing),
        bound=Bound.COMPUTE if computing > reading else Bound.BANDWIDTH,
        state_bytes=state,
        cache_bytes=cache,
        free_bytes=machine.usable_bytes - variant.weights_bytes - state - cache,
    )
