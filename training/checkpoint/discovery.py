"""Which checkpoint a run goes on from: the newest whose every byte is right, over all roots that it may look into.

What is damaged is marked and stepped over, never deleted. A run never falls back in silence: `Found.skipped` says what
was passed over, and where everything is damaged, nothing starts at step 0 unless it is told to.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, final

from training.checkpoint.documents import DamagedError, sealed
from training.checkpoint.errors import NotThereError, ResumeRefusedError, StoreError
from training.checkpoint.lease import Lease, floor_of, read_lease
from training.checkpoint.manifest import Manifest
from training.checkpoint.names import QUARANTINED, Name, check_run, parsed
from training.checkpoint.owner import owner_of
from training.checkpoint.store import AbstractStore, open_store
from training.checkpoint.verification import problems, read_manifest

Root: TypeAlias = str | Path | AbstractStore


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """A checkpoint that has been verified."""

    store: AbstractStore
    prefix: str
    """Its folder."""
    manifest: Manifest
    skipped: tuple[str, ...] = ()
    """Why newer ones were not taken, one line each."""

    @property
    def url(self) -> str:
        return f"{self.store.url}/{self.prefix}"

    @property
    def step(self) -> int:
        """Updates that its state has seen."""
        return self.manifest.step

    @property
    def meta(self) -> Mapping[str, Any]:
        """What the loop said beside its arrays."""
        return self.manifest.meta


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class _Candidate:
    store: AbstractStore
    lease: Lease | None
    prefix: str
    name: Name

    @property
    def rank(self) -> tuple[int, int, str]:
        """Greater is newer: by step, then by attempt, by number where it is one."""
        attempt = self.name.attempt
        return self.name.step, int(attempt) if attempt.isdecimal() else 0, attempt

    @property
    def url(self) -> str:
        return f"{self.store.url}/{self.prefix}"


class _PassedOverError(Exception):
    """A candidate is not taken; the message says why. `damaged` ones were committed once."""

    def __init__(self, message: str, *, damaged: bool) -> None:
        super().__init__(message)
        self.damaged = damaged


class _OfAnotherError(Exception):
    """A candidate is whole, and of another run, or of this one before it was started over: nothing to be told."""


def find_newest_valid(
    roots: Root | Sequence[Root], run: str | None, *, start_over: bool = False, quarantine: bool = True
) -> Found | None:
    """The newest valid checkpoint of a run, or of any run; None where it has none at all.

    Several roots are one for this: the newest of all of them is taken. With `start_over` none is taken, whatever is
    there. Without `quarantine` nothing is written, not even the mark of a damaged one. A root that is given as text is
    open in what is found, which its caller closes.

    Raises ResumeRefusedError where the run has checkpoints and all are damaged, StoreError where a root cannot be read:
    the newest might be there.
    """
    if start_over:
        return None
    if run is not None:
        check_run(run)
    given = roots if isinstance(roots, Sequence) and not isinstance(roots, str) else [roots]
    stores = [open_store(root) for root in given]
    found = None
    try:
        found = _newest(stores, run, quarantine)
    finally:
        for root, store in zip(given, stores, strict=True):
            if store is not root and (found is None or found.store is not store):
                store.close()
    return found


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


def _newest(stores: Sequence[AbstractStore], run: str | None, quarantine: bool) -> Found | None:
    skipped: list[str] = []
    damaged: list[str] = []
    for candidate in sorted(_candidates(stores, run), key=lambda each: each.rank, reverse=True):
        try:
            manifest = _checked(candidate, run, quarantine)
        except _OfAnotherError:
            continue
        except _PassedOverError as passed:
            (damaged if passed.damaged else skipped).append(str(passed))
            continue
        return Found(store=candidate.store, prefix=candidate.prefix, manifest=manifest, skipped=(*damaged, *skipped))
    if damaged:
        raise ResumeRefusedError(
            "no valid checkpoint is left, and there were some:\n  "
            + "\n  ".join([*damaged, *skipped])
            + "\nStart at step 0 only on purpose (--fresh): they are kept."
        )
    return None


def _candidates(stores: Sequence[AbstractStore], run: str | None) -> Iterable[_Candidate]:
    """What may be a checkpoint. The lease knows those that a listing does not show yet."""
    for store in stores:
        lease = None if run is None else read_lease(store, run)
        for prefix in {*store.folders(), *(lease.committed if lease else ())}:
            if (name := parsed(prefix)) is not None:
                yield _Candidate(store=store, lease=lease, prefix=prefix, name=name)


def _checked(candidate: _Candidate, run: str | None, quarantine: bool) -> Manifest:
    """The manifest of a valid candidate. Raises _PassedOverError, StoreError."""
    store, prefix = candidate.store, candidate.prefix
    if store.read(f"{prefix}/{QUARANTINED}") is not None:
        raise _PassedOverError(
            f"{candidate.url} is quarantined; see {QUARANTINED} there", damaged=_is_of(candidate, run)
        )
    try:
        manifest = read_manifest(store, prefix)
        if run not in (None, manifest.run) or manifest.epoch < floor_of(store, manifest.run, candidate.lease):
            raise _OfAnotherError
        wrong = problems(store, prefix, manifest)
    except NotThereError:
        wrong = (_without_manifest(candidate),)
    except DamagedError as error:
        if not _is_of(candidate, run):
            raise _PassedOverError(f"{candidate.url} is damaged or foreign: {error}", damaged=False) from error
        wrong = (str(error),)
    if wrong:
        if quarantine:
            _mark(store, prefix, wrong)
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise _PassedOverError(f"{candidate.url}: {wrong[0]}{more}", damaged=True)
    return manifest


def _without_manifest(candidate: _Candidate) -> str:
    """Damage, where the lease knows that it was committed; else it is passed over."""
    if candidate.lease is not None and candidate.prefix in candidate.lease.committed:
        return "it was committed, and its manifest is missing"
    raise _PassedOverError(f"{candidate.url} is incomplete or foreign", damaged=False)


def _is_of(candidate: _Candidate, run: str | None) -> bool:
    """Whether a candidate whose manifest cannot be read is known to be of the run."""
    if candidate.lease is not None and candidate.prefix in candidate.lease.committed:
        return True
    owner = owner_of(candidate.store, candidate.prefix)
    floor = candidate.lease.floor if candidate.lease else 0
    return run is None or (owner is not None and owner.run == run and owner.epoch >= floor)


def _mark(store: AbstractStore, prefix: str, wrong: Sequence[str]) -> None:
    """Mark a damaged one, so that the next start does not read it all again. A root that is read only is no error."""
    found = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    with contextlib.suppress(StoreError):
        store.create(f"{prefix}/{QUARANTINED}", [sealed({"found": found, "problems": list(wrong)[:100]})])
