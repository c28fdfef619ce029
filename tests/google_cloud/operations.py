"""Long-running operations: a change that is accepted now, and done a few calls later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

FAILED_CODE: Final = "INTERNAL_ERROR"
FAILED: Final = "Internal error. Please try again or contact Google Support."


@final
@dataclass(kw_only=True)
class Operation:
    """A change under way."""

    name: str
    """`operation-1234`; of TPU the whole path."""
    scope: str
    """`zones/us-central1-b`, `regions/...`, `global`."""
    kind: str
    """`delete`, `update`, `createSnapshot`, as Compute has it."""
    target: str
    """Path of what is changed."""
    target_id: str
    request_id: str
    started: str
    """RFC 3339."""
    finish: Callable[[], None]
    """Makes the change."""
    undo: Callable[[], None]
    """Takes back what was seen of it at once, where it fails."""
    left: int
    """Calls until it is done."""
    error: str = ""
    """How it ends, if not well."""
    ended: str = ""

    @property
    def done(self) -> bool:
        return bool(self.ended)


def nothing() -> None:
    """The effect of a change that changes nothing."""


@final
class Operations:
    """All operations of a world. Every call to any API counts as a tick of every operation that is under way.

    So a change goes on while nobody polls it, and a test needs no sleep: it is done at the `polls`-th call after it,
    with 0 at once.
    """

    def __init__(self, polls: int) -> None:
        self.polls = polls
        self._all: dict[str, Operation] = {}
        self._by_request: dict[tuple[str, str, str], Operation] = {}

    def start(
        self,
        *,
        scope: str,
        kind: str,
        target: str,
        now: str,
        finish: Callable[[], None],
        undo: Callable[[], None] = nothing,
        target_id: str = "",
        request_id: str = "",
        prefix: str = "",
        error: str = "",
    ) -> Operation:
        """Accept a change."""
        operation = Operation(
            name=f"{prefix}operation-{1764417600000 + len(self._all)}",
            scope=scope,
            kind=kind,
            target=target,
            target_id=target_id,
            request_id=request_id,
            started=now,
            finish=finish,
            undo=undo,
            left=self.polls,
            error=error,
        )
        self._all[operation.name] = operation
        if request_id:
            self._by_request[kind, target, request_id] = operation
        if self.polls == 0:
            _end(operation, now)
        return operation

    def asked_before(self, kind: str, target: str, request_id: str) -> Operation | None:
        """The operation of an earlier call with the same request id."""
        return self._by_request.get((kind, target, request_id)) if request_id else None

    def get(self, name: str) -> Operation | None:
        """By its name."""
        return self._all.get(name)

    def all(self) -> list[Operation]:
        """In the order in which they were accepted."""
        return list(self._all.values())

    def tick(self, now: str) -> None:
        """One call was made: what is due ends."""
        for operation in self._all.values():
            if operation.done:
                continue
            operation.left -= 1
            if operation.left <= 0:
                _end(operation, now)


def _end(operation: Operation, now: str) -> None:
    operation.ended = now
    (operation.undo if operation.error else operation.finish)()
