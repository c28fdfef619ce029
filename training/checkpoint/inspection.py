"""Checkpoints as their user sees them: what is there, whether it is whole, and what may go."""

from __future__ import annotations

import contextlib
import difflib
import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final, final

from training.checkpoint import collection, lease
from training.checkpoint.discovery import Root, find_newest_valid
from training.checkpoint.documents import DamagedError
from training.checkpoint.errors import CheckpointError, NotThereError
from training.checkpoint.local_store import LocalStore
from training.checkpoint.manifest import Manifest
from training.checkpoint.names import CHECKPOINTS, QUARANTINED, Name, parsed
from training.checkpoint.owner import owner_of
from training.checkpoint.store import AbstractStore, open_store
from training.checkpoint.tokenizer_file import problem_of
from training.checkpoint.verification import problems, read_manifest

_THREADS: Final = 8


@final
class State(enum.Enum):
    """What a folder with the name of a checkpoint is."""

    COMPLETE = "complete"
    """Its manifest is there and whole; whether its objects are, `verify` says."""
    DAMAGED = "damaged"
    QUARANTINED = "quarantined"
    """A run found it damaged, and stepped over it."""
    SET_ASIDE = "set aside"
    """Its run was started over since."""
    INCOMPLETE = "incomplete or foreign"
    """It has no manifest: it was not finished, or copied by a tool that left it out."""


@final
@dataclass(frozen=True, kw_only=True)
class Entry:
    """One checkpoint."""

    prefix: str
    """Its folder."""
    step: int
    attempt: str
    state: State
    run: str | None
    """None where nothing says it."""
    bytes: int | None
    created: str | None
    problems: tuple[str, ...] = ()
    """What is wrong with it, as far as it was looked at."""

    def to_json(self) -> dict[str, Any]:
        """For `--format json`."""
        return {**vars(self), "state": self.state.value, "problems": list(self.problems)}


def listing(root: Root) -> tuple[Entry, ...]:
    """All checkpoints in a root, by step and attempt. No array is read. Raises CheckpointError, StoreError."""
    with _opened(root) as store:
        return _entries(store)


def runs_in(store: AbstractStore) -> tuple[str, ...]:
    """The runs that have checkpoints in a root, whatever these are, sorted. Raises StoreError."""
    return tuple(sorted({entry.run for entry in _entries(store) if entry.run is not None}))


def _entries(store: AbstractStore) -> tuple[Entry, ...]:
    named = {prefix: name for prefix in store.folders() if (name := parsed(prefix)) is not None}
    with ThreadPoolExecutor(_THREADS) as pool:
        found = list(pool.map(lambda item: _entry(store, *item), named.items()))
    floors = {run: lease.floor_of(store, run) for run in {entry.run for entry, _ in found if entry.run is not None}}
    return tuple(sorted((_placed(*each, floors) for each in found), key=lambda entry: (entry.step, entry.prefix)))


def verify(root: Root, names: Sequence[str] = ()) -> tuple[Entry, ...]:
    """Those checkpoints of a root, or all, with every byte read, that of the tokenizer beside them too.

    Raises CheckpointError for an unknown name, and where there is none at all: nothing that was verified is no answer.
    """
    with _opened(root) as store:
        entries = _chosen(store, names)
        if not entries:
            raise CheckpointError(f"{store.url}: there are no checkpoints to verify{meant_instead(store)}")
        return tuple(_verified(store, entry) for entry in entries)


def meant_instead(root: Root) -> str:
    """A hint where a root has no checkpoints: it is the folder of a run, or a checkpoint itself; else nothing."""
    with _opened(root) as store:
        above, _, last = store.url.rpartition("/")
        if parsed(last) is not None:
            return f"; it is one itself: name {above}, and {last} behind it"
        return f"; did you mean {store.url}/{CHECKPOINTS}?" if CHECKPOINTS in store.folders() else ""


def remove(
    root: Root, names: Sequence[str], *, force: bool = False, agreed: Callable[[], bool] = lambda: True
) -> tuple[Entry, ...]:
    """Delete checkpoints, whoever made them; gives what they were. `agreed` is asked last, and may keep them all.

    Raises CheckpointError, before anything is deleted, where one of them is the newest valid one of its run, unless
    `force`.
    """
    with _opened(root) as store:
        entries = _chosen(store, names)
        if not force:
            for run in sorted({entry.run for entry in entries if entry.run is not None}):
                _refuse_newest(store, run, names)
        if not agreed():
            return ()
        for entry in entries:
            if entry.run is not None:
                lease.forget(store, entry.run, entry.prefix)
            collection.delete(store, entry.prefix)
        return entries


@contextlib.contextmanager
def _opened(root: Root) -> Iterator[AbstractStore]:
    """The store of a root that is there; closed in the end, unless it was open before."""
    store = open_store(root)
    try:
        if isinstance(store, LocalStore) and not store.folder.is_dir():
            raise CheckpointError(f"there is no folder {store.url}")
        yield store
    finally:
        if store is not root:
            store.close()


def _refuse_newest(store: AbstractStore, run: str, names: Sequence[str]) -> None:
    try:
        newest = find_newest_valid(store, run, quarantine=False)
    except CheckpointError:
        return  # none of them is valid
    if newest is not None and newest.prefix in names:
        raise CheckpointError(
            f"{newest.url} is the newest valid checkpoint of run {run}, from which it would go on; --force deletes it "
            "all the same"
        )


def _chosen(store: AbstractStore, names: Sequence[str]) -> tuple[Entry, ...]:
    entries = _entries(store)
    known = {entry.prefix: entry for entry in entries}
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known) or 'none'}"
            raise CheckpointError(f"{store.url} has no checkpoint {name!r}; {hint}")
    return tuple(known[name] for name in dict.fromkeys(names)) if names else entries


def _entry(store: AbstractStore, prefix: str, name: Name) -> tuple[Entry, Manifest | None]:
    owner = owner_of(store, prefix)
    manifest, state = None, State.COMPLETE
    wrong: tuple[str, ...] = ()
    try:
        manifest = read_manifest(store, prefix)
    except NotThereError:
        state = State.INCOMPLETE
    except DamagedError as error:
        state, wrong = State.DAMAGED, (str(error),)
    if store.read(f"{prefix}/{QUARANTINED}") is not None:
        state = State.QUARANTINED
    run = manifest.run if manifest else owner.run if owner else None
    entry = Entry(
        prefix=prefix,
        step=name.step,
        attempt=name.attempt,
        state=state,
        run=run,
        bytes=manifest.size if manifest else None,
        created=manifest.created if manifest else None,
        problems=wrong,
    )
    return entry, manifest


def _placed(entry: Entry, manifest: Manifest | None, floors: Mapping[str, int]) -> Entry:
    if manifest is None or entry.state is not State.COMPLETE or manifest.epoch >= floors[manifest.run]:
        return entry
    return replace(entry, state=State.SET_ASIDE)


def _verified(store: AbstractStore, entry: Entry) -> Entry:
    if entry.problems or entry.state is State.INCOMPLETE:
        return entry
    try:
        manifest = read_manifest(store, entry.prefix)
        beside = problem_of(store, manifest.meta)
        wrong = (*problems(store, entry.prefix, manifest), *([] if beside is None else [beside]))
    except NotThereError:
        wrong = ("its manifest is missing",)
    state = State.DAMAGED if wrong and entry.state is not State.QUARANTINED else entry.state
    return replace(entry, state=state, problems=wrong)
