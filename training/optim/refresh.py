"""One refresh of the factors of some blocks, and the loop that refreshes a share of a stack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from training.optim.chunks import Chunks, from_lanes, put_chunk, take_chunk, to_lanes
from training.optim.factor_kind import Kind
from training.optim.geometries import Evidence, Statistics, geometry
from training.optim.kron_config import KronConfig
from training.optim.kron_state import StackState
from training.optim.norms import TINY
from training.optim.randomness import Randomness
from training.optim.statistics import apply_factors, damping_noise, expand, mean_magnitude

LARGEST_BOUND = 1e37
"""Where the running bound stops growing: the square of a gradient of 1e20 is more than fp32 holds."""

Basis = tuple[Array | None, ...]
"""P of each axis of a stack: (rows, d, d) for a dense one, None for a diagonal one."""


class Blocks(NamedTuple):
    """The blocks that are refreshed: every leaf has the rows as its first axis."""

    gradient: Array
    """What is whitened, (rows, *block)."""
    preconditioned: Array | None
    """P applied to it, where the update has computed that already."""
    magnitude: Float[Array, " rows"]
    """The mean magnitude of the gradient of the block's layer; 0 leaves the block's factors alone."""
    basis: Basis | None
    """P given from outside; None where the state's own is used and refreshed."""


class Pace(NamedTuple):
    """What a step says to all refreshes."""

    rate: Float[Array, "*rows"]
    """The step size of the factors."""
    balance: Bool[Array, ""]
    """Whether the factors of a block are scaled to equal largest entries this time."""


def preconditioners(q: Sequence[Array], p: Basis) -> tuple[Array, ...]:
    """P of every axis in fp32: the one at hand of a dense factor, the square of a diagonal one."""
    return tuple(
        jnp.square(factor.astype(jnp.float32)) if square is None else square.astype(jnp.float32)
        for factor, square in zip(q, p, strict=True)
    )


def refresh_rows(
    state: StackState, blocks: Blocks, kinds: tuple[Kind, ...], random: Randomness, pace: Pace, config: KronConfig
) -> StackState:
    """The factors of some rows after a refresh. Where the magnitude is zero they keep their bits."""
    used, precision = geometry(config.geometry), config.precision.value
    factors = tuple(q.astype(jnp.float32) for q in state.q)
    evidence = _evidence(factors, state, blocks, kinds, random, config)
    statistics = used.statistics(evidence)
    alive = blocks.magnitude > 0
    lipschitz, rates = _running_bounds(state.lipschitz, statistics, jnp.where(alive, pace.rate, 0.0), config)
    stepped = [
        used.step_dense(q, axis, rate, precision) if kind is Kind.DENSE else used.step_diagonal(q, axis, rate)
        for q, axis, rate, kind in zip(factors, statistics.axes, rates, kinds, strict=True)
    ]
    balanced = balance_factors(stepped, pace.balance & alive)
    q = tuple(factor.astype(old.dtype) for factor, old in zip(balanced, state.q, strict=True))
    p = state.p if blocks.basis is not None else refreshed_basis(q, state.p, config)
    return StackState(q=q, p=p, lipschitz=jnp.where(alive[:, None], lipschitz, state.lipschitz))


def _evidence(
    factors: tuple[Array, ...],
    state: StackState,
    blocks: Blocks,
    kinds: tuple[Kind, ...],
    random: Randomness,
    config: KronConfig,
) -> Evidence:
    """What the geometry may look at: P applied to the gradient and to the damping noise."""
    precision = config.precision.value
    applied = preconditioners(state.q, state.p if blocks.basis is None else blocks.basis)
    whitened = blocks.preconditioned
    if whitened is None:
        whitened = apply_factors(applied, kinds, blocks.gradient, precision)
    size = config.damping + config.relative_damping * blocks.magnitude
    return Evidence(
        kinds=kinds,
        factors=factors,
        gradient=blocks.gradient,
        preconditioned=whitened + damping_noise(applied, kinds, random.signs, size, precision),
        magnitude=mean_magnitude(whitened),
        probes=random.probes,
        key=random.key,
        precision=precision,
    )


def _running_bounds(
    before: Float[Array, "rows axes"], statistics: Statistics, rate: Float[Array, " rows"], config: KronConfig
) -> tuple[Float[Array, "rows axes"], list[Float[Array, " rows"]]]:
    """The running bound of every axis after this refresh, and the rates of the steps in the statistics' unit."""
    bounds, rates = [], []
    for axis, statistic in enumerate(statistics.axes):
        decayed = config.lipschitz_decay * (before[:, axis] / statistics.unit)
        bound = jnp.maximum(decayed + (1 - config.lipschitz_decay) * statistic.bound, statistic.bound)
        rates.append(rate / bound)
        bounds.append(jnp.minimum(bound * statistics.unit, LARGEST_BOUND))
    return jnp.stack(bounds, axis=1), rates


def balance_factors(factors: Sequence[Array], chosen: Bool[Array, " rows"]) -> list[Array]:
    """Factors scaled to equal largest entries where that is chosen; their product stays."""
    if len(factors) == 1:
        return list(factors)
    largest = [_largest_entry(q) for q in factors]
    logs = jnp.stack([jnp.log(entry + TINY) for entry in largest])
    scales = jnp.where(chosen, jnp.exp(jnp.mean(logs, axis=0) - logs), 1.0)
    return [q * expand(scale, q.ndim) for q, scale in zip(factors, scales, strict=True)]


def _largest_entry(q: Array) -> Float[Array, " rows"]:
    """The largest magnitude on the diagonal of each factor: a positive definite matrix has its largest entry there."""
    entries = jnp.diagonal(q, axis1=1, axis2=2) if q.ndim == 3 else q
    return jnp.max(jnp.abs(entries), axis=1)


def refreshed_basis(q: Sequence[Array], p: Basis, config: KronConfig) -> Basis:
    """P = Q'Q of the factors as they are stored, for the axes that have one."""
    used, precision = geometry(config.geometry), config.precision.value
    return tuple(
        None if old is None else used.preconditioner(factor.astype(jnp.float32), precision).astype(old.dtype)
        for factor, old in zip(q, p, strict=True)
    )


def refresh_stack(
    state: StackState,
    blocks: Blocks,
    kinds: tuple[Kind, ...],
    chunks: Chunks,
    span: tuple[Int[Array, ""], Int[Array, ""]],
    random: Randomness,
    pace: Pace,
    config: KronConfig,
) -> StackState:
    """A stack after the chunks of `span` have been refreshed."""
    seen = to_lanes(blocks, chunks)

    def body(index: Int[Array, ""], carried: StackState) -> StackState:
        rows, read = take_chunk(carried, index, chunks), take_chunk(seen, index, chunks)
        return put_chunk(carried, refresh_rows(rows, read, kinds, random, pace, config), index, chunks)

    refreshed: StackState = lax.fori_loop(*span, body, to_lanes(state, chunks))
    return from_lanes(refreshed, chunks)
