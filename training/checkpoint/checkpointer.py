"""Saving beside the training step: what is copied before `save` returns, and what goes on behind it.

    with Checkpointer(root, run="shakespeare") as checkpointer:
        checkpointer.save(step, state, meta)          # returns when the copies are taken
        checkpointer.commit_now(step, state, meta, deadline_seconds=13)   # the capacity goes: returns when committed

One save is under way at a time: the next one waits for it, so that never more than one copy of the state is in memory
(two, while `commit_now` does not wait for a save of an earlier step).
"""

from __future__ import annotations

import enum
import functools
import json
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Any, Final, final

from jaxtyping import PyTree

from training.checkpoint import collection, lease
from training.checkpoint.discovery import Root
from training.checkpoint.documents import canonical
from training.checkpoint.errors import CheckpointError, LeaseLostError, SaveFailedError
from training.checkpoint.leaves import leaves_of, specs_of, start_transfers
from training.checkpoint.names import check_run, prefix_of
from training.checkpoint.numbering import take
from training.checkpoint.retention import Retention
from training.checkpoint.staging import Arena, stage
from training.checkpoint.store import AbstractStore, open_store
from training.checkpoint.workers import Workers
from training.checkpoint.writing import Commit, Hosts, write
from training.fingerprint import Fingerprint

_LOG = logging.getLogger(__name__)
URGENT_THREADS: Final = 32
"""While the capacity goes; an object store answers late, not slowly."""
COPIERS: Final = 2
"""Threads that copy while the loop waits."""
STALL_SECONDS: Final = 1800.0
"""After which a save is given up by the next one that waits for it."""
JOIN_SECONDS: Final = 2.0
"""That `close` waits for threads with nothing left to do; one that a store holds is left to the process's end."""
EXIT_SECONDS: Final = 120.0
"""That `close` waits."""


@final
class OnFailure(enum.Enum):
    """What a save that failed in the background does to the run."""

    STOP = "stop"
    """The next save, wait or close raises its error."""
    WARN = "warn"
    """It is logged, and the run goes on with the checkpoints that it has; `wait` and `close` still raise the last."""


