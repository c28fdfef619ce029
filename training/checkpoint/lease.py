"""Who may commit: `LEASE-{run}.json` in the root, one attempt at a time, and what has been committed so far.

An attempt takes the lease when it starts, with an epoch greater than all before in the root. Before each commit it
looks whether the lease is still its own: an attempt that was thought dead and is not (a zombie) commits nothing after
the next one has begun. The lease also names the committed checkpoints, so that neither a listing that lags behind nor a
folder that somebody has emptied makes a run forget how far it was.
"""

from __future__ import annotations

import random
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, final

from training.checkpoint.documents import DamagedError, sealed, unsealed
from training.checkpoint.errors import ChangedError, LeaseLostError, StoreError
from training.checkpoint.names import check_attempt
from training.checkpoint.store import AbstractStore

_TRIES: Final = 20
_PAUSE_SECONDS: Final = 0.5
_KEY: Final = re.compile(r"LEASE-(.+)\.json")


@final
@dataclass(frozen=True, kw_only=True)
class Lease:
    """What the object says."""

    run: str
    attempt: str
    holder: str
    """Drawn at random by the process that took it: two attempts of one name are told apart."""
    epoch: int
    """Counts the attempts in the root, from 1: no two runs that share it have one of the same."""
    floor: int = 0
    """Checkpoints of earlier epochs are of no use: the run was started again from step 0 since."""
    committed: tuple[str, ...] = ()
    """The folders of the complete checkpoints since then that this run has made and not deleted."""

    def content(self) -> bytes:
        names = ("run", "attempt", "holder", "epoch", "floor", "committed")
        return sealed({name: getattr(self, name) for name in names})


def key_of(run: str) -> str:
    """Where the lease of a run lies."""
    return f"LEASE-{run}.json"


def read_lease(store: AbstractStore, run: str) -> Lease | None:
    """The lease of a run; None where no attempt has begun yet, or where its bytes are damaged."""
    return _read(store, run)[0]


def floor_of(store: AbstractStore, run: str, lease: Lease | None = None) -> int:
    """The epoch before which what a run has committed is set aside; `lease`: its own, where it was read already."""
    found = lease or read_lease(store, run)
    return found.floor if found else 0


def leases(store: AbstractStore) -> tuple[Lease, ...]:
    """Of all runs in a root, but for those whose bytes are damaged."""
    named = (match[1] for name in store.objects() if (match := _KEY.fullmatch(name)))
    return tuple(lease for run in named if (lease := read_lease(store, run)) is not None)


def acquire(
    store: AbstractStore,
    run: str,
    attempt: str | None,
    *,
    start_over: bool,
    before: Callable[[Lease | None], int],
    is_taken_twice: Callable[[Lease], bool],
) -> Lease:
    """Take the lease for a new attempt, called by its epoch unless it has a name.

    `before` gives the greatest epoch of the root, whatever its run, from the lease that was read (None: it is lost);
    where another run was as fast, which `is_taken_twice` says of what was written, a greater one is taken. `start_over`
    sets all that was committed aside, for good.
    """

    holder = secrets.token_hex(8)

    def taken(lease: Lease | None) -> Lease:
        epoch = before(lease) + 1
        committed = () if lease is None or start_over else lease.committed
        floor = epoch if start_over else (lease.floor if lease else 0)
        name = check_attempt(str(epoch) if attempt is None else attempt)
        return Lease(run=run, attempt=name, holder=holder, epoch=epoch, floor=floor, committed=committed)

    for _ in range(_TRIES):
        held = _changed(store, run, taken)
        if not is_taken_twice(held):
            return held
        time.sleep(random.uniform(0, _PAUSE_SECONDS))  # the other one does so too, and not for as long
    raise StoreError(f"{store.url}: attempts of other runs begin all the time; start this one again")


def check(store: AbstractStore, held: Lease) -> None:
    """Raises LeaseLostError where another attempt has taken over."""
    _held(_read(store, held.run)[0], held)


def commit(
    store: AbstractStore, held: Lease, *, add: frozenset[str] = frozenset(), drop: frozenset[str] = frozenset()
) -> Lease:
    """Say which checkpoints have come and gone. Raises LeaseLostError."""

    def changed(lease: Lease | None) -> Lease:
        found = _held(lease, held)
        return replace(found, committed=tuple(sorted((frozenset(found.committed) | add) - drop)))

    return _changed(store, held.run, changed)


def forget(store: AbstractStore, run: str, prefix: str) -> None:
    """Say that a checkpoint is deleted, whoever holds the lease."""
    if read_lease(store, run) is None:
        return

    def changed(lease: Lease | None) -> Lease:
        if lease is None:
            raise LeaseLostError(f"the lease of run {run} is gone")
        return replace(lease, committed=tuple(name for name in lease.committed if name != prefix))

    _changed(store, run, changed)


def _held(found: Lease | None, held: Lease) -> Lease:
    if found is None or found.holder != held.holder:
        now = f"attempt {found.attempt} of epoch {found.epoch} holds it" if found else "it is gone"
        raise LeaseLostError(
            f"attempt {held.attempt} of run {held.run} has lost its lease ({now}): it commits nothing more"
        )
    return found


def _changed(store: AbstractStore, run: str, change: Callable[[Lease | None], Lease]) -> Lease:
    """Read, change and write; again where somebody else was faster. A write whose answer was lost is seen."""
    written: Lease | None = None
    for left in reversed(range(_TRIES)):
        lease, generation = _read(store, run)
        if lease is not None and lease == written:
            return lease
        written = change(lease)
        if written == lease:
            return written
        try:
            store.replace(key_of(run), written.content(), generation)
        except ChangedError:
            if not left:
                raise
        else:
            return written
    raise AssertionError("the last try returns or raises")


def _read(store: AbstractStore, run: str) -> tuple[Lease | None, str | None]:
    found = store.read(key_of(run))
    if found is None:
        return None, None
    try:
        data = unsealed(found.content, f"{store.url}/{key_of(run)}")
    except DamagedError:
        return None, found.generation
    return Lease(**{**data, "committed": tuple(data["committed"])}), found.generation
