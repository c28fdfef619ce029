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
    "grouped-query, half rotated": SoftmaxConfig(n_heads=4, n_kv_heads=2, rope_fraction=0.5, block=5),
    "multi-query, no order": SoftmaxConfig(n_heads=4, n_kv_heads=1, d_head=6, rope_fraction=0.0),
    "multi-head, window": SoftmaxConfig(n_heads=2, window=5, block=4),
    "linear": LinearConfig(n_heads=2, chunk=7),
    "based": BasedConfig(n_heads=2, d_feature=4, chunk=7),
    "lightning": LightningConfig(n_heads=2, chunk=7),
    "retention": RetentionConfig(n_heads=2, chunk=7),
    "ssd": SsdConfig(d_head=4, d_state=6, n_groups=2, chunk=5),
}
QUICKLY = {"xla_backend_optimization_level": 0}
"""Most of the time of these tests is compilation, and what is fast is not their question."""
Output = tuple[Any, Any]


class Stand(NamedTuple):
    """A mixer with its calls, each compiled once."""

    mixer: AbstractMixer[Any]
    forward_and_slopes: Any
    go_on: Any
    step: Any
    traces: list[str]
    """The dtype of each trace of `step`."""

    def forward(self, x: np.ndarray, positions: np.ndarray, segments: np.ndarray) -> np.ndarray:
        """The outputs, without a state."""
        return np.asarray(self.forward_and_slopes(self.mixer, x, positions, segments)[0])


@pytest.fixture(scope="module", params=list(CONFIGS.values()), ids=list(CONFIGS))
def stand(request: pytest.FixtureRequest) -> Stand:
    mixer = built(request.param, layer=1)
    traces: list[str] = []

    def step(mixer: AbstractMixer[Any], x: Any, position: Any, active: Any, state: Any) -> Output:
        traces.append(str(x.dtype))
        return mixer.step(x, position, active, state)

    def forward(mixer: AbstractMixer[Any], x: Any, positions: Any, segments: Any) -> Output:
        def loss(mixer: AbstractMixer[Any]) -> Output:
            out, _ = mixer(x, positions, segments)
            return jnp.sum(out * tokens(seed=5)), out

        slopes, out = jax.grad(loss, has_aux=True)(mixer)
        return out, slopes

    return Stand(
        mixer=mixer,
        forward_and_slopes=jax.jit(forward, compiler_options=QUICKLY),
        go_on=jax.jit(
            lambda m, x, positions, segments, state: m(x, positions, segments, state), compiler_options=QUICKLY
        ),
        step=jax.jit(step, compiler_options=QUICKLY),
        traces=traces,
    )


def built(config: MixerConfig, *, layer: int) -> AbstractMixer[Any]:
    return build_mixer(config, D_MODEL, layer=layer, n_layers=4, key=jax.random.key(layer))


def tokens(seed: int = 0, batch: int = BATCH, time: int = TIME) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((batch, time, D_MODEL), dtype=np.float32)


def one_document(batch: int = BATCH, time: int = TIME) -> tuple[np.ndarray, np.ndarray]:
    """Positions and segments of rows without padding."""
    return np.broadcast_to(np.arange(time, dtype=np.int32), (batch, time)), np.ones((batch, time), np.int32)


def piece_by_piece(stand: Stand, x: np.ndarray, sizes: tuple[int, ...], state: Any) -> Output:
    """The outputs of `x` in pieces of these sizes, each filled up with padding to one length."""
    outputs, start = [], 0
    for size in sizes:
        place = np.arange(PIECE, dtype=np.int32)
        taken = np.minimum(start + place, x.shape[1] - 1)
        positions = np.broadcast_to(start + place, (len(x), PIECE))
        segments = np.broadcast_to((place < size).astype(np.int32), (len(x), PIECE))
        out, state = stand.go_on(stand.mixer, x[:, taken], positions, segments, state)
        outputs.append(out[:, :size])
        start += size
    return np.concatenate(outputs, axis=1), state


