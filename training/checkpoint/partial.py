"""A part of a checkpoint: the model without the state of its optimizer, for an export."""

from __future__ import annotations

import dataclasses

import jax
from jaxtyping import PyTree

from training.checkpoint.discovery import Found, Root
from training.checkpoint.documents import DamagedError
from training.checkpoint.errors import CheckpointError, NotThereError
from training.checkpoint.restoring import SavedArray, read_leaf, records_of
from training.checkpoint.store import open_store
from training.checkpoint.verification import problems, read_manifest
from training.fingerprint import compare_trees


def find_one(root: Root, prefix: str) -> Found | None:
    """The checkpoint in the folder `prefix` of a root; None where it is not there, or not complete.

    Raises DamagedError, StoreError.
    """
    store = open_store(root)
    try:
        manifest = read_manifest(store, prefix)
        wrong = problems(store, prefix, manifest)
    except NotThereError:
        return None
    if wrong:
        raise DamagedError(f"{store.url}/{prefix}: {wrong[0]}")
    return Found(store=store, prefix=prefix, manifest=manifest)


def restore_part(found: Found, like: PyTree, at: str) -> PyTree:
    """The arrays of a checkpoint whose paths begin with `at`, as `like` has them without it; the others are not read.

    Raises as `restore` does.
    """
    under = tuple(
        dataclasses.replace(spec, path=spec.path.removeprefix(at))
        for spec in found.manifest.leaves
        if spec.path.startswith(at)
    )
    different = compare_trees(dataclasses.replace(found.manifest, leaves=under), like)
    if different:
        raise CheckpointError(f"{found.url} is of another model:\n  " + "\n  ".join(different[:12]))
    records = records_of(found)
    leaves, tree = jax.tree_util.tree_flatten(like)
    specs = (spec for spec in found.manifest.leaves if spec.path.startswith(at))
    read = [
        read_leaf(SavedArray(found, spec, records[spec.path]), leaf, None)
        for spec, leaf in zip(specs, leaves, strict=True)
    ]
    return jax.tree_util.tree_unflatten(tree, read)
