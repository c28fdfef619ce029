"""Attempts are numbered over the whole root: no two of them, of whatever runs, write into one folder."""

from __future__ import annotations

from typing import Final

from training.checkpoint.errors import CheckpointError
from training.checkpoint.lease import Lease, acquire, leases
from training.checkpoint.names import check_attempt, parsed
from training.checkpoint.owner import owner_of
from training.checkpoint.store import AbstractStore

_DIGITS: Final = 18
"""An attempt that was given a longer name of digits is not counted on from: its name is no number of this root."""


def take(store: AbstractStore, run: str, attempt: str | None, *, first: bool, start_over: bool) -> Lease:
    """The lease of a new attempt, called by its number unless it has a name. Hosts other than the first take none.

    Raises CheckpointError where such a host has no name for the attempt, StoreError.
    """
    if first:
        return acquire(
            store,
            run,
            attempt,
            start_over=start_over,
            before=lambda found: greatest_number(store, run, found),
            is_taken_twice=lambda found: is_taken_twice(store, found),
        )
    if attempt is None:
        raise CheckpointError("several hosts need one name for their attempt; give it to each of them")
    return Lease(run=run, attempt=check_attempt(attempt), holder="", epoch=0)


def greatest_number(store: AbstractStore, run: str, held: Lease | None) -> int:
    """The greatest number that an attempt has had in a root, 0 where there was none; `held`: the lease of the run.

    Owners are read only where the lease is lost: what the run's own attempts with names were numbered. Raises
    StoreError.
    """
    names = [(prefix, name) for prefix in store.folders() if (name := parsed(prefix)) is not None]
    numbers = [lease.epoch for lease in leases(store)]
    numbers += [int(name.attempt) for _, name in names if name.attempt.isdecimal() and len(name.attempt) <= _DIGITS]
    if held is not None:
        return max([held.epoch, *numbers])
    owners = [owner_of(store, prefix) for prefix, _ in names]
    return max([0, *numbers, *(owner.epoch for owner in owners if owner is not None and owner.run == run)])


def is_taken_twice(store: AbstractStore, held: Lease) -> bool:
    """Whether another run has taken the same number at the same time. One of the two sees it: the one to write last."""
    return any(lease.epoch == held.epoch and lease.run != held.run for lease in leases(store))
