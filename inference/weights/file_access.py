"""One worker's way to files: its own descriptor, and reads that fill many destinations at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, final

from inference.errors import ServingError
from inference.weights.plan import SHORTEST_GAP
from inference.weights.safetensors import SafetensorsFile, Stamp, open_regular

MOST_VIEWS: Final = 512
"""Destinations of one read; systems take 1024."""

ReadAt = Callable[[int, Sequence[memoryview], int], int]
"""`os.preadv`: descriptor, destinations, place in the file; how many bytes came, fewer than asked for at will."""


@final
class OwnDescriptor:
    """A descriptor that no other thread has, so that a mount sees one reader that goes forward. One file at a time."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._descriptor = -1

    def of(self, file: SafetensorsFile) -> int:
        """Of `file`, opened unless it is. Raises ServingError where it is not what it was when its header was read."""
        if self._path != file.path:
            self.close()
            self._descriptor, self._path = open_regular(file.path), file.path
            check_unchanged(file, os.fstat(self._descriptor))
            if hasattr(os, "posix_fadvise"):  # the system then reads twice as far ahead
                os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
        return self._descriptor

    def close(self) -> None:
        """Let go of it; `of` opens anew."""
        if self._path is not None:
            os.close(self._descriptor)
            self._path = None


def check_unchanged(file: SafetensorsFile, now: os.stat_result | None = None) -> None:
    """Raises ServingError where somebody wrote to `file` since its header was read."""
    try:
        stamp = Stamp.of(file.path.stat() if now is None else now)
    except OSError as error:
        raise ServingError(f"{file.path}: is gone while it is read: {error.strerror}") from None
    if stamp != file.stamp:
        sizes = f"it had {file.stamp.size} bytes and has {stamp.size}"
        raise ServingError(f"{file.path}: changed while it was read ({sizes}): a model is complete before it is served")


def batches(
    pieces: Iterable[tuple[int, memoryview]], most: int, scratch: memoryview
) -> Iterator[tuple[int, list[memoryview]]]:
    """The reads that fill `pieces` (a place in the file and what its bytes go into, rising), each of `most` bytes.

    Short gaps between them are read into `scratch`, which has SHORTEST_GAP bytes.
    """
    views: list[memoryview] = []
    begin = end = 0
    for at, view in pieces:
        if views and 0 < at - end <= min(SHORTEST_GAP, begin + most - end - 1):
            views.append(scratch[: at - end])
            end = at
        while len(view):
            if views and (at != end or end - begin >= most or len(views) >= MOST_VIEWS):
                yield begin, views
                views = []
            if not views:
                begin = end = at
            part = view[: most - (end - begin)]
            views.append(part)
            at, end, view = at + len(part), end + len(part), view[len(part) :]
    if views:
        yield begin, views


def behind(views: Sequence[memoryview], count: int) -> list[memoryview]:
    """What is left of `views` when `count` bytes have come."""
    left = []
    for view in views:
        if count < len(view):
            left.append(view[count:])
        count = max(0, count - len(view))
    return left
