"""Where the state of an optimizer lies: beside its parameters, and Kron's factors shared out among the devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import PyTree

from training.optim.blocks import KeyPath
from training.optim.build import OptimConfig
from training.optim.kron_config import KronConfig
from training.optim.kron_state import KronState, state_specs


def optimizer_specs(
    config: OptimConfig,
    state: PyTree[Any],
    params: PyTree[Any],
    param_specs: PyTree[Any],
    mesh: Mesh,
    *,
    stacked: Callable[[KeyPath], bool],
) -> PyTree[Any]:
    """The PartitionSpec of every array in the state of an optimizer, in a tree like `state`.

    `state` and `params` may be shapes. An array of the state that is of a parameter, which its path and shape say, lies
    as that parameter does; Kron says itself where its factors lie; everything else is on every device.
    """
    found = _specs_by_path(params, param_specs)

    def of(path: KeyPath, node: Any) -> Any:
        if isinstance(node, KronState) and isinstance(config, KronConfig):
            return state_specs(params, param_specs, config, mesh, stacked=stacked)
        # The path of a moment ends in the path of its parameter.
        own = (found.get((tuple(map(str, path[start:])), node.shape)) for start in range(len(path)))
        everywhere = PartitionSpec()  # type: ignore[no-untyped-call]
        return next((spec for spec in own if spec is not None), everywhere)

    return jax.tree_util.tree_map_with_path(of, state, is_leaf=lambda node: isinstance(node, KronState))


def _specs_by_path(params: PyTree[Any], param_specs: PyTree[Any]) -> dict[tuple[tuple[str, ...], Any], PartitionSpec]:
    leaves = jax.tree_util.tree_leaves_with_path(params)
    specs = jax.tree.leaves(param_specs, is_leaf=lambda node: isinstance(node, PartitionSpec))
    return {(tuple(map(str, path)), leaf.shape): spec for (path, leaf), spec in zip(leaves, specs, strict=True)}
