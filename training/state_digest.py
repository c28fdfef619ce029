"""The sha256 of a tree of arrays: two runs are the same run where theirs are equal."""

from __future__ import annotations

import hashlib

import jax
import numpy as np
from jaxtyping import PyTree


def sha256_of(tree: PyTree) -> str:
    """Digest of every leaf in the order of the tree: its path, dtype, shape and bytes.

    Equal digests are equal bits: a NaN is told from another, and -0.0 from 0.0.
    """
    digest = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        array = np.asarray(jax.device_get(leaf))
        digest.update(f"{jax.tree_util.keystr(path)} {array.dtype} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).reshape(-1).data)
    return digest.hexdigest()
