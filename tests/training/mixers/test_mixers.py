"""What every mixer promises, whichever it is: one table over all of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from training.mixers.based import BasedConfig
from training.mixers.lightning import LightningConfig
from training.mixers.linear import LinearConfig
from training.mixers.mixer import AbstractMixer
from training.mixers.registry import MIXERS, MixerConfig, build_mixer
from training.mixers.retention import RetentionConfig
from training.mixers.softmax import SoftmaxConfig
from training.mixers.ssd import SsdConfig
from training.model.paths import keeps_fp32

D_MODEL, BATCH, TIME, PIECE = 16, 3, 24, 8
CONFIGS: dict[str, MixerConfig] = {
    "multi-head": SoftmaxConfig(n_heads=2, block=8),
    "grouped-query, half rotated": SoftmaxConfig(n_heads=4, n_kv_heads=2, rope_fraction=0.5, block=5),
    "multi-query, no order": SoftmaxConfig(n_heads=4, n_kv_heads=1, d_head=6, rope_fraction=0.0),
    "window": SoftmaxConfig(n_heads=2, window=5, block=4),
    "linear": LinearConfig(n_heads=2, chunk=7),
    "based": BasedConfig(n_heads=2, d_feature=4, chunk=7),
    "based without taps": BasedConfig(n_heads=1, d_feature=3, taps=0, chunk=16),
    "lightning": LightningConfig(n_heads=2, chunk=7),
    "retention": RetentionConfig(n_heads=2, chunk=7),
    "ssd": SsdConfig(d_head=8, d_state=6, chunk=7),
    "ssd in groups": SsdConfig(d_head=4, d_state=6, n_groups=2, taps=2, chunk=5),
}
Output = tuple[Any, Any]


class Stand(NamedTuple):
    """A mixer with its calls, each compiled once."""

    mixer: AbstractMixer[Any]
    forward: Any
    go_on: Any
    step: Any


@pytest.fixture(scope="module", params=list(CONFIGS.values()), ids=list(CONFIGS))
def stand(request: pytest.FixtureRequest) -> Stand:
    mixer = build_mixer(request.param, D_MODEL, layer=1, n_layers=4, key=jax.random.key(0))
    return Stand(
        mixer=mixer,
        forward=jax.jit(lambda m, x, positions, segments: m(x, positions, segments)[0]),
        go_on=jax.jit(lambda m, x, positions, segments, state: m(x, positions, segments, state)),
        step=jax.jit(lambda m, x, position, active, state: m.step(x, position, active, state)),
    )


def tokens(seed: int = 0, batch: int = BATCH, time: int = TIME) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), (batch, time, D_MODEL))


def one_document(batch: int = BATCH, time: int = TIME) -> tuple[jax.Array, jax.Array]:
    """Positions and segments of rows without padding."""
    return jnp.broadcast_to(jnp.arange(time, dtype=jnp.int32), (batch, time)), jnp.ones((batch, time), jnp.int32)


def piece_by_piece(stand: Stand, x: jax.Array, sizes: tuple[int, ...], state: Any) -> Output:
    """The outputs of `x` in pieces of these sizes, each filled up with padding to one length."""
    outputs, start = [], 0
    for size in sizes:
        place = jnp.arange(PIECE, dtype=jnp.int32)
        taken = jnp.minimum(start + place, x.shape[1] - 1)
        positions = jnp.broadcast_to(start + place, (len(x), PIECE))
        segments = jnp.broadcast_to((place < size).astype(jnp.int32), (len(x), PIECE))
        out, state = stand.go_on(stand.mixer, x[:, taken], positions, segments, state)
        outputs.append(out[:, :size])
        start += size
    return jnp.concatenate(outputs, axis=1), state


def token_by_token(stand: Stand, x: jax.Array, state: Any, first: int = 0) -> Output:
    outputs = []
    for place in range(x.shape[1]):
        position = jnp.full(len(x), first + place, jnp.int32)
        out, state = stand.step(stand.mixer, x[:, place], position, jnp.ones(len(x), bool), state)
        outputs.append(out)
    return jnp.stack(outputs, axis=1), state


def close(got: Any, wanted: Any, tolerance: float = 1e-5) -> None:
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def same_bits(got: Any, wanted: Any) -> None:
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


@pytest.mark.parametrize("sizes", [(8, 8, 8), (1, 7, 8, 3, 5), (4, 1, 1, 1, 8, 8, 1)])
def test_a_prefill_in_pieces_is_the_forward_pass(stand: Stand, sizes: tuple[int, ...]) -> None:
    x = tokens()
    whole = stand.forward(stand.mixer, x, *one_document())
    pieces, _ = piece_by_piece(stand, x, sizes, stand.mixer.init_state(BATCH, context=TIME))
    close(pieces, whole)


def test_steps_are_the_forward_pass_and_leave_the_state_of_a_prefill(stand: Stand) -> None:
    x = tokens()
    whole = stand.forward(stand.mixer, x, *one_document())
    empty = stand.mixer.init_state(BATCH, context=TIME)
    steps, after_steps = token_by_token(stand, x, empty)
    close(steps, whole)
    _, after_pieces = piece_by_piece(stand, x, (8, 5, 8, 3), empty)
    close(after_steps, after_pieces)


def test_steps_go_on_from_a_prefill(stand: Stand) -> None:
    x = tokens()
    whole = stand.forward(stand.mixer, x, *one_document())
    _, state = piece_by_piece(stand, x, (8, 3), stand.mixer.init_state(BATCH, context=TIME))
    close(token_by_token(stand, x[:, 11:], state, first=11)[0], whole[:, 11:])


def test_packed_documents_are_documents_by_themselves(stand: Stand) -> None:
    lengths = (9, 1, 11)  # and 3 of padding
    x = tokens(batch=1)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    segments = jnp.asarray(np.repeat([4, 2, 7, 0], [*lengths, 3])[None].astype(np.int32))
    positions = jnp.asarray(np.concatenate([np.arange(n) for n in (*lengths, 3)])[None].astype(np.int32))
    packed = stand.forward(stand.mixer, *(jnp.repeat(each, BATCH, axis=0) for each in (x, positions, segments)))
    alone = jnp.stack([jnp.roll(x[0], -start, axis=0) for start in starts[:3]])
    own = jnp.arange(TIME) < jnp.asarray(lengths)[:, None]
    separate = stand.forward(stand.mixer, alone, one_document()[0], own.astype(jnp.int32))
    for row, (start, length) in enumerate(zip(starts, lengths, strict=False)):
        close(packed[0, start : start + length], separate[row, :length])


def test_the_first_document_of_a_row_goes_on_from_the_state_and_the_last_leaves_its_own(stand: Stand) -> None:
    x = tokens()
    before, ends, begins = x[:, :8], x[:, 8:11], x[:, 11:15]
    _, state = piece_by_piece(stand, before, (8,), stand.mixer.init_state(BATCH, context=TIME))
    row = jnp.concatenate([ends, begins, x[:, :1]], axis=1)
    positions = jnp.broadcast_to(jnp.asarray([8, 9, 10, 0, 1, 2, 3, 0], jnp.int32), (BATCH, PIECE))
    segments = jnp.broadcast_to(jnp.asarray([1, 1, 1, 2, 2, 2, 2, 0], jnp.int32), (BATCH, PIECE))
    out, after = stand.go_on(stand.mixer, row, positions, segments, state)
    close(out[:, :3], piece_by_piece(stand, x[:, :11], (8, 3), stand.mixer.init_state(BATCH, context=TIME))[0][:, 8:])
    fresh, after_fresh = piece_by_piece(stand, begins, (4,), stand.mixer.init_state(BATCH, context=TIME))
    close(out[:, 3:7], fresh)
    close(after, after_fresh)


def test_what_is_padding_or_not_active_changes_no_bit_of_a_state(stand: Stand) -> None:
    x = tokens()
    _, state = piece_by_piece(stand, x, (8, 2), stand.mixer.init_state(BATCH, context=TIME))
    nothing = jnp.zeros((BATCH, PIECE), jnp.int32)
    same_bits(stand.go_on(stand.mixer, x[:, 10:18], nothing + 10, nothing, state)[1], state)
    active = jnp.asarray([True, False, True])
    _, after = stand.step(stand.mixer, x[:, 10], jnp.full(BATCH, 10, jnp.int32), active, state)
    same_bits(jax.tree.map(lambda leaf: leaf[1], after), jax.tree.map(lambda leaf: leaf[1], state))
    everybody = jnp.ones(BATCH, bool)
    _, of_all = stand.step(stand.mixer, x[:, 10], jnp.full(BATCH, 10, jnp.int32), everybody, state)
    same_bits(jax.tree.map(lambda leaf: leaf[::2], after), jax.tree.map(lambda leaf: leaf[::2], of_all))


def test_what_stands_in_padding_reaches_no_token(stand: Stand) -> None:
    positions, segments = one_document()
    segments = segments.at[:, 17:].set(0)
    x = tokens()
    one = stand.forward(stand.mixer, x, positions, segments)
    other = stand.forward(stand.mixer, x.at[:, 17:].set(1e3), positions, segments)
    same_bits(one[:, :17], other[:, :17])


def test_rows_do_not_meet(stand: Stand) -> None:
    x, (positions, segments) = tokens(), one_document()
    one = stand.forward(stand.mixer, x, positions, segments)
    other = stand.forward(stand.mixer, x.at[1].multiply(3.0), positions, segments.at[1, 4:].set(2))
    same_bits(one[::2], other[::2])
    assert not np.allclose(one[1], other[1])


def test_bf16_comes_back_as_bf16_and_what_adds_up_stays_fp32(stand: Stand) -> None:
    def narrow(path: Any, leaf: jax.Array) -> jax.Array:
        return leaf if keeps_fp32(path) else leaf.astype(jnp.bfloat16)

    mixer = jax.tree_util.tree_map_with_path(narrow, stand.mixer)
    x = tokens()[:, :PIECE].astype(jnp.bfloat16)
    before = mixer.init_state(BATCH, context=TIME)
    out, after = stand.go_on(mixer, x, *one_document(time=PIECE), before)
    assert out.dtype == jnp.bfloat16
    wide, _ = piece_by_piece(stand, tokens()[:, :PIECE], (PIECE,), stand.mixer.init_state(BATCH, context=TIME))
    scale = float(jnp.max(jnp.abs(wide)))
    np.testing.assert_allclose(out.astype(jnp.float32), wide, atol=0.04 * scale)
    assert jax.tree.map(lambda leaf: leaf.dtype, after) == jax.tree.map(lambda leaf: leaf.dtype, before)
    if hasattr(after, "memory"):
        assert after.memory.dtype == jnp.float32
    step_out, stepped = stand.step(mixer, x[:, 0], jnp.full(BATCH, PIECE), jnp.ones(BATCH, bool), after)
    assert step_out.dtype == jnp.bfloat16
    assert jax.tree.map(lambda leaf: leaf.dtype, stepped) == jax.tree.map(lambda leaf: leaf.dtype, before)


def test_the_loss_reaches_every_parameter_but_fixed_decays(stand: Stand) -> None:
    x, (positions, segments) = tokens(), one_document()
    aim = tokens(seed=5)
    slopes = jax.jit(jax.grad(lambda m: jnp.sum(m(x, positions, segments)[0] * aim)))(stand.mixer)
    for path, slope in jax.tree_util.tree_leaves_with_path(slopes):
        name = jax.tree_util.keystr(path)
        assert bool(jnp.all(jnp.isfinite(slope))), name
        assert bool(jnp.any(slope != 0)) == (name != ".slopes"), name


def test_decoding_compiles_once(stand: Stand) -> None:
    traces = 0

    def once(mixer: AbstractMixer[Any], x: Any, position: Any, active: Any, state: Any) -> Output:
        nonlocal traces
        traces += 1
        return mixer.step(x, position, active, state)

    step = jax.jit(once, donate_argnums=4)
    state = jax.tree.map(jnp.copy, stand.mixer.init_state(BATCH, context=TIME))
    for place in range(3):
        active = jnp.arange(BATCH) != place
        _, state = step(stand.mixer, tokens()[:, place], jnp.full(BATCH, place, jnp.int32), active, state)
    assert traces == 1


def test_layers_of_a_stack_differ_in_arrays_alone(stand: Stand) -> None:
    layers = [
        build_mixer(stand.mixer.config, D_MODEL, layer=layer, n_layers=4, key=jax.random.key(layer))  # type: ignore[attr-defined]
        for layer in (0, 2)
    ]
    assert str(jax.tree.structure(layers[0])) == str(jax.tree.structure(layers[1]))
    assert all(eqx.is_inexact_array(leaf) for leaf in jax.tree.leaves(layers[0]))


def test_every_mixer_of_the_registry_is_in_the_table() -> None:
    assert {config.type for config in CONFIGS.values()} == set(MIXERS)
    assert all(MIXERS[config.type] is type(config) for config in CONFIGS.values())
