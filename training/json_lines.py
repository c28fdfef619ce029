"""A file of JSON lines that grows as a run goes: each line is with the system when `append` returns."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

from training.errors import MachineError


@final
class JsonLines:
    """The open file. What a full disk or a power cut has left of a line is ended, and spoils no other.

    Raises MachineError, with the name of the file, where the disk does not take it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = path.open("ab+", buffering=0)
            if self._is_torn():
                self._write(b"\n")
        except OSError as error:
            raise self._refused(error) from None

    def append(self, line: Mapping[str, Any]) -> None:
        """Write a line. Numbers that are not finite are refused with ValueError, since JSON has none."""
        try:
            self._write(json.dumps(line, allow_nan=False).encode() + b"\n")
        except OSError as error:
            raise self._refused(error) from None

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _is_torn(self) -> bool:
        if not self._file.seek(0, os.SEEK_END):
            return False
        self._file.seek(-1, os.SEEK_END)
        return self._file.read(1) != b"\n"

    def _write(self, content: bytes) -> None:
        # Unbuffered: what could not be written is not tried again when the file is closed.
        while content:
            content = content[self._file.write(content) :]

    def _refused(self, error: OSError) -> MachineError:
        return MachineError(f"{self._path}: cannot be written: {error.strerror or error}")
