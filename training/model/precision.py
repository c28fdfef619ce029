"""Precision of a step: the parameters of the trainer are fp32, and a cast of them is what is computed with."""

from __future__ import annotations

from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from training.errors import TrainingError
from training.model.paths import Path, keeps_fp32

TreeT = TypeVar("TreeT")


def cast_for_compute(model: TreeT, dtype: DTypeLike) -> TreeT:
    """`model` with its parameters in `dtype`, but for those that stay in fp32 (`keeps_fp32`).

    The gradient of a loss through the cast comes back in the dtype of what went in: cast inside the loss, and the fp32
    parameters have fp32 gradients. Raises TrainingError for fp16, whose exponent is too short for the sums of a state.
    """
    target = jnp.dtype(dtype)
    if target not in (jnp.float32, jnp.bfloat16):
        raise TrainingError(
            f"compute dtype: {target.name} is none of float32 and bfloat16; float16 overflows in a state"
        )

    def cast(path: Path, leaf: Any) -> Any:
        if not eqx.is_inexact_array(leaf):
            return leaf
        return leaf.astype(jnp.float32 if keeps_fp32(path) else target)

    result: TreeT = jax.tree_util.tree_map_with_path(cast, model)
    return result
