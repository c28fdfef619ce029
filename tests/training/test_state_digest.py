"""Digests of trees: equal for equal bits, and for nothing else."""

from __future__ import annotations

import hashlib

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import PyTree

from training.state_digest import sha256_of

BASE = {"a": np.array([1.0, -0.0], np.float32), "b": np.zeros((0, 4), np.int32), "c": np.float32(2)}
OTHERS: list[PyTree] = [
    {**BASE, "a": np.array([1.0, 0.0], np.float32)},
    {**BASE, "a": np.array([[1.0, -0.0]], np.float32)},
    {**BASE, "a": np.array([1.0, -0.0], np.float64)},
    {**BASE, "b": np.zeros((4, 0), np.int32)},
    {"a": BASE["a"], "b": BASE["b"], "d": BASE["c"]},
]


def test_the_digest_is_that_of_its_words() -> None:
    said = b"['a'] int32 (2,)\n" + (1).to_bytes(4, "little") + (2).to_bytes(4, "little")
    assert sha256_of({"a": np.array([1, 2], np.int32)}) == hashlib.sha256(said).hexdigest()


@pytest.mark.parametrize("other", OTHERS)
def test_other_bits_have_another_digest(other: PyTree) -> None:
    assert sha256_of(other) != sha256_of(BASE)


def test_where_an_array_lives_is_nothing_to_its_digest() -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert sha256_of(jnp.asarray(values)) == sha256_of(values) == sha256_of(values.T.copy().T)


def test_bfloat16_has_a_digest() -> None:
    assert sha256_of(jnp.ones(3, jnp.bfloat16)) != sha256_of(jnp.ones(3, jnp.float16))
