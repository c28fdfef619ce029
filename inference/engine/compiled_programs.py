"""The programs of an engine, compiled ahead of time: which there are, and how many were compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, final

import jax
from jax.sharding import SingleDeviceSharding

LEAST_BUCKET: Final = 64
"""Rows of a piece, at least: with fewer, the order of the sums of a product changes with their number."""
Program = Callable[..., Any]
"""A compiled program."""


def buckets(*, grid: int, context: int) -> tuple[int, ...]:
    """The lengths that a piece is padded to: 64 and its doubles, up to the grid or to what a context can fill."""
    sizes = [LEAST_BUCKET]
    while sizes[-1] < min(grid, context):
        sizes.append(min(2 * sizes[-1], grid))
    return tuple(sizes)


def bucket_of(length: int, sizes: tuple[int, ...]) -> int:
    """The least bucket that holds a piece."""
    return next(size for size in sizes if size >= length)


@final
class CompiledPrograms:
    """Each program is compiled once for its name and its shapes, when it is first asked for."""

    def __init__(self, options: Mapping[str, bool | str] | None, device: jax.Device | None) -> None:
        """For `device`, or that of the arguments. `options` go to the compiler."""
        self._options = None if options is None else dict(options)
        # Arguments that a program does not use do not say where it runs.
        self._where: dict[str, Any] = {} if device is None else {"out_shardings": SingleDeviceSharding(device)}
        self._lowered: dict[tuple[str, int], Any] = {}
        self._compiled: dict[tuple[str, int], Program] = {}

    @property
    def count(self) -> int:
        """Programs that were compiled so far."""
        return len(self._compiled)

    def known(self, name: str, bucket: int) -> Program | None:
        """The program, where it is compiled."""
        return self._compiled.get((name, bucket))

    def lower(self, name: str, bucket: int, traced: Program, examples: tuple[Any, ...], *, gives: int | None) -> None:
        """Trace a program for arguments like these. The arrays of argument number `gives` are given away to it.

        As long as this is the same `traced`, JAX does not trace it again for another device.
        """
        if (name, bucket) not in self._lowered:
            self._lowered[name, bucket] = jax.jit(traced, donate_argnums=gives, **self._where).lower(*examples)

    def compile(self, name: str, bucket: int) -> Program:
        """Compile a program that was lowered."""
        self._compiled[name, bucket] = self._lowered.pop((name, bucket)).compile(self._options)
        return self._compiled[name, bucket]
