"""The sampling parameters of all slots, as rows on the device that are sent only when one has changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

import jax
import numpy as np

from inference.engine.sampling import Controls
from inference.engine.sampling_parameters import SamplingParameters

GREEDY_BELOW: Final = 1e-5
"""A temperature below this takes the likeliest token: so in vLLM."""
LEAST_REPETITION: Final = 1e-30
"""A repetition penalty below this counts as this: a logit divided by less is no number any more."""
HALF: Final = 1 << 32
"""Seeds are of two halves."""
DTYPES: Final[Mapping[str, Any]] = {
    "temperature": np.float32,
    "top_k": np.int32,
    "top_p": np.float32,
    "min_p": np.float32,
    "presence": np.float32,
    "frequency": np.float32,
    "repetition": np.float32,
    "biased": np.bool_,
    "seed": np.uint32,
    "draw": np.int32,
    "scored": np.bool_,
}
"""Of the fields of `Controls`."""


@final
class SamplingTable:
    """One row a slot, and row 0, which is nobody's."""

    def __init__(self, rows: int, *, vocab_size: int, device: jax.Device | None = None) -> None:
        """All rows empty. Without `device` they go to the first."""
        self._vocab_size = vocab_size
        self._where = device
        self._nothing = controls_of(SamplingParameters(temperature=0), vocab_size=vocab_size)
        self._host = {name: np.array([value] * rows, DTYPES[name]) for name, value in self._nothing.items()}
        self._device: Controls | None = None

    def put(self, row: int, parameters: SamplingParameters) -> None:
        """Set a row."""
        self._set(row, controls_of(parameters, vocab_size=self._vocab_size))

    def clear(self, row: int) -> None:
        """Empty a row."""
        self._set(row, self._nothing)

    def on_device(self) -> Controls:
        """All rows; what was sent before, where nothing has changed since."""
        if self._device is None:
            # A copy: on a CPU the device may take the memory of the host for its own.
            copied = {name: array.copy() for name, array in self._host.items()}
            self._device = Controls(**jax.device_put(copied, self._where))
        return self._device

    def _set(self, row: int, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            self._host[name][row] = value
        self._device = None


def controls_of(parameters: SamplingParameters, *, vocab_size: int) -> dict[str, Any]:
    """The fields of `Controls` for one row."""
    return {
        "temperature": 0.0 if parameters.temperature < GREEDY_BELOW else parameters.temperature,
        "top_k": 0 if parameters.top_k >= vocab_size else parameters.top_k,
        "top_p": parameters.top_p,
        "min_p": parameters.min_p,
        "presence": parameters.presence_penalty,
        "frequency": parameters.frequency_penalty,
        "repetition": max(parameters.repetition_penalty, LEAST_REPETITION),
        "biased": bool(parameters.logit_bias),
        "seed": divmod(parameters.seed, HALF),
        "draw": parameters.draw,
        "scored": parameters.logprobs is not None,
    }


def is_marked(parameters: SamplingParameters) -> bool:
    """Whether the row of an answer in the pool says something from the start."""
    return bool(parameters.logit_bias) or parameters.repetition_penalty != 1


def marks_of(prompt: np.ndarray, parameters: SamplingParameters, *, vocab_size: int) -> tuple[np.ndarray, np.ndarray]:
    """The row of the bias, and that of the tokens that were seen."""
    bias, seen = np.zeros(vocab_size, np.float32), np.zeros(vocab_size, np.int32)
    bias[list(parameters.logit_bias)] = list(parameters.logit_bias.values())
    seen[prompt] = 1
    return bias, seen