@final
class Checkpointer:
    """One attempt of a run at its checkpoints. Taking the lease is part of making one: earlier attempts are out.

    root: a folder, or `gs://bucket/prefix`.
    run, attempt: their names; an attempt without a name is called by its number, which is counted over all
        runs of the root.
    retention: what is kept; `fingerprint`: what the manifests say the numbers depend on.
    start_over: the run begins at step 0 on purpose; what it had committed is kept, and never taken again.
    hosts: which process this is of how many; more than one needs the name of the attempt.
    threads: that write in the background; left out, as many as the store is worth.
    """

    def __init__(
        self,
        root: Root,
        *,
        run: str,
        attempt: str | int | None = None,
        retention: Retention | None = None,
        fingerprint: Fingerprint | None = None,
        on_failure: OnFailure = OnFailure.STOP,
        start_over: bool = False,
        hosts: Hosts | None = None,
        threads: int | None = None,
        exit_seconds: float = EXIT_SECONDS,
    ) -> None:
        self._store = open_store(root)
        self._owns_store = not isinstance(root, AbstractStore)
        self._retention = retention or Retention()
        self._fingerprint = None if fingerprint is None else fingerprint.to_json()
        self._on_failure = on_failure
        self._hosts = hosts or Hosts()
        self._exit_seconds = exit_seconds
        self._arena = Arena()
        self._writer = Workers("checkpoint-writer", 1, low_priority=True)
        self._io = Workers("checkpoint-io", threads or self._store.threads, low_priority=True)
        self._collector = Workers("checkpoint-collector", 1, low_priority=True)
        self._copiers = Workers("checkpoint-copy", COPIERS, low_priority=False)
        self._stopped: list[Workers] = []
        self._committed: set[int] = set()
        self._step_under_way: int | None = None
        self._under_way: Future[None] | None = None
        self._collecting: list[Future[None]] = []
        name = None if attempt is None else str(attempt)
        self._held = take(self._store, check_run(run), name, first=self._hosts.first, start_over=start_over)
        if self._hosts.first:
            self._under_way = self._writer.submit(self._settle)

    @property
    def attempt(self) -> str:
        """What this attempt is called."""
        return self._held.attempt

    @property
    def committed_step(self) -> int | None:
        """The newest step that this attempt has committed."""
        return max(self._committed, default=None)

    @property
    def busy(self) -> bool:
        """Whether a save is under way."""
        return self._under_way is not None and not self._under_way.done()

    def save(self, step: int, tree: PyTree, meta: Mapping[str, Any]) -> None:
        """Copy the tree, and commit it in the background as the checkpoint of that step.

        Waits for an earlier save that is still under way. A step that this attempt has saved is not saved again.
        Raises what the earlier save failed with (see `OnFailure`), and CheckpointError for what no checkpoint can hold.
        """
        self._finish(STALL_SECONDS, stop=self._on_failure is OnFailure.STOP)
        if step in self._committed:
            return
        commit = self._staged(step, tree, meta, self._arena)
        self._step_under_way = step
        self._under_way = self._writer.submit(lambda: self._save(commit))

    def check(self) -> None:
        """Raise what a save failed with, if one did; waits for nothing."""
        if self._under_way is not None and self._under_way.done():
            self._finish(0.0, stop=self._on_failure is OnFailure.STOP)

    def wait(self, deadline_seconds: float = STALL_SECONDS) -> None:
        """Wait until the save that is under way is committed. Raises what it failed with, SaveFailedError if late."""
        self._finish(deadline_seconds, stop=True)

    def commit_now(self, step: int, tree: PyTree, meta: Mapping[str, Any], deadline_seconds: float) -> None:
        """Commit the tree before the deadline, with all the machine has, and delete nothing.

        A save of the same step that is under way is waited for. Signals that come meanwhile change nothing.
        Raises SaveFailedError where the deadline passes; the checkpoints before stand.
        """
        end = time.monotonic() + deadline_seconds
        if self._step_under_way == step:
            # Where it fails, there may be time for another try.
            self._finish(deadline_seconds, stop=False)
        if step in self._committed:
            return
        idle = not self.busy
        commit = self._staged(step, tree, meta, self._arena if idle else Arena())
        writer = Workers("checkpoint-urgent", 1, low_priority=False)
        io = Workers("checkpoint-urgent-io", URGENT_THREADS, low_priority=False)
        future = writer.submit(lambda: self._write(commit, io))
        writer.stop()
        self._stopped += [writer, io]
        try:
            self._result(future, step, max(0.0, end - time.monotonic()))
        finally:
            io.stop()
            if not future.done():
                self._arena = Arena()  # that one is still being written from
        if idle:
            self._forget_failure()

    def close(self, deadline_seconds: float | None = None) -> None:
        """Wait as `wait` does, `exit_seconds` at the most, and let go of threads and connections.

        Deletions that are under way by then have the rest of that time; what is left of them, the next attempt does.
        """
        seconds = self._exit_seconds if deadline_seconds is None else deadline_seconds
        end = time.monotonic() + seconds
        try:
            self._finish(seconds, stop=True)
            wait(self._collecting, max(0.0, end - time.monotonic()))
        finally:
            for workers in (self._writer, self._io, self._copiers, self._collector):
                workers.stop()
                self._stopped.append(workers)
            end = min(end, time.monotonic() + JOIN_SECONDS)
            for workers in self._stopped:
                workers.join(max(0.0, end - time.monotonic()))
            if self._owns_store:
                self._store.close()

    def __enter__(self) -> Checkpointer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.close()
        except (SaveFailedError, OSError, RuntimeError) as failure:
            if error is None:
                raise
            _LOG.warning("and while the run ended: %s", failure)

    def _staged(self, step: int, tree: PyTree, meta: Mapping[str, Any], arena: Arena) -> Commit:
        said = json.loads(canonical(meta))
        prefix_of(step, self._held.attempt)
        specs = specs_of(tree)
        leaves = leaves_of(tree, first_host=self._hosts.first, owns=self._hosts.owns)
        start_transfers(leaves)
        return Commit(
            held=self._held,
            step=step,
            specs=specs,
            staged=stage(leaves, arena, self._copiers),
            fingerprint=self._fingerprint,
            meta=said,
            hosts=self._hosts,
        )

    def _settle(self) -> None:
        unfinished = collection.settle(self._store, self._held)
        for prefix in unfinished:
            self._collect(functools.partial(collection.delete, self._store, prefix))

    def _save(self, commit: Commit) -> None:
        found = self._write(commit, self._io)
        self._collecting = [round_ for round_ in self._collecting if not round_.done()]
        # Of two rounds that are not over, the second has not begun, and will see this commit too.
        if found is not None and len(self._collecting) < 2:
            self._collect(lambda: collection.collect(self._store, found, self._retention))

    def _collect(self, task: Callable[[], None]) -> None:
        """Delete in a thread of its own: a store that deletes slowly holds no save."""

        def collect() -> None:
            try:
                task()
            except (RuntimeError, OSError, CheckpointError) as error:
                _LOG.warning("old checkpoints were not deleted: %s", error)

        self._collecting.append(self._collector.submit(collect))

    def _write(self, commit: Commit, workers: Workers) -> lease.Lease | None:
        write(self._store, commit, workers)
        self._committed.add(commit.step)
        if not self._hosts.first:
            return None
        return lease.commit(self._store, commit.held, add=frozenset({commit.prefix}))

    def _finish(self, seconds: float, *, stop: bool) -> None:
        """Wait for what is under way. Its error is raised once, or logged."""
        if self._under_way is None:
            return
        try:
            self._result(self._under_way, self._step_under_way, seconds)
        except LeaseLostError:
            raise
        except RuntimeError as error:
            if stop:
                raise
            _LOG.warning("%s; the run goes on with the checkpoints that it has", error)
        finally:
            if self._under_way is not None and self._under_way.done():
                self._under_way, self._step_under_way = None, None

    def _result(self, future: Future[Any], step: int | None, seconds: float) -> None:
        what = "the folder of checkpoints" if step is None else f"the checkpoint of step {step}"
        try:
            future.result(timeout=seconds)
        except TimeoutError:
            if future.done():
                raise
            raise SaveFailedError(
                f"{what} was not committed within {seconds:.1f} s to {self._store.url}; {self._standing()}"
            ) from None
        except SaveFailedError:
            raise
        except Exception as error:
            raise SaveFailedError(f"{what} was not committed: {error}; {self._standing()}") from error

    def _standing(self) -> str:
        newest = self.committed_step
        return "none was before in this attempt" if newest is None else f"that of step {newest} stands"

    def _forget_failure(self) -> None:
        """A later step is committed: what an earlier save failed with is no loss any more."""
        try:
            self._finish(0.0, stop=True)
        except SaveFailedError as error:
            _LOG.warning("%s, and a later one is", error)
