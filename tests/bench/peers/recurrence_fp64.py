"""A language model of Mamba-2 layers in numpy and fp64, token by token: what `tests.bench.long_context` is held to.

Written from the definition (https://arxiv.org/abs/2405.21060), and shares no code with the model. What has no memory is
computed for a stretch of tokens at once; the memory of a layer sees one token after the other.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

STRETCH = 4096


def silu(x: np.ndarray) -> np.ndarray:
    """x times its logistic."""
    return x / (1 + np.exp(-x))


def normed(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    """Divided by the root mean square."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight


@final
class Layer:
    """One block, and what it knows of the tokens before."""

    def __init__(self, block: Any, repeat: int) -> None:
        """The layer `repeat` of a stack."""

        def weights(module: Any) -> np.ndarray:
            array: np.ndarray = np.asarray(module.weight, np.float64)[repeat]
            return array

        mixer, forward = block.mixer, block.feed_forward
        self.eps = (block.mixer_norm.eps, mixer.norm.eps, block.feed_forward_norm.eps)
        self.norms = (weights(block.mixer_norm), weights(mixer.norm), weights(block.feed_forward_norm))
        self.z, self.dt, self.out = weights(mixer.z_proj), weights(mixer.dt_proj), weights(mixer.out_proj)
        self.inward = tuple(weights(each) for each in (mixer.x_proj, mixer.b_proj, mixer.c_proj))
        self.taps = tuple(weights(each) for each in mixer.convolutions)
        self.biases = tuple(np.asarray(each.bias, np.float64)[repeat] for each in mixer.convolutions)
        self.a = np.exp(np.asarray(mixer.a_log, np.float64)[repeat])
        self.dt_bias = np.asarray(mixer.dt_bias, np.float64)[repeat]
        self.skip = np.asarray(mixer.d_skip, np.float64)[repeat]
        self.gate, self.up, self.down = (
            weights(each) for each in (forward.gate_proj, forward.up_proj, forward.down_proj)
        )
        self.tails = [np.zeros((taps.shape[1] - 1, taps.shape[0])) for taps in self.taps]
        self.memory = np.zeros((len(self.a), self.inward[1].shape[0], self.inward[0].shape[0] // len(self.a)))

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The next tokens."""
        mixed = self._mixed(normed(x, self.norms[0], self.eps[0]))
        x = x + mixed
        inner = normed(x, self.norms[2], self.eps[2])
        return x + (silu(inner @ self.gate.T) * (inner @ self.up.T)) @ self.down.T

    def _mixed(self, x: np.ndarray) -> np.ndarray:
        inputs, keys, queries = (silu(self._convolved(at, x @ weight.T)) for at, weight in enumerate(self.inward))
        values = inputs.reshape(len(x), len(self.a), -1)
        steps = np.logaddexp(0, x @ self.dt.T + self.dt_bias)
        kept, written = np.exp(-self.a * steps)[:, :, None, None], steps[:, :, None] * values
        out = np.empty_like(values)
        for at in range(len(x)):
            self.memory = kept[at] * self.memory + keys[at][None, :, None] * written[at][:, None, :]
            out[at] = queries[at] @ self.memory
        out = (out + self.skip[:, None] * values).reshape(len(x), -1) * silu(x @ self.z.T)
        return normed(out, self.norms[1], self.eps[1]) @ self.out.T

    def _convolved(self, which: int, x: np.ndarray) -> np.ndarray:
        seen = np.concatenate([self.tails[which], x])
        taps = self.taps[which]
        self.tails[which] = seen[len(x) :]
        total = sum(seen[tap : tap + len(x)] * taps[:, tap] for tap in range(taps.shape[1]))
        result: np.ndarray = total + self.biases[which]
        return result


@final
class Oracle:
    """The whole model, with tied embeddings and one group of heads."""

    def __init__(self, model: Any) -> None:
        """With nothing read."""
        repeats = model.blocks[0].mixer.a_log.shape[0]
        self._layers = [Layer(model.blocks[0], repeat) for repeat in range(repeats)]
        self._embedding = np.asarray(model.embedding.weight, np.float64)
        self._norm, self._eps = np.asarray(model.final_norm.weight, np.float64), model.final_norm.eps

    def logits_behind(self, tokens: np.ndarray, *, last: int) -> np.ndarray:
        """The logits behind each of the last tokens."""
        ends: list[np.ndarray] = []
        for first in range(0, len(tokens), STRETCH):
            x = self._embedding[tokens[first : first + STRETCH]]
            for layer in self._layers:
                x = layer(x)
            ends = [*ends, x][-2:]  # the last tokens may stand in two stretches
        hidden = np.concatenate(ends)[-last:]
        return normed(hidden, self._norm, self._eps) @ self._embedding.T
