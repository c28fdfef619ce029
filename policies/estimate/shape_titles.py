"""How a slice is called in a report."""

from __future__ import annotations

from policies.estimate.capacity import Capacity
from policies.hardware.slices import Shape


def shape_title(shape: Shape, capacity: Capacity) -> str:
    """`v6e-16 · 4 hosts · 16 chips · spot`."""
    return f"{shape.accelerator_type} · {count(shape.hosts, 'host')} · {count(shape.chips, 'chip')} · {capacity.value}"


def count(number: int, noun: str) -> str:
    """`1 host`, `4 hosts`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
