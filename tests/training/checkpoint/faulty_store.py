"""A store whose writes can be made to fail, one boundary at a time, around a real one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from training.checkpoint.errors import StoreError
from training.checkpoint.store import AbstractStore, Part, Versioned


class FaultyStore(AbstractStore):
    """Calls `before` and `after` with (number, verb, key) around every write, which raises what they raise."""

    def __init__(self, inner: AbstractStore) -> None:
        self.inner = inner
        self.url = inner.url
        self.threads = inner.threads
        self.log: list[tuple[str, str]] = []
        self.before: Callable[[int, str, str], None] = lambda number, verb, key: None
        self.after: Callable[[int, str, str], None] = lambda number, verb, key: None
        self.listed: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda folders: folders
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes:
        return self.inner.get(key)

    def create(self, key: str, parts: Sequence[Part]) -> None:
        self._write("create", key, lambda: self.inner.create(key, parts))

    def read(self, key: str) -> Versioned | None:
        return self.inner.read(key)

    def replace(self, key: str, content: bytes, generation: str | None) -> None:
        self._write("replace", key, lambda: self.inner.replace(key, content, generation))

    def folders(self) -> tuple[str, ...]:
        return self.listed(self.inner.folders())

    def objects(self) -> tuple[str, ...]:
        return self.inner.objects()

    def keys(self, folder: str) -> tuple[str, ...]:
        return self.inner.keys(folder)

    def delete(self, key: str) -> None:
        self._write("delete", key, lambda: self.inner.delete(key))

    def _write(self, verb: str, key: str, write: Callable[[], None]) -> None:
        with self._lock:
            number = len(self.log)
            self.log.append((verb, key))
        self.before(number, verb, key)
        write()
        self.after(number, verb, key)


class DeadFrom:
    """From write number `first` on, nothing comes through: as if the process, or its disk, had ended there."""

    def __init__(self, first: int) -> None:
        self.first = first

    def __call__(self, number: int, verb: str, key: str) -> None:
        if number >= self.first:
            raise StoreError(f"{key} cannot be written: No space left on device")
