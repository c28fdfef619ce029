"""The tensors of files held against the arrays of the model, before memory is taken for any: what is missing, too many,
of another shape, or of a dtype that cannot be served.

The model is the unrolled one: each layer is an array of its own, as a decoding step reads it, and as files have it. One
tensor is one array then, so that it is read to where it stays.
"""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, final

import equinox as eqx
import jax
import numpy as np
from jax.sharding import Mesh, Sharding, SingleDeviceSharding

from inference.errors import ServingError
from inference.weights.dtypes import StoredDtype
from inference.weights.model_folder import ModelFolder
from inference.weights.plan import Box, Target, make_target
from inference.weights.sharded_index import Placed
from training.errors import TrainingError
from training.model.config import ModelConfig
from training.model.language_model import LanguageModel
from training.model.paths import dotted, is_stacked, keeps_fp32
from training.sharding import named_shardings, parameter_specs

SERVED: Final = frozenset({"float32", "bfloat16"})
"""Dtypes that a model is served in."""
CONVERTED: Final = frozenset({"float32", "bfloat16", "float16", "float64"})
"""Dtypes that are converted when a dtype is asked for."""
MOST_DIFFERENCES: Final = 40
"""That are listed."""


@final
@dataclass(frozen=True, kw_only=True)
class Match:
    """A model whose arrays the files have."""

    skeleton: LanguageModel
    """The unrolled model, with shapes for arrays."""
    shardings: Mapping[str, Sharding]
    """Of each array, by its name in the files."""
    targets: tuple[Target, ...]
    """What this host reads."""


def skeleton_of(config: ModelConfig) -> LanguageModel:
    """The unrolled model of `config` with shapes for arrays; as cheap for many layers as for few."""
    once = replace(config, n_layers=len(config.mixers))
    model: LanguageModel = eqx.filter_eval_shape(LanguageModel.init, once, jax.random.key(0))
    unrolled = replace(config, mixers=config.mixers * config.repeats)
    return LanguageModel(model.embedding, model.blocks * config.repeats, model.final_norm, model.lm_head, unrolled)


def match(folder: ModelFolder, *, dtype: np.dtype[Any] | None, mesh: Mesh | None) -> Match:
    """What is to be read for the model of `folder` on `mesh`, or on the first device of this process.

    `dtype` is what parameters become; None leaves them as they are stored. Norms and parameters of a decay are fp32
    whatever is stored or asked. Raises ServingError that lists all that differs.
    """
    _check_dtype(dtype)
    _check_layers(folder)
    skeleton = skeleton_of(folder.config)
    shardings = _shardings(skeleton, mesh)
    targets: list[Target] = []
    wrong: list[str] = []
    names = set()
    for path, leaf in jax.tree_util.tree_leaves_with_path(skeleton):
        name = dotted(path)
        names.add(name)
        try:
            placed = _placed(name, leaf.shape[1:] if is_stacked(path) else leaf.shape, folder.weights.tensors)
            chosen = served_dtype(placed.tensor.dtype, np.dtype(np.float32) if keeps_fp32(path) else dtype)
        except ValueError as error:
            wrong.append(f"{name} {error}")
            continue
        targets.append(make_target(name, placed, leaf.shape, chosen, _boxes(shardings[name], leaf.shape)))
    wrong += _too_many(folder.weights.tensors, names)
    if wrong:
        raise ServingError(_listed(folder, wrong))
    return Match(skeleton=skeleton, shardings=MappingProxyType(shardings), targets=tuple(targets))


def served_dtype(stored: StoredDtype, asked: np.dtype[Any] | None) -> np.dtype[Any]:
    """What a tensor becomes. Raises ValueError, a sentence about the tensor, where it is not served."""
    name = None if stored.numpy is None else stored.numpy.name
    if stored.numpy is None or name not in CONVERTED:
        raise ValueError(f"is stored as {stored.name}, and parameters are F32, BF16, F16 or F64")
    if asked is not None:
        return asked
    if name not in SERVED:
        raise ValueError(
            f"is stored as {stored.name}, and a model is served in float32 or bfloat16 (in float16 the sums of a state "
            "overflow): ask for one of them"
        )
    return stored.numpy


def _check_dtype(dtype: np.dtype[Any] | None) -> None:
    if dtype is not None and dtype.name not in SERVED:
        raise ServingError(f"dtype: {dtype.name} is none that a model is served in: float32 or bfloat16")


def _check_layers(folder: ModelFolder) -> None:
    """Before a model of a billion layers is thought of: every layer has a tensor at least."""
    layers, tensors = folder.config.n_layers, len(folder.weights.tensors)
    if layers > tensors:
        raise ServingError(
            f"{folder.path}: config.json speaks of {layers} layers, and the files have {tensors} tensors: they are not "
            "of one model"
        )


def _shardings(skeleton: LanguageModel, mesh: Mesh | None) -> dict[str, Sharding]:
    leaves = jax.tree_util.tree_leaves_with_path(skeleton)
    if mesh is None:
        whole = SingleDeviceSharding(jax.local_devices()[0])
        return {dotted(path): whole for path, _ in leaves}
    try:
        shardings = named_shardings(parameter_specs(skeleton, mesh), mesh)
    except TrainingError as error:
        raise ServingError(str(error)) from None
    return {dotted(path): sharding for path, sharding in jax.tree_util.tree_leaves_with_path(shardings)}


def _boxes(sharding: Sharding, shape: tuple[int, ...]) -> dict[Hashable, Box]:
    """The part of the array that each device of this process needs."""
    boxes: dict[Hashable, Box] = {}
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        sides = [side.indices(size)[:2] for side, size in zip(index or (), shape, strict=True)]
        boxes[device] = tuple(sides)
    return boxes


def _placed(name: str, shape: tuple[int, ...], stored: Mapping[str, Placed]) -> Placed:
    if name not in stored:
        raise ValueError("is missing")
    if stored[name].tensor.shape != shape:
        raise ValueError(f"is {stored[name].tensor.shape}, and the config makes it {shape}")
    return stored[name]


def _too_many(stored: Mapping[str, Placed], names: set[str]) -> list[str]:
    wrong: list[str] = []
    for name in stored:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1, cutoff=0.5) if len(wrong) < MOST_DIFFERENCES else []
            hint = f"; did its writer mean {close[0]}?" if close else ""
            wrong.append(f"{name} is no array of this model{hint}")
    return wrong


def _listed(folder: ModelFolder, wrong: list[str]) -> str:
    files = ", ".join(file.path.name for file in folder.weights.files[:3])
    more = [f"and {len(wrong) - MOST_DIFFERENCES} more"] if len(wrong) > MOST_DIFFERENCES else []
    lines = "\n  ".join([*wrong[:MOST_DIFFERENCES], *more])
    return f"{folder.path}: the tensors of {files} are not those of config.json; they are not of one model:\n  {lines}"
