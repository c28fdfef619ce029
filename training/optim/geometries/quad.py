"""QUAD: symmetric factors, two matrix products a step, no solve.

With S = I - rate/2 (T1 - t2 I), the step is Q <- S Q S: Q stays symmetric, and positive definite as long as
rate * norm(T1 - t2 I) < 2. A diagonal factor is multiplied by the square of its gain in the same way.
"""

from __future__ import annotations

from typing import final

import jax.numpy as jnp
from jaxtyping import Array, Float

from training.optim.geometries import Evidence, Geometry, Statistic, Statistics
from training.optim.statistics import gram_statistics


@final
class Quad:
    """The geometry QUAD of PSGD."""

    def statistics(self, evidence: Evidence) -> Statistics:
        """T1 from the preconditioned gradient; T2 is a multiple of the identity."""
        return gram_statistics(evidence)

    def step_dense(
        self, q: Float[Array, "rows d d"], statistic: Statistic, rate: Float[Array, " rows"], precision: str
    ) -> Float[Array, "rows d d"]:
        """Q <- S Q S, made symmetric to the last bit."""
        half = 0.5 * rate
        identity = jnp.eye(q.shape[-1], dtype=q.dtype)
        diagonal = 1 + half * statistic.target
        s = diagonal[:, None, None] * identity - half[:, None, None] * statistic.excess
        stepped = jnp.matmul(jnp.matmul(s, q, precision=precision), s, precision=precision)
        return 0.5 * (stepped + jnp.swapaxes(stepped, 1, 2))

    def step_diagonal(
        self, q: Float[Array, "rows d"], statistic: Statistic, rate: Float[Array, " rows"]
    ) -> Float[Array, "rows d"]:
        """q <- q gain^2, positive by construction."""
        gain = 1 - 0.5 * rate[:, None] * (statistic.excess - statistic.target[:, None])
        return q * gain * gain

    def preconditioner(self, q: Float[Array, "rows d d"], precision: str) -> Float[Array, "rows d d"]:
        """P = QQ, as Q is symmetric."""
        return jnp.matmul(q, q, precision=precision)


GEOMETRY: Geometry = Quad()
