"""What the compiler is told, where its defaults cost a training step time."""

from __future__ import annotations

from typing import Final

import jax

_BATCHED_PRODUCTS_IN_ONE_THREAD: Final = ((0, 10), (0, 11))
"""The versions of JAX, from the first to below the second, whose XLA hands products on a CPU to a library that computes
a batch of them in one thread. 0.11 and 0.12 compute it in all."""
_PRODUCTS_BY_EIGEN: Final = {"xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_REDUCE"}
"""Leaves that library the reductions alone, at which it is the fastest."""


def compiler_options(
    platform: str | None = None, version: tuple[int, ...] = jax.__version_info__
) -> dict[str, bool | str]:
    """The options of `jax.jit` for programs of training on a platform ("cpu", "tpu"; left out, the default one).

    Kron's batches of small products take 0.55 of their time with them on two cores, and a step of a small model as long
    as before. Source: https://github.com/jax-ml/jax/issues/37465, where the flag is told of.
    """
    first, end = _BATCHED_PRODUCTS_IN_ONE_THREAD
    affected = (platform or jax.default_backend()) == "cpu" and first <= version < end
    return dict(_PRODUCTS_BY_EIGEN) if affected else {}
