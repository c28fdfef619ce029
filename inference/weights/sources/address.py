"""The address of a model in Cloud Storage, and the names of its objects as paths in a folder."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, final

from inference.errors import ServingError

SCHEME: Final = "gs://"
_ADDRESS: Final = re.compile(r"gs://(?P<bucket>[a-z0-9][a-z0-9._-]{1,220}[a-z0-9])(?:/(?P<prefix>.*))?", re.DOTALL)
_LONGEST_PART: Final = 255
"""Bytes of a file's name, on every file system of Linux."""


@final
@dataclass(frozen=True, kw_only=True)
class Address:
    """A bucket and a prefix in it."""

    bucket: str
    prefix: str
    """Without slashes at its ends; empty for the bucket itself."""

    @staticmethod
    def parsed(text: str) -> Address:
        """Of gs://bucket/prefix. Raises ServingError."""
        match = _ADDRESS.fullmatch(text)
        prefix = "" if match is None else (match["prefix"] or "").strip("/")
        if match is None or not prefix.isprintable():
            raise ServingError(f"{text!r} names no bucket and prefix; write it as gs://bucket/prefix")
        return Address(bucket=match["bucket"], prefix=prefix)

    @property
    def start(self) -> str:
        """How the names of its objects begin."""
        return f"{self.prefix}/" if self.prefix else ""

    def __str__(self) -> str:
        return f"{SCHEME}{self.bucket}/{self.prefix}".rstrip("/")


def path_in_folder(name: str, where: str) -> str:
    """A name, relative to the folder of a model, that is a path which stays within it. Raises ServingError."""
    if fault := _fault(name):
        raise ServingError(f"{where}: {name!r} {fault}, so that it cannot be a file of the model; take it away there")
    return name


def check_apart(names: Iterable[str], where: str) -> None:
    """Raises ServingError where a name is that of a file and of a folder at once."""
    known = frozenset(names)
    for name in sorted(known):
        for folder in map(str, PurePosixPath(name).parents):
            if folder in known:
                raise ServingError(f"{where}: {folder!r} is a file, and the folder of {name!r}; take one away there")


def _fault(name: str) -> str | None:
    parts = name.split("/")
    if name.startswith("/") or "" in parts:
        return "begins or ends with a slash or has two in a row"
    if {".", ".."} & set(parts):
        return "has a part that is '.' or '..'"
    if "\\" in name:
        return "has a backslash"
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in name):
        return "has a control character"
    if any(len(part.encode()) > _LONGEST_PART for part in parts):
        return f"has a part of more than {_LONGEST_PART} bytes"
    return None