def token_by_token(stand: Stand, x: np.ndarray, state: Any, first: int = 0) -> Output:
    outputs = []
    for place in range(x.shape[1]):
        position = np.full(len(x), first + place, np.int32)
        out, state = stand.step(stand.mixer, x[:, place], position, np.ones(len(x), bool), state)
        outputs.append(out)
    return np.stack(outputs, axis=1), state


def close(got: Any, wanted: Any, tolerance: float = 1e-5) -> None:
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def dtypes(state: Any) -> list[str]:
    return [str(leaf.dtype) for leaf in jax.tree.leaves(state)]


def same_bits(got: Any, wanted: Any) -> None:
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


@pytest.mark.parametrize("sizes", [(8, 8, 8), (1, 7, 8, 3, 5), (4, 1, 1, 1, 8, 8, 1)])
def test_a_prefill_in_pieces_is_the_forward_pass(stand: Stand, sizes: tuple[int, ...]) -> None:
    x = tokens()
    whole = stand.forward(x, *one_document())
    pieces, _ = piece_by_piece(stand, x, sizes, stand.mixer.init_state(BATCH, context=TIME))
    close(pieces, whole)


def test_steps_are_the_forward_pass_and_leave_the_state_of_a_prefill(stand: Stand) -> None:
    x = tokens()
    whole = stand.forward(x, *one_document())
    empty = stand.mixer.init_state(BATCH, context=TIME)
    steps, after_steps = token_by_token(stand, x, empty)
    close(steps, whole)
    _, after_pieces = piece_by_piece(stand, x, (8, 5, 8, 3), empty)
    close(after_steps, after_pieces)


def test_steps_go_on_from_a_prefill(stand: Stand) -> None:
    x = tokens()
    whole = stand.forward(x, *one_document())
    _, state = piece_by_piece(stand, x, (8, 3), stand.mixer.init_state(BATCH, context=TIME))
    close(token_by_token(stand, x[:, 11:], state, first=11)[0], whole[:, 11:])


def test_packed_documents_are_documents_by_themselves(stand: Stand) -> None:
    lengths = (9, 1, 11)  # and 3 of padding
    x = tokens(batch=1)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    segments = np.asarray(np.repeat([4, 2, 7, 0], [*lengths, 3])[None].astype(np.int32))
    positions = np.asarray(np.concatenate([np.arange(n) for n in (*lengths, 3)])[None].astype(np.int32))
    packed = stand.forward(*(np.repeat(each, BATCH, axis=0) for each in (x, positions, segments)))
    alone = np.stack([np.roll(x[0], -start, axis=0) for start in starts[:3]])
    own = np.arange(TIME) < np.asarray(lengths)[:, None]
    separate = stand.forward(alone, one_document()[0], own.astype(np.int32))
    for row, (start, length) in enumerate(zip(starts, lengths, strict=False)):
        close(packed[0, start : start + length], separate[row, :length])


def test_the_first_document_of_a_row_goes_on_from_the_state_and_the_last_leaves_its_own(stand: Stand) -> None:
    x = tokens()
    before, ends, begins = x[:, :8], x[:, 8:11], x[:, 11:15]
    _, state = piece_by_piece(stand, before, (8,), stand.mixer.init_state(BATCH, context=TIME))
    row = np.concatenate([ends, begins, x[:, :1]], axis=1)
    positions = np.broadcast_to(np.asarray([8, 9, 10, 0, 1, 2, 3, 0], np.int32), (BATCH, PIECE))
    segments = np.broadcast_to(np.asarray([1, 1, 1, 2, 2, 2, 2, 0], np.int32), (BATCH, PIECE))
    out, after = stand.go_on(stand.mixer, row, positions, segments, state)
    close(out[:, :3], piece_by_piece(stand, x[:, :11], (8, 3), stand.mixer.init_state(BATCH, context=TIME))[0][:, 8:])
    fresh, after_fresh = piece_by_piece(stand, begins, (4,), stand.mixer.init_state(BATCH, context=TIME))
    close(out[:, 3:7], fresh)
    close(after, after_fresh)


