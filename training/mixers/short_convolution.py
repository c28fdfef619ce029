"""Short causal convolutions: every channel sees the last few tokens of its own document.

What a layer of linear attention cannot do without: it lets a token know the one before it, so that the next layer can
find what stands behind a thing that was seen.
"""

from __future__ import annotations

from typing import final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from training.mixers.documents import Runs


@final
class ShortConvolution(eqx.Module):
    """A depthwise causal convolution over time."""

    weight: Float[Array, "channels taps"]
    """The last tap is that of the token itself."""
    bias: Float[Array, " channels"]

    @staticmethod
    def init(channels: int, taps: int, *, key: PRNGKeyArray) -> ShortConvolution:
        """Uniform within taps^-1/2, as convolutions are drawn elsewhere; no bias at first."""
        bound = taps**-0.5
        weight = jax.random.uniform(key, (channels, taps), jnp.float32, -bound, bound)
        return ShortConvolution(weight=weight, bias=jnp.zeros(channels, jnp.float32))

    @staticmethod
    def several(channels: tuple[int, ...], taps: int, *, key: PRNGKeyArray) -> tuple[ShortConvolution, ...]:
        """One for each of several inputs; none where there are no taps."""
        keys = jax.random.split(key, len(channels)) if taps else ()
        return tuple(ShortConvolution.init(size, taps, key=each) for size, each in zip(channels, keys, strict=False))

    def init_tail(self, batch: int) -> Float[Array, "batch tail channels"]:
        """What stands before the first token: nothing."""
        channels, taps = self.weight.shape
        return jnp.zeros((batch, taps - 1, channels), self.weight.dtype)

    def __call__(
        self,
        x: Float[Array, "batch time channels"],
        runs: Runs,
        tail: Float[Array, "batch tail channels"] | None = None,
    ) -> tuple[Float[Array, "batch time channels"], Float[Array, "batch tail channels"]]:
        """The convolved tokens, and the last ones that went in: the tail that run 0 of what follows goes on from."""
        before = (self.init_tail(x.shape[0]) if tail is None else tail).astype(x.dtype)
        seen = jnp.concatenate([before, x], axis=1)
        run = jnp.pad(runs.index, ((0, 0), (before.shape[1], 0)))
        time = x.shape[1]
        out = self.bias.astype(x.dtype)
        for place in range(before.shape[1] + 1):
            own = (run[:, place : place + time] == runs.index)[..., None]
            out = out + jnp.where(own, seen[:, place : place + time], 0) * self.weight[:, place].astype(x.dtype)
        last = runs.count[:, None] + jnp.arange(before.shape[1])
        kept = jnp.take_along_axis(seen, last[..., None], axis=1)
        own = jnp.take_along_axis(run, last, axis=1) == runs.last[:, None]
        # Still in the dtype of the tail that came in: a state does not change its own.
        return out, jnp.where(own[..., None], kept, 0).astype(self.weight.dtype)


def convolved(
    convolutions: tuple[ShortConvolution, ...],
    inputs: tuple[Array, ...],
    runs: Runs,
    tails: tuple[Array, ...] | None,
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Every input through its own convolution, and the tails behind them; without any, the inputs as they are."""
    if not convolutions:
        return inputs, ()
    before = tails or (None,) * len(inputs)
    through = [each(x, runs, tail) for each, x, tail in zip(convolutions, inputs, before, strict=True)]
    return tuple(out for out, _ in through), tuple(tail for _, tail in through)
