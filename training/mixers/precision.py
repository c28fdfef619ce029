"""In what numbers mixers add up: fp32, or fp64 where fp64 comes in, and never anything narrower."""

from __future__ import annotations

from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

EXACT: Final = jax.lax.Precision.HIGHEST
"""Products of fp32 are not rounded to bf16 on the way, as a TPU does by default; products of bf16 cost no more."""


def accumulation_dtype(*arrays: Array) -> np.dtype[np.generic]:
    """The dtype of sums over products of these arrays."""
    return np.dtype(jnp.promote_types(jnp.result_type(*arrays), jnp.float32))
