"""Which tokens of a packed row belong together, in the form that mixers need it."""

from __future__ import annotations

from typing import final

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int


@final
class Runs(eqx.Module):
    """The documents of each row as runs that count from 0; run 0 goes on with what a state belongs to."""

    index: Int[Array, "batch time"]
    """The run of every token, rising along the row. Padding bears the number of the run before it."""
    real: Bool[Array, "batch time"]
    """Which tokens are none of padding."""

    @property
    def count(self) -> Int[Array, " batch"]:
        """Tokens of each row that are real; they stand in front of the padding."""
        return jnp.sum(self.real, axis=1, dtype=jnp.int32)

    @property
    def last(self) -> Int[Array, " batch"]:
        """The run that is open behind the row."""
        return self.index[:, -1]


def runs_of(segments: Int[Array, "batch time"]) -> Runs:
    """The runs of rows whose documents are numbered from 1, in any order; 0 is padding at the end of a row."""
    real = segments > 0
    begins = (segments[:, 1:] != segments[:, :-1]) & real[:, 1:]
    index = jnp.cumsum(jnp.pad(begins, ((0, 0), (1, 0))), axis=1, dtype=jnp.int32)
    return Runs(index=index, real=real)
