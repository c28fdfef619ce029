"""What of a tree an optimizer sees: the floating-point leaves that hold a number, as fp32."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax


def trained_in_fp32(inner: optax.GradientTransformation) -> optax.GradientTransformationExtraArgs:
    """`inner`, with its state and arithmetic in fp32 whatever the parameters are stored in.

    An update has the dtype of its parameter. Leaves that are integer or of size 0 are None to `inner`, and their update
    is zero.
    """
    seen = optax.with_extra_args_support(inner)

    def init(params: optax.Params) -> optax.OptState:
        return seen.init(_trained(params, params))

    def update(
        grads: optax.Updates, state: optax.OptState, params: optax.Params | None = None, **extra: object
    ) -> tuple[optax.Updates, optax.OptState]:
        like = grads if params is None else params
        known = None if params is None else _trained(params, params)
        updates, after = seen.update(_trained(grads, like), state, known, **extra)
        return jax.tree.map(_as_update, like, updates, is_leaf=lambda leaf: leaf is None), after

    return optax.GradientTransformationExtraArgs(init, update)


def _trained(tree: Any, like: Any) -> Any:
    """The leaves of a tree in fp32; None for those whose parameter is not trained."""

    def cast(leaf: Any, parameter: Any) -> Any:
        held = jnp.issubdtype(parameter.dtype, jnp.floating) and parameter.size
        return leaf.astype(jnp.float32) if held else None

    return jax.tree.map(cast, tree, like)


def _as_update(parameter: Any, update: Any) -> Any:
    """An update in the dtype of its parameter; zeros for one that is left alone."""
    if parameter is None:
        return None
    return jnp.zeros_like(parameter) if update is None else update.astype(parameter.dtype)