def test_what_is_padding_or_not_active_changes_no_bit_of_a_state(stand: Stand) -> None:
    x = tokens()
    _, state = piece_by_piece(stand, x, (8, 2), stand.mixer.init_state(BATCH, context=TIME))
    nothing = np.zeros((BATCH, PIECE), np.int32)
    same_bits(stand.go_on(stand.mixer, x[:, 10:18], nothing + 10, nothing, state)[1], state)
    active = np.asarray([True, False, True])
    _, after = stand.step(stand.mixer, x[:, 10], np.full(BATCH, 10, np.int32), active, state)
    same_bits(jax.tree.map(lambda leaf: leaf[1], after), jax.tree.map(lambda leaf: leaf[1], state))
    everybody = np.ones(BATCH, bool)
    _, of_all = stand.step(stand.mixer, x[:, 10], np.full(BATCH, 10, np.int32), everybody, state)
    same_bits(jax.tree.map(lambda leaf: leaf[::2], after), jax.tree.map(lambda leaf: leaf[::2], of_all))


def test_what_stands_in_padding_reaches_no_token(stand: Stand) -> None:
    positions, segments = one_document()
    segments[:, 17:] = 0
    x = tokens()
    one = stand.forward(x, positions, segments)
    x[:, 17:] = 1e3
    other = stand.forward(x, positions, segments)
    same_bits(one[:, :17], other[:, :17])


def test_rows_do_not_meet(stand: Stand) -> None:
    x, (positions, segments) = tokens(), one_document()
    one = stand.forward(x, positions, segments)
    x[1] *= 3
    segments[1, 4:] = 2
    other = stand.forward(x, positions, segments)
    same_bits(one[::2], other[::2])
    assert not np.allclose(one[1], other[1])


def test_bf16_comes_back_as_bf16_and_what_adds_up_stays_fp32(stand: Stand) -> None:
    def narrow(path: Any, leaf: np.ndarray) -> np.ndarray:
        return leaf if keeps_fp32(path) else leaf.astype(jnp.bfloat16)

    mixer = jax.tree_util.tree_map_with_path(narrow, stand.mixer)
    x = tokens().astype(jnp.bfloat16)
    before = mixer.init_state(BATCH, context=TIME)
    out, after = token_by_token(stand._replace(mixer=mixer), x, before)
    assert out.dtype == jnp.bfloat16
    wide = stand.forward(tokens(), *one_document())
    np.testing.assert_allclose(out.astype(np.float32), wide, atol=0.04 * float(np.max(np.abs(wide))))
    assert dtypes(after) == dtypes(before)
    if hasattr(after, "memory"):
        assert after.memory.dtype == jnp.float32
    prefilled = jax.eval_shape(type(mixer).__call__, mixer, *map(jnp.asarray, (x, *one_document())), before)
    assert prefilled[0].dtype == jnp.bfloat16
    assert dtypes(prefilled[1]) == dtypes(before)


def test_the_loss_reaches_every_parameter_but_fixed_decays(stand: Stand) -> None:
    _, slopes = stand.forward_and_slopes(stand.mixer, tokens(), *one_document())
    for path, slope in jax.tree_util.tree_leaves_with_path(slopes):
        name = jax.tree_util.keystr(path)
        assert bool(np.all(np.isfinite(slope))), name
        assert bool(np.any(slope != 0)) == (name != ".slopes"), name


def test_decoding_compiles_once(stand: Stand) -> None:
    state = stand.mixer.init_state(BATCH, context=TIME)
    for place in range(3):
        active = np.arange(BATCH) != place
        _, state = stand.step(stand.mixer, tokens()[:, place], np.full(BATCH, place, np.int32), active, state)
    assert stand.traces.count("float32") == 1


def test_layers_of_a_stack_differ_in_arrays_alone(stand: Stand) -> None:
    other = jax.eval_shape(lambda: built(stand.mixer.config, layer=2))  # type: ignore[attr-defined]
    assert str(jax.tree.structure(other)) == str(jax.tree.structure(stand.mixer))
    assert all(eqx.is_inexact_array(leaf) for leaf in jax.tree.leaves(stand.mixer))


def test_every_mixer_of_the_registry_is_in_the_table() -> None:
    assert {config.type for config in CONFIGS.values()} == set(MIXERS)
    assert all(MIXERS[config.type] is type(config) for config in CONFIGS.values())
