"""What of a download lies on disk for good, line by line, so that one that was killed goes on where it was.

A line is JSON: `["name", start, stop]`, a range of a file that was written and flushed before; `["name"]`, all that is
known of the file is void, since it turned out damaged. What follows the last whole line is cut off.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, final

from inference.weights.sources.spans import Span, merged


def parse_journal(content: bytes) -> tuple[Mapping[str, tuple[Span, ...]], int]:
    """The ranges by file, and how many bytes of the journal are lines that can be trusted."""
    done: dict[str, list[Span]] = {}
    good = 0
    for line in content.splitlines(keepends=True):
        entry = _entry(line)
        if entry is None:
            break
        name, span = entry
        good += len(line)
        if span is None:
            done.pop(name, None)
        else:
            done.setdefault(name, []).append(span)
    return {name: merged(spans) for name, spans in done.items()}, good


@final
class Journal:
    """The journal of one download, open for more; a new one where there is none."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        self.done, good = parse_journal(path.read_bytes())
        os.ftruncate(self._file, good)
        os.lseek(self._file, good, os.SEEK_SET)

    def add(self, name: str, span: Span) -> None:
        """A range that was flushed; when this returns, so is the line."""
        self._append([name, span.start, span.stop])

    def forget(self, name: str) -> None:
        """A file is to be fetched again from its begin."""
        self._append([name])

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)

    def _append(self, entry: list[str | int]) -> None:
        line = json.dumps(entry).encode() + b"\n"
        with self._lock:
            os.write(self._file, line)
            os.fsync(self._file)


def _entry(line: bytes) -> tuple[str, Span | None] | None:
    """None of a line that is not whole."""
    try:
        given: Any = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    match given:
        case [str(name)]:
            return name, None
        case [str(name), int(start), int(stop)] if 0 <= start < stop:
            return name, Span(start, stop)
    return None
