"""Small trees of arrays, and whether two are the same bit for bit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def awkward_tree() -> dict[str, Any]:
    """Everything that has gone wrong somewhere: NaN payloads, -0.0, small dtypes, keys, scalars, nothing at all."""
    bits = np.array([0x7FC00001, 0xFFC12345, 0x80000000, 0x00000001, 0x7F800000, 0x3F800000], np.uint32)
    return {
        "floats": jnp.asarray(bits.view(np.float32)).reshape(2, 3),
        "bf16": jax.lax.bitcast_convert_type(jnp.arange(0, 65536, 257, dtype=jnp.uint16), jnp.bfloat16),
        "half": jnp.asarray([1.5, -0.0, jnp.nan], jnp.float16),
        "small": jnp.asarray([0.5, -2.0], jnp.float8_e4m3fn),
        "flags": jnp.asarray([True, False, True]),
        "nibbles": jnp.asarray([-8, 7], jnp.int4),
        "bytes": jnp.arange(-3, 3, dtype=jnp.int8),
        "count": jnp.int32(-5),
        "one": jnp.float32(-0.0),
        "complex": jnp.asarray([1 + 2j, complex(-0.0, jnp.nan)], jnp.complex64),
        "empty": jnp.zeros((0, 3)),
        "key": jax.random.key(7),
        "keys": jax.random.split(jax.random.key(1, impl="rbg"), 3),
        "wide": np.array([2**62, -1], np.int64),
        "double": np.float64(1e-300),
        "nested": ({"a.b": jnp.ones(2)}, [jnp.full((2, 2), 3.0)]),
    }


def bits_of(leaf: Any) -> tuple[str, tuple[int, ...], bytes]:
    """Dtype, shape and bytes of an array, so that NaN payloads and the sign of zero count."""
    name = str(leaf.dtype)
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    array = np.asarray(leaf)
    return name, array.shape, array.tobytes()


def assert_same(one: Any, other: Any) -> None:
    """Two trees are equal bit for bit."""
    left, right = (jax.tree_util.tree_flatten_with_path(tree) for tree in (one, other))
    assert left[1] == right[1]
    for (path, a), (_, b) in zip(left[0], right[0], strict=True):
        assert bits_of(a) == bits_of(b), jax.tree_util.keystr(path)


def small_tree(step: int) -> dict[str, Any]:
    """A state that says which step it is of."""
    return {"w": jnp.full((4, 3), float(step)), "step": jnp.int32(step), "m": jnp.arange(6.0) + step}
