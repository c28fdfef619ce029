"""The names of a model's arrays in a file of weights: layers apart, numbered in the order of the depth.

`blocks.3.mixer.q_proj.weight` is layer 3 of the model, wherever the pattern of mixers has put it: with two mixers in
the pattern it is `blocks[1]` of the tree at repeat 1. Both directions are exact, and keep dtypes.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array

from training.errors import TrainingError
from training.model.config import ModelConfig
from training.model.language_model import LanguageModel
from training.model.paths import STACKS, Path, is_stacked, names_of


def tensor_shapes(config: ModelConfig) -> dict[str, jax.ShapeDtypeStruct]:
    """The name, shape and dtype (of fresh parameters) of every array in a file, without making any, in file order."""
    shapes: dict[str, jax.ShapeDtypeStruct] = {}
    for path, leaf in _leaves(_skeleton(config)):
        for name in _names(path, config):
            shape = leaf.shape[1:] if is_stacked(path) else leaf.shape
            shapes[name] = jax.ShapeDtypeStruct(shape, leaf.dtype)  # type: ignore[no-untyped-call]
    return shapes


def to_tensors(model: LanguageModel) -> dict[str, Array]:
    """Every array of `model` by its name, layers apart; the dtype is that of the model."""
    tensors: dict[str, Array] = {}
    for path, leaf in _leaves(model):
        for repeat, name in enumerate(_names(path, model.config)):
            tensors[name] = leaf[repeat] if is_stacked(path) else leaf
    return tensors


def from_tensors(
    config: ModelConfig, tensors: Mapping[str, ArrayLike], *, where: str = "model.safetensors"
) -> LanguageModel:
    """The model of these arrays, each in its own dtype.

    Raises TrainingError that begins with `where` and lists every name that is missing or too many and every shape that
    differs. Layers of one stack share a dtype: the widest of theirs.
    """
    wanted = tensor_shapes(config)
    _check(wanted, tensors, where)

    def of(path: Path, leaf: jax.ShapeDtypeStruct) -> Array:
        arrays = [jnp.asarray(tensors[name]) for name in _names(path, config)]
        return jnp.stack(arrays) if is_stacked(path) else arrays[0]

    skeleton = _skeleton(config)
    model: LanguageModel = jax.tree_util.tree_map_with_path(of, skeleton)
    return model


def _skeleton(config: ModelConfig) -> Any:
    return eqx.filter_eval_shape(LanguageModel.init, config, jax.random.key(0))


def _leaves(model: Any) -> Sequence[tuple[Path, Any]]:
    return jax.tree_util.tree_flatten_with_path(model)[0]


def _names(path: Path, config: ModelConfig) -> tuple[str, ...]:
    """The names of the array at `path`: one a repeat where it is a stack."""
    names = names_of(path)
    if not is_stacked(path):
        return (".".join(names),)
    place = int(names[1])
    layers = (config.layer(place, repeat) for repeat in range(config.repeats))
    return tuple(".".join((STACKS, str(layer), *names[2:])) for layer in layers)


def _check(wanted: Mapping[str, jax.ShapeDtypeStruct], tensors: Mapping[str, ArrayLike], where: str) -> None:
    wrong = [f"{name} is missing" for name in wanted if name not in tensors]
    for name, tensor in tensors.items():
        if name not in wanted:
            close = difflib.get_close_matches(name, wanted, n=1, cutoff=0.5)
            wrong.append(f"{name} is no array of this model" + (f"; did you mean {close[0]}?" if close else ""))
        elif jnp.shape(tensor) != wanted[name].shape:
            wrong.append(f"{name} is {jnp.shape(tensor)}, and the config makes it {wanted[name].shape}")
    if wrong:
        raise TrainingError(f"{where}: the arrays are not those of the config:\n  " + "\n  ".join(wrong))
