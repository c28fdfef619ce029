"""Geometries: the ways in which a Kronecker factor descends on the whitening criterion. One module each.

A module of this package with a `GEOMETRY` in it is a geometry under the module's own name (`geometry: quad` in a
config); a new one is a new file, and nothing else changes.

The criterion is min E[g' P g + v' P^-1 v] over P = Q'Q with Q = Q1 x Q2 x ..., whose minimum is P = (E g g')^(-1/2).
For one factor, T1 is what the preconditioned gradient says it has too much of and T2 what it ought to have; the step is
divided by a running bound of their size, so that a step size of 1 would be the largest that is safe.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, Protocol, final, runtime_checkable

from jaxtyping import Array, Float

from training.optim.factor_kind import Kind


class Statistic(NamedTuple):
    """What one refresh knows about one axis of some blocks, all of it divided by `Statistics.unit`."""

    excess: Array
    """T1: (rows, d, d) for a dense factor, (rows, d) for a diagonal one."""
    target: Array
    """T2: (rows,) where it is a multiple of the identity, else of the form of T1."""
    bound: Array
    """(rows,): an estimate of the norm of T1 + T2, from above or at most sqrt(2) below."""


class Statistics(NamedTuple):
    """What one refresh knows about some blocks."""

    axes: tuple[Statistic, ...]
    """One for each axis."""
    unit: Array
    """(rows,): what the statistics are divided by, so that gradients of 1e30 do not overflow. It may be infinite."""


@final
@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What a geometry may look at: some blocks of equal shape, a first axis of rows."""

    kinds: tuple[Kind, ...]
    """The kind of factor of each axis."""
    factors: tuple[Array, ...]
    """Q of each axis, fp32: (rows, d, d) or (rows, d)."""
    gradient: Array
    """The whitened quantity (rows, *block), fp32."""
    preconditioned: Array
    """P applied to the gradient and its damping noise."""
    magnitude: Array
    """About the mean magnitude of it, (rows,)."""
    probes: tuple[Array, ...]
    """For each axis, random vectors (k, d) from which norms are estimated."""
    key: Array
    """The key of this refresh, for a geometry that needs more randomness."""
    precision: str
    """Of matrix products."""


@runtime_checkable
class Geometry(Protocol):
    """One geometry: pure functions of stacks of factors, matrix products only."""

    def statistics(self, evidence: Evidence) -> Statistics:
        """T1, T2 and their bound for every axis."""

    def step_dense(
        self, q: Float[Array, "rows d d"], statistic: Statistic, rate: Float[Array, " rows"], precision: str
    ) -> Float[Array, "rows d d"]:
        """Dense factors after a step of `rate`, the step size over the running bound. A rate of 0 changes nothing."""

    def step_diagonal(
        self, q: Float[Array, "rows d"], statistic: Statistic, rate: Float[Array, " rows"]
    ) -> Float[Array, "rows d"]:
        """Diagonal factors after such a step."""

    def preconditioner(self, q: Float[Array, "rows d d"], precision: str) -> Float[Array, "rows d d"]:
        """P = Q'Q of dense factors."""


@cache
def geometries() -> tuple[str, ...]:
    """The names of all geometries."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


@cache
def geometry(name: str) -> Geometry:
    """The geometry of that name (one of `geometries()`)."""
    found: Geometry = importlib.import_module(f"{__name__}.{name}").GEOMETRY
    return found
