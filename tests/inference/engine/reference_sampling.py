"""How a token is chosen, in plain numpy and fp64: what the device is held to."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from inference.engine.sampling_parameters import SamplingParameters

BLOCK = 128


def adjusted(
    logits: np.ndarray, parameters: SamplingParameters, prompt: Sequence[int], so_far: Sequence[int]
) -> np.ndarray:
    """Logits under bias, then repetition penalty, then frequency and presence penalty."""
    after = logits.astype(np.float64).copy()
    for token, bias in parameters.logit_bias.items():
        after[token] += bias
    for token in {*prompt, *so_far}:
        after[token] *= 1 / parameters.repetition_penalty if after[token] > 0 else parameters.repetition_penalty
    for token in so_far:
        after[token] -= parameters.frequency_penalty
    for token in set(so_far):
        after[token] -= parameters.presence_penalty
    return after


def probabilities(after: np.ndarray, parameters: SamplingParameters) -> np.ndarray:
    """Of every token, by temperature, min-p, top-k and top-p in this order; all on the likeliest at temperature 0."""
    if parameters.temperature < 1e-5:
        return np.eye(len(after))[np.argmax(after)]
    weights = np.exp((after - after.max()) / parameters.temperature)
    weights[weights < parameters.min_p] = 0  # the likeliest has weight 1
    falling = np.argsort(-after, kind="stable")
    if 0 < parameters.top_k < len(after):
        weights[after < after[falling[parameters.top_k - 1]]] = 0
    shares = weights / weights.sum()
    likelier = np.concatenate([[0], np.cumsum(shares[falling])[:-1]])  # the share of all before each
    if parameters.top_p < 1:
        weights[falling[likelier >= parameters.top_p]] = 0
    return weights / weights.sum()


def uniform(parameters: SamplingParameters, place: int) -> np.ndarray:
    """The two numbers of a draw: a function of seed, draw and place."""
    seed = np.array(divmod(parameters.seed, 2**32), np.uint32)
    key = jax.random.fold_in(jax.random.wrap_key_data(seed, impl="threefry2x32"), parameters.draw)
    return np.asarray(jax.random.uniform(jax.random.fold_in(key, place), (2,)), np.float64)


def drawn(shares: np.ndarray, numbers: np.ndarray) -> int:
    """The token: first a block of 128, then a token of it, each by its share."""
    blocks = [shares[first : first + BLOCK] for first in range(0, len(shares), BLOCK)]
    block = int(np.argmax(np.cumsum([each.sum() for each in blocks]) > numbers[0]))
    inside = np.cumsum(blocks[block])
    return block * BLOCK + int(np.argmax(inside > numbers[1] * inside[-1]))
