"""Which form of the recurrence computes what: the fast one where there is one, and no silent way round."""

from __future__ import annotations

import enum
from typing import final

from jaxtyping import Array, Float, Int

from training.errors import TrainingError
from training.mixers.chunkwise import chunkwise
from training.mixers.recurrence import recurrent


@final
class Form(enum.Enum):
    """A way to compute the recurrence."""

    CHUNKWISE = "chunkwise"
    """Matrix products over chunks of tokens."""
    RECURRENT = "recurrent"
    """Token by token."""


def linear_attention(
    q: Float[Array, "batch time groups dk"],
    k: Float[Array, "batch time groups dk"],
    v: Float[Array, "batch time heads dv"],
    g: Float[Array, " heads"] | Float[Array, "batch time heads"] | Float[Array, "batch time heads dk"],
    *,
    b: Float[Array, "batch time heads"] | Float[Array, "batch time heads dk"] | None = None,
    w: Float[Array, "batch time heads"] | Float[Array, "batch time heads dv"] | None = None,
    state: Float[Array, "batch heads dk dv"] | None = None,
    segments: Int[Array, "batch time"] | None = None,
    chunk: int = 64,
    form: Form = Form.CHUNKWISE,
) -> tuple[Float[Array, "batch time heads dv"], Float[Array, "batch heads dk dv"]]:
    """Outputs and state of the recurrence, as `recurrent` defines them, in the form that was asked for.

    One token is computed as a token in any case. Raises TrainingError where the chunkwise form lacks what the arguments
    need: it has neither a decay a channel nor gates yet.
    """
    if form is Form.RECURRENT or q.shape[1] == 1:
        return recurrent(q, k, v, g, b=b, w=w, state=state, segments=segments)
    lacking = {"a decay g a channel": g.ndim == 4, "an erase gate b": b is not None, "a write gate w": w is not None}
    for name, wanted in lacking.items():
        if wanted:
            raise TrainingError(
                f"linear_attention: {name} has no chunkwise form. Ask for the one that goes token by token: "
                "form=Form.RECURRENT"
            )
    return chunkwise(q, k, v, g, state=state, segments=segments, chunk=chunk)
