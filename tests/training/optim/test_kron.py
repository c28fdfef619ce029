"""PSGD-Kron as an optimizer: what its updates do not depend on, odd parameters, and what a run needs of it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Array

from training.optim.kron import nothing_stacked, refresh, scale_by_kron
from training.optim.kron_config import FactorDtype, KronConfig, Memory, Whiten
from training.optim.kron_state import state_specs

BARE = KronConfig(b1=0.0, damping=0.0, relative_damping=0.0, rms_cap=1e30, element_cap=1e30, chunk_rows=2)
"""Without what is not whitening."""


def frobenius(matrices: Array, probes: Array, *, precision: str) -> Array:
    """A norm that no rotation changes, unlike the estimate of the largest eigenvalue."""
    del probes, precision
    return jnp.sqrt(jnp.sum(matrices * matrices, axis=(1, 2)))


@pytest.fixture
def exact_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.optim.statistics.spectral_norm", frobenius)


def updates(
    gradients: Sequence[Any], config: KronConfig, stacked: Callable[[Any], bool] = nothing_stacked
) -> list[Any]:
    """The updates that a sequence of gradients gives."""
    tx = scale_by_kron(config, stacked=stacked)
    state = tx.init(gradients[0])
    step = jax.jit(tx.update)
    given = []
    for gradient in gradients:
        update, state = step(gradient, state)
        given.append(jax.tree.map(np.asarray, update))
    return given


def noise(*shape: int, count: int = 6) -> list[np.ndarray]:
    """Gradients with correlated rows and columns."""
    rng = np.random.default_rng(0)
    mix = rng.standard_normal((shape[-2], shape[-2])), rng.standard_normal((shape[-1], shape[-1]))
    return [np.float32(mix[0] @ rng.standard_normal(shape) @ mix[1]) for _ in range(count)]


@functools.cache
def plain_updates() -> list[np.ndarray]:
    """The updates of one 8 x 6 matrix, with the rotation-free norm."""
    return updates(noise(8, 6), BARE)


@pytest.mark.usefixtures("exact_norm")
class TestWhatTheUpdateDoesNotDependOn:
    def test_a_transposed_layer_gets_the_transposed_update(self) -> None:
        for plain, other in zip(plain_updates(), updates([g.T for g in noise(8, 6)], BARE), strict=True):
            np.testing.assert_allclose(other.T, plain, rtol=2e-4, atol=2e-5)

    def test_a_rotated_gradient_gets_the_rotated_update(self) -> None:
        rng = np.random.default_rng(1)
        u, v = (np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32) for d in (8, 6))
        for plain, other in zip(plain_updates(), updates([u @ g @ v for g in noise(8, 6)], BARE), strict=True):
            np.testing.assert_allclose(other, u @ plain @ v, rtol=1e-3, atol=1e-4)

    def test_the_scale_of_the_gradient_is_divided_out(self) -> None:
        # With Q scaled by c^(-1/2), the whole course is the same; c is a power of two, so that no bit is rounded.
        big = updates([g * 2.0**20 for g in noise(8, 6)], _replace(BARE, initial_scale=2.0**-10))
        for plain, other in zip(plain_updates(), big, strict=True):
            np.testing.assert_allclose(other, plain, rtol=1e-5, atol=1e-6)

    def test_blocks_and_layers_and_the_order_of_leaves_are_the_same_as_leaves_of_their_own(self) -> None:
        blocked = updates([{"w": g} for g in noise(8, 12)], _replace(BARE, block_size=4))
        cut = [
            {f"{i}{j}": g[4 * i : 4 * i + 4, 4 * j : 4 * j + 4] for i in range(2) for j in range(3)}
            for g in noise(8, 12)
        ]
        alone = updates(cut, BARE)
        layers = updates([{"s": np.stack([g[key] for key in reversed(g)])} for g in cut], BARE, lambda _: True)
        for whole, parts, stack in zip(blocked, alone, layers, strict=True):
            rows = [np.concatenate([parts[f"{i}{j}"] for j in range(3)], axis=1) for i in range(2)]
            np.testing.assert_allclose(whole["w"], np.concatenate(rows), rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(
                stack["s"], np.stack([parts[key] for key in reversed(parts)]), rtol=1e-5, atol=1e-6
            )


def _replace(config: KronConfig, **changes: Any) -> KronConfig:
    """The settings with some of them changed."""
    return dataclasses.replace(config, **changes)


ODD = KronConfig(block_size=8, dense_steps=20, refresh_period=3, anneal_steps=50)


def odd_parameters() -> dict[str, Any]:
    """Every shape that an array may have."""
    shapes = {
        "w": (8, 6),
        "scalar": (),
        "one": (1,),
        "one by one": (1, 1),
        "column": (50, 1),
        "conv": (2, 2, 2, 6),
        "deep": (1,) * 14,
        "layers": (2, 8, 6),
        "empty": (0, 4),
        "none at all": (0,),
    }
    rng = np.random.default_rng(0)
    tree: dict[str, Any] = {name: jnp.asarray(rng.normal(size=shape), jnp.float32) for name, shape in shapes.items()}
    return {
        **tree,
        "half": tree["w"].astype(jnp.bfloat16),
        "count": jnp.arange(3, dtype=jnp.int32),
        "absent": None,
    }


def odd_gradients(seed: int, scale: float = 1.0) -> dict[str, Any]:
    """Random gradients for them."""
    rng = np.random.default_rng(seed)
    draw = lambda x: jnp.asarray(scale * rng.standard_normal(x.shape), jnp.float32).astype(x.dtype)  # noqa: E731
    return jax.tree.map(draw, odd_parameters())


def has_layers(path: Any) -> bool:
    return "layers" in jax.tree_util.keystr(path)


ODD_TX = scale_by_kron(ODD, stacked=has_layers)


@functools.cache
def odd_step() -> Any:
    """One compiled step for all tests of these parameters: the state is donated."""
    return jax.jit(lambda grads, state, params: ODD_TX.update(grads, state, params), donate_argnums=1)


def finite(tree: Any) -> bool:
    return all(bool(jnp.all(jnp.isfinite(x))) for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating))


class TestOddParameters:
    def test_all_of_them_train_in_one_program_with_their_dtypes_kept(self) -> None:
        params = odd_parameters()
        state = ODD_TX.init(params)
        forms = jax.tree.map(lambda x: (x.shape, x.dtype), (params, state))
        for _ in range(200):
            grads = jax.tree.map(lambda x: x if jnp.issubdtype(x.dtype, jnp.floating) else jnp.zeros_like(x), params)
            changes, state = odd_step()(grads, state, params)
            params = jax.tree.map(lambda x, u: x - (0.02 * u).astype(x.dtype), params, changes)
        assert odd_step()._cache_size() == 1
        assert jax.tree.map(lambda x: (x.shape, x.dtype), (params, state)) == forms
        for name, start in odd_parameters().items():
            if name == "count":
                np.testing.assert_array_equal(params[name], start)
            elif start is not None and start.size:
                after, before = (float(jnp.sum(x.astype(jnp.float32) ** 2)) for x in (params[name], start))
                assert after < 0.1 * before, name

    def test_zero_gradients_at_first_leave_everything_finite_and_the_preconditioner_alone(self) -> None:
        params = odd_parameters()
        first = ODD_TX.init(params)
        kept = jax.tree.map(np.array, first.stacks)
        changes, state = odd_step()(jax.tree.map(jnp.zeros_like, params), first, params)
        assert all(not np.any(np.asarray(x, np.float32)) for x in jax.tree.leaves(changes))
        for old, new in zip(jax.tree.leaves(kept), jax.tree.leaves(state.stacks), strict=True):
            np.testing.assert_array_equal(new, old)
        for seed in range(20):
            changes, state = odd_step()(odd_gradients(seed), state, params)
            assert finite((changes, state))

    @pytest.mark.parametrize("scale", [1e-30, 1e-10, 1e10, 1e30])
    def test_updates_are_finite_at_every_scale(self, scale: float) -> None:
        state = ODD_TX.init(odd_parameters())
        for seed in range(10):
            changes, state = odd_step()(odd_gradients(seed, scale), state, odd_parameters())
            assert finite((changes, state))
            assert all(float(jnp.max(jnp.abs(x))) <= 10 for x in jax.tree.leaves(changes) if x.size)

    def test_a_state_that_was_away_goes_on_with_the_same_bits(self) -> None:
        params, state = odd_parameters(), ODD_TX.init(odd_parameters())
        for seed in range(3):
            _, state = odd_step()(odd_gradients(seed), state, params)
        stored = [np.array(x) for x in jax.tree.leaves(state)]
        back = jax.tree.unflatten(jax.tree.structure(state), [jnp.array(x) for x in stored])
        one, two = odd_step()(odd_gradients(9), state, params), odd_step()(odd_gradients(9), back, params)
        for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
            assert np.asarray(x).tobytes() == np.asarray(y).tobytes()

    def test_an_empty_tree_is_left_alone(self) -> None:
        changes, state = ODD_TX.update({}, ODD_TX.init({}), {})
        assert changes == {}
        assert state.count == 1


@pytest.mark.parametrize(
    "change",
    [
        {"whiten": Whiten.GRADIENT},
        {"initial_scale": None, "memory": Memory.ONE_SIDED},
        {"factor_dtype": FactorDtype.BFLOAT16, "memory": Memory.DIAGONAL},
    ],
    ids=lambda change: "-".join(change),
)
def test_every_mode_goes_down_a_quadratic_whose_first_gradient_is_zero(change: dict[str, Any]) -> None:
    scales = jnp.geomspace(0.01, 100.0, 48).reshape(8, 6)
    tx = optax.chain(scale_by_kron(_replace(ODD, **change)), optax.scale_by_learning_rate(0.03))
    params = jnp.ones((8, 6))
    state = tx.init(params)
    step = jax.jit(tx.update)
    for number in range(60):
        grads = jnp.zeros_like(params) if number == 0 else scales * params
        changes, state = step(grads, state, params)
        params = optax.apply_updates(params, changes)
        assert finite(params)
    assert float(jnp.sum(scales * params**2)) < 0.05 * float(jnp.sum(scales))


def test_a_basis_from_outside_gives_what_the_state_would_have_given() -> None:
    tx = scale_by_kron(_replace(ODD, dense_steps=10**6))
    gradients = [{"w": jnp.asarray(g), "v": jnp.asarray(g[0])} for g in noise(8, 6)]
    inside = outside = tx.init(gradients[0])
    basis = {name: stack.p for name, stack in outside.stacks.items()}
    step, stepped = jax.jit(tx.update), jax.jit(lambda g, s, b: tx.update(g, s, None, basis=b))
    for gradient in gradients:
        expected, inside = step(gradient, inside)
        given, outside = stepped(gradient, outside, basis)
        basis = refresh({name: stack.q for name, stack in outside.stacks.items()}, basis, ODD)
        for x, y in zip(jax.tree.leaves(given), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)
    for name, stack in outside.stacks.items():
        assert all(np.array_equal(p, np.eye(len(p[0]))[None]) for p in stack.p if p is not None), name


def test_a_sharded_state_gives_the_updates_of_one_that_is_not() -> None:
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("data", "fsdp"))
    config = KronConfig(block_size=8, lanes=8, refresh_period=1)
    tx = scale_by_kron(config)
    gradients = [{"w": jnp.asarray(g), "b": jnp.asarray(g[0])} for g in noise(64, 64, count=3)]
    param_specs = {"w": P("fsdp", None), "b": P()}
    specs = state_specs(gradients[0], param_specs, config, mesh, stacked=nothing_stacked)
    assert specs.stacks["dense8_dense8"].p[0] == P(("data", "fsdp"))
    assert specs.momentum == param_specs
    placed = lambda tree: jax.tree.map(lambda spec: NamedSharding(mesh, spec), tree)  # noqa: E731
    plain, sharded = tx.init(gradients[0]), jax.device_put(tx.init(gradients[0]), placed(specs))
    step = jax.jit(tx.update)
    spread = jax.jit(
        lambda g, s: tx.update(g, s),
        in_shardings=placed((param_specs, specs)),
        out_shardings=placed((param_specs, specs)),
    )
    for gradient in gradients:
        expected, plain = step(gradient, plain)
        given, sharded = spread(gradient, sharded)
    for x, y in zip(jax.tree.leaves((given, sharded)), jax.tree.leaves((expected, plain)), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-4, atol=1e-5)


def test_half_precision_parameters_keep_fp32_factors_and_reach_the_same_loss() -> None:
    rng = np.random.default_rng(0)
    a, b = (jnp.asarray(rng.standard_normal(shape), jnp.float32) for shape in ((320, 256), (320, 128)))

    def loss(x: Array) -> Array:
        return jnp.mean((a @ x.astype(jnp.float32) - b) ** 2)

    tx = scale_by_kron(KronConfig(block_size=128, dense_steps=10**6))

    def final_loss(dtype: Any) -> float:
        params = jnp.zeros((256, 128), dtype)
        state = tx.init(params)
        assert {x.dtype for x in jax.tree.leaves(state.stacks)} == {jnp.dtype("float32")}

        @jax.jit
        def step(params: Array, state: Any, number: Array) -> Any:
            changes, state = tx.update(jax.grad(loss)(params), state, params)
            assert changes.dtype == params.dtype
            return (params - 0.02 * (1 - number / 200) * changes).astype(dtype), state

        for number in range(200):
            params, state = step(params, state, jnp.float32(number))
        return float(loss(params))

    assert final_loss(jnp.bfloat16) == pytest.approx(final_loss(jnp.float32), rel=0.05)


def test_an_ill_conditioned_kronecker_quadratic_is_whitened_away() -> None:
    rng = np.random.default_rng(0)
    turn = [np.linalg.qr(rng.standard_normal((20, 20)))[0] for _ in range(2)]
    a, b = (jnp.asarray((q * np.geomspace(1e-3, 1, 20)) @ q.T, jnp.float32) for q in turn)
    start = jnp.asarray(rng.standard_normal((20, 20)), jnp.float32)
    tx = scale_by_kron(KronConfig(whiten=Whiten.GRADIENT, b1=0.9, dense_steps=10**6))

    def loss(x: Array) -> Array:
        return 0.5 * jnp.vdot(x, a @ x @ b)

    def body(carry: Any, number: Array) -> Any:
        x, state = carry
        value, grads = jax.value_and_grad(loss)(x)
        changes, state = tx.update(grads, state, x)
        rate = 0.03 * 0.5 * (1 + jnp.cos(jnp.pi * number / 2000))
        return (x - rate * changes, state), value / loss(start)

    _, losses = jax.jit(lambda: jax.lax.scan(body, (start, tx.init(start)), jnp.arange(500)))()
    assert int(np.argmax(losses < 1e-4)) in range(1, 150)
    assert int(np.argmax(losses < 1e-6)) in range(1, 300)
