"""The cap on the global norm of a gradient, for gradients of every size."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PyTree


def clip_by_global_norm(cap: float) -> optax.GradientTransformation:
    """A gradient whose global norm is over `cap` is scaled down to it, also where fp32 cannot hold its square."""

    def clip(grads: optax.Updates, params: optax.Params | None) -> optax.Updates:
        del params
        factor = shrinkage(grads, cap)
        return jax.tree.map(lambda grad: grad * factor.astype(grad.dtype), grads)

    return optax.stateless(clip)


def shrinkage(grads: PyTree, cap: float) -> Float[Array, ""]:
    """What a gradient is multiplied with so that its global norm is at most `cap`."""
    squares = _squares(grads, jnp.ones(()))

    def of_large() -> Float[Array, ""]:
        largest = jnp.max(jnp.stack([jnp.max(jnp.abs(leaf)) for leaf in jax.tree.leaves(grads)]))
        return cap / largest / jnp.sqrt(_squares(grads, largest))

    def of_usual() -> Float[Array, ""]:
        return jnp.minimum(1.0, cap / jnp.sqrt(squares))

    return jax.lax.cond(jnp.isinf(squares), of_large, of_usual) if jax.tree.leaves(grads) else jnp.ones(())


def _squares(grads: PyTree, unit: Float[Array, ""]) -> Float[Array, ""]:
    """The sum of the squares of all elements, in that unit."""
    return sum((jnp.sum(jnp.square(leaf / unit)) for leaf in jax.tree.leaves(grads)), jnp.zeros(()))
