"""What the path of a parameter says of it: its name, whether it is a stack of layers, whether it stays in fp32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import jax.tree_util as jtu

STACKS: Final = "blocks"
"""The attribute of the model under which every array has the repeats of the pattern as its first axis."""
FP32_NAMES: Final = frozenset({"a_log", "d_skip", "dt_bias"})
"""Parameters of a decay, where the 8 bits of bf16 would harm what a state remembers long; and skips beside it."""
FP32_WORDS: Final = frozenset({"decay", "norm", "slope", "slopes"})
"""Words of a name (between underscores) that say the same: `mixer_norm`, `log_decay`."""
FIXED_NAMES: Final = frozenset({"slopes"})
"""Numbers that follow from the config and the layer. Their gradient is 0, and no weight decay may move them."""

Path = Sequence[Any]
"""The keys of `jax.tree_util`, from the root of a tree to a leaf."""


def names_of(path: Path) -> tuple[str, ...]:
    """The keys as text: attributes by their name, places in a tuple by their number."""
    return tuple(_name_of(key) for key in path)


def dotted(path: Path) -> str:
    """A path as it is shown: `blocks.0.mixer.q_proj.weight`."""
    return ".".join(names_of(path))


def is_stacked(path: Path) -> bool:
    """Whether the leaf at `path` has a stack of layers as its first axis, which is no axis of the parameter itself."""
    return STACKS in names_of(path)


def keeps_fp32(path: Path) -> bool:
    """Whether the leaf at `path` stays in fp32 whatever the model computes in: norms, decays and their steps."""
    return any(name in FP32_NAMES or not FP32_WORDS.isdisjoint(name.split("_")) for name in names_of(path))


def is_trained(path: Path) -> bool:
    """Whether the leaf at `path` is learned, as all are but the constants of a layer."""
    return FIXED_NAMES.isdisjoint(names_of(path))


def _name_of(key: Any) -> str:
    match key:
        case jtu.GetAttrKey(name=name):
            return str(name)
        case jtu.DictKey(key=name):
            return str(name)
        case jtu.SequenceKey(idx=index):
            return str(index)
        case _:
            return str(key)
