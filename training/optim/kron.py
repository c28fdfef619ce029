"""PSGD-Kron: gradients whitened by a Kronecker product of small factors, found by descent, with matrix products alone.

For a matrix G the update is (Q1'Q1) G (Q2'Q2). The factors descend on the criterion whose minimum makes the update
white (Li, "Preconditioned stochastic gradient descent", 2015, and its later geometries: see `geometries`). What is here
beside it is what makes it cheap: leaves cut evenly into blocks, blocks of one shape in one stack, P = Q'Q kept, the
preconditioned gradient used for the update and the statistics both, and a refresh of a share of the blocks a step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Float, Int

from training.optim.blocks import Group, KeyPath, Layout, plan_blocks
from training.optim.caps import BlockSize, block_size, rms_factors
from training.optim.chunks import apply_chunks, from_lanes, put_chunk, refresh_chunks, take_chunk, to_lanes
from training.optim.first_scale import scale_first
from training.optim.kron_config import KronConfig, Whiten
from training.optim.kron_state import KronState, StackState, init_state
from training.optim.randomness import Probes, draw
from training.optim.refresh import Basis, Blocks, Pace, preconditioners, refresh_rows, refresh_stack
from training.optim.rotation import chunk_range, is_balanced, precondition_rate
from training.optim.stacks import gather_blocks, scatter_blocks
from training.optim.statistics import apply_factors, expand
from training.optim.units import unit_magnitudes, units_of


def nothing_stacked(path: KeyPath) -> bool:
    """For models that stack no layers."""
    del path
    return False


def scale_by_kron(
    config: KronConfig,
    *,
    stacked: Callable[[KeyPath], bool] = nothing_stacked,
    probes: Probes = jax.random.normal,
) -> optax.GradientTransformationExtraArgs:
    """Whitening alone: an update of about RMS 1 and of the gradient's sign.

    `stacked` answers for the path of a leaf whether its first axis counts layers; each layer then is a parameter by
    itself. `update(grads, state, params, *, basis=None)` takes the P of every stack from `basis` instead of the state
    (see `refresh`); the state's own P then stays as it is. Leaves that are integer or of size 0 get an update of zero.
    `probes` draws the vectors from which norms are estimated. `init` raises TrainingError for a complex leaf, and for a
    state over the budget.
    """

    def init(params: Any) -> KronState:
        return init_state(params, config, stacked)

    def update(
        grads: Any, state: KronState, params: Any = None, *, basis: Mapping[str, Basis] | None = None, **extra: Any
    ) -> tuple[Any, KronState]:
        del extra
        layout = plan_blocks(grads, config, stacked)
        flat, tree = _flatten(grads)
        momentum, sources = _averages(layout, flat, tree, state, config)
        magnitudes = unit_magnitudes(layout, flat)
        before = scale_first(layout, state.stacks, sources.whitened, magnitudes, config)
        outputs, sizes = _apply_all(layout, before, sources.applied, basis, config)
        stacks = _refresh_all(layout, before, sources, outputs, magnitudes, basis, state.count, config, probes)
        updates = _capped(layout, outputs, sizes, config)
        likes = flat if params is None else tree.flatten_up_to(params)
        return (
            tree.unflatten([_as_update(update, like) for update, like in zip(updates, likes, strict=True)]),
            KronState(count=optax.safe_increment(state.count), momentum=momentum, stacks=stacks),
        )

    return optax.GradientTransformationExtraArgs(init, update)


def _flatten(tree: Any) -> tuple[list[Array], Any]:
    """The leaves of a tree, and what knows its structure."""
    flat, structure = jax.tree.flatten(tree)
    return flat, structure


def refresh(stats: Mapping[str, Sequence[Any]], basis: Mapping[str, Any], config: KronConfig) -> dict[str, Any]:
    """The basis that belongs to factors: P = Q'Q of every dense axis, computed on the host by numpy.

    `stats` holds the factors `q` of every stack of a state, `basis` the one before, whose dtypes are kept. Pure.
    """
    del config
    fresh = {}
    for name, factors in stats.items():
        pairs = [(np.asarray(q, np.float32), p) for q, p in zip(factors, basis[name], strict=True)]
        fresh[name] = tuple(None if p is None else (np.swapaxes(q, 1, 2) @ q).astype(p.dtype) for q, p in pairs)
    return fresh


class Sources(NamedTuple):
    """The stacks that a step starts from."""

    applied: dict[str, Array]
    """What P is applied to for the update."""
    whitened: dict[str, Array]
    """What the factors whiten: the very same where that is the momentum, or where there is none."""

    @property
    def same(self) -> bool:
        """Whether both are the same."""
        return self.applied is self.whitened


def _averages(
    layout: Layout, flat: Sequence[Array], tree: Any, state: KronState, config: KronConfig
) -> tuple[Any, Sources]:
    """The momentum after this gradient, and the stacks of what is applied and whitened."""
    if not config.b1:
        stacks = gather_blocks(layout, flat)
        return None, Sources(stacks, stacks)
    before = tree.flatten_up_to(state.momentum)
    after = [
        None if old is None else config.b1 * old + (1 - config.b1) * grad.astype(jnp.float32)
        for old, grad in zip(before, flat, strict=True)
    ]
    correction = 1 / (1 - config.b1 ** (state.count + 1).astype(jnp.float32))
    applied = gather_blocks(layout, [None if value is None else value * correction for value in after])
    whitened = applied if config.whiten is Whiten.MOMENTUM else gather_blocks(layout, flat)
    return tree.unflatten(after), Sources(applied, whitened)


def _apply_all(
    layout: Layout,
    states: Mapping[str, StackState],
    stacks: Mapping[str, Array],
    basis: Mapping[str, Basis] | None,
    config: KronConfig,
) -> tuple[dict[str, Array], dict[str, BlockSize]]:
    """P applied to every stack, and the sizes of the blocks that come out."""
    outputs, sizes = {}, {}
    for group in layout.groups:
        state = states[group.name]
        applied = preconditioners(state.q, state.p if basis is None else basis[group.name])
        outputs[group.name], sizes[group.name] = _apply(applied, stacks[group.name], group, config)
    return outputs, sizes


def _apply(factors: tuple[Array, ...], blocks: Array, group: Group, config: KronConfig) -> tuple[Array, BlockSize]:
    """P applied to one stack, chunk by chunk: the product between the two factors never leaves the cache.

    The results take the place of the blocks: a second stack would be written twice, and its memory fetched each step.
    """

    def rows(factors: tuple[Array, ...], blocks: Array) -> tuple[Array, BlockSize]:
        output = apply_factors(factors, group.kinds, blocks, config.precision.value)
        return output, block_size(output)

    chunks = apply_chunks(group.rows, config)
    if chunks.count == 1 or not group.has_dense:
        return rows(factors, blocks)
    read = to_lanes(factors, chunks)

    def body(index: Int[Array, ""], written: tuple[Array, BlockSize]) -> tuple[Array, BlockSize]:
        done = rows(take_chunk(read, index, chunks), take_chunk(written[0], index, chunks))
        return put_chunk(written, done, index, chunks)

    none = jnp.zeros(group.rows)
    start = to_lanes((blocks, BlockSize(none, none)), chunks)
    written: tuple[Array, BlockSize] = lax.fori_loop(0, chunks.count, body, start)
    return from_lanes(written, chunks)


def _refresh_all(
    layout: Layout,
    states: Mapping[str, StackState],
    sources: Sources,
    outputs: Mapping[str, Array],
    magnitudes: Float[Array, " units"],
    basis: Mapping[str, Basis] | None,
    step: Int[Array, ""],
    config: KronConfig,
    probes: Probes,
) -> dict[str, StackState]:
    """The factors after the refreshes of this step. Stacks without a dense factor are cheap, and refreshed whole."""
    random, units = draw(layout, step, config, probes), units_of(layout)
    pace = Pace(rate=precondition_rate(step, config), balance=is_balanced(step, config))
    fresh = {}
    for number, group in enumerate(layout.groups):
        name, chunks = group.name, refresh_chunks(group.rows, config)
        blocks = Blocks(
            gradient=sources.whitened[name],
            preconditioned=outputs[name] if sources.same else None,
            magnitude=magnitudes[units.rows[name]],
            basis=None if basis is None else basis[name],
        )
        if group.has_dense:
            span = chunk_range(step, chunks, number, config)
            fresh[name] = refresh_stack(states[name], blocks, group.kinds, chunks, span, random[name], pace, config)
        else:
            fresh[name] = refresh_rows(states[name], blocks, group.kinds, random[name], pace, config)
    return fresh


def _capped(
    layout: Layout, outputs: Mapping[str, Array], sizes: Mapping[str, BlockSize], config: KronConfig
) -> list[Array | None]:
    """The updates of all leaves, capped in RMS and in every number."""
    factors = rms_factors(units_of(layout), sizes, config.rms_cap)
    cap, scale = config.element_cap, config.update_scale
    stacks = {
        name: jnp.clip(output * expand(factors[name], output.ndim), -cap, cap) * scale
        for name, output in outputs.items()
    }
    return scatter_blocks(layout, stacks)


def _as_update(update: Array | None, like: Array) -> Array:
    """An update in the dtype of its parameter; zeros for one that is left alone."""
    return jnp.zeros(like.shape, like.dtype) if update is None else update.astype(like.dtype)
