"""Deleting what is not kept. Only what this run provably made: its owner says so, for this very place.

Each deletion begins with the manifest and ends with the owner, so that what a killed process leaves half deleted is
never taken for a checkpoint, and still known to be the run's.
"""

from __future__ import annotations

from training.checkpoint import lease
from training.checkpoint.lease import Lease
from training.checkpoint.names import MANIFEST, OWNER, QUARANTINED, parsed
from training.checkpoint.owner import owner_of
from training.checkpoint.retention import Retention, kept
from training.checkpoint.store import AbstractStore


def settle(store: AbstractStore, held: Lease) -> tuple[str, ...]:
    """When an attempt starts: take over what earlier ones committed; gives what they did not finish."""
    found = lease.commit(store, held)
    adopted: set[str] = set()
    unfinished: list[str] = []
    for prefix in store.folders():
        if prefix in found.committed or parsed(prefix) is None:
            continue
        owner = owner_of(store, prefix)
        if owner is None or owner.run != held.run or owner.epoch >= held.epoch or _quarantined(store, prefix):
            continue
        if store.read(f"{prefix}/{MANIFEST}") is None:
            unfinished.append(prefix)
        elif owner.epoch >= found.floor:
            adopted.add(prefix)
    gone = {prefix for prefix in found.committed if _quarantined(store, prefix) or not store.keys(prefix)}
    lease.commit(store, held, add=frozenset(adopted), drop=frozenset(gone))
    return tuple(unfinished)


def collect(store: AbstractStore, held: Lease, retention: Retention) -> None:
    """After a commit: delete what the retention does not keep. Raises LeaseLostError."""
    found = lease.commit(store, held)
    steps = {prefix: name.step for prefix in found.committed if (name := parsed(prefix)) is not None}
    stay = kept(steps.values(), retention)
    drop = frozenset(prefix for prefix, step in steps.items() if step not in stay)
    if not drop:
        return
    # First the lease: what it names is looked for, and missed.
    lease.commit(store, found, drop=drop)
    for prefix in sorted(drop):
        owner = owner_of(store, prefix)
        if owner is not None and owner.run == found.run:
            delete(store, prefix)


def delete(store: AbstractStore, prefix: str) -> None:
    """Delete a checkpoint."""
    first, last = f"{prefix}/{MANIFEST}", f"{prefix}/{OWNER}"
    store.delete(first)
    for key in store.keys(prefix):
        if key not in (first, last):
            store.delete(key)
    store.delete(last)


def _quarantined(store: AbstractStore, prefix: str) -> bool:
    return store.read(f"{prefix}/{QUARANTINED}") is not None
