"""A safetensors file on a disk: its header, read and checked, and by which signs it is known to be the same later."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, final

from inference.errors import ServingError
from inference.weights.header import LARGEST_HEADER, PREFIX, Header, parse_header

_LOOKALIKES: Final[Mapping[bytes, str]] = MappingProxyType(
    {
        b"version https://git-lfs": "a pointer of Git LFS, and the file it stands for was not fetched: `git lfs pull`",
        b"<!doctype html": "a page of HTML, most likely an error page that was saved under this name: fetch it again",
        b"<html": "a page of HTML, most likely an error page that was saved under this name: fetch it again",
        b"<?xml": "XML, most likely an error message of a bucket that was saved under this name: fetch it again",
        b'{"error': "an error message that was saved under this name: fetch it again",
        b"gguf": "a GGUF file: convert it to safetensors",
        b"pk\x03\x04": "a zip file, as torch.save writes it: convert it to safetensors",
        b"\x80\x02": "a pickle, as torch.save writes it: convert it to safetensors",
        b"\x1f\x8b": "a gzip file: unpack it",
        b"\x89hdf": "an HDF5 file: convert it to safetensors",
    }
)
"""What stands at the beginning of files that are taken for safetensors, in lower case."""


@final
@dataclass(frozen=True, kw_only=True)
class Stamp:
    """By what a file is known to be unchanged. Inodes are no sign: a FUSE mount gives new ones."""

    size: int
    """Bytes."""
    mtime_ns: int
    """When it was last written."""

    @classmethod
    def of(cls, found: os.stat_result) -> Stamp:
        """Of what `stat` says."""
        return cls(size=found.st_size, mtime_ns=found.st_mtime_ns)


@final
@dataclass(frozen=True, kw_only=True)
class SafetensorsFile:
    """A file whose header was read, and found to be right."""

    path: Path
    stamp: Stamp
    data_begin: int
    """Bytes of the file before its data."""
    header: Header
    header_bytes: bytes
    """As it stands in the file."""


def read_safetensors(path: Path) -> SafetensorsFile:
    """The file at `path`, of which the header alone is read: nothing of the size of its tensors is allocated.

    Raises ServingError, naming the file and the rule that it breaks, for anything that is no file of this format, whole
    and unambiguous; a link is what it points to.
    """
    descriptor = open_regular(path)
    try:
        return _read(path, descriptor)
    except OSError as error:
        raise ServingError(f"{path}: cannot be read: {error.strerror or error}") from None
    finally:
        os.close(descriptor)


def open_regular(path: Path) -> int:
    """A descriptor of a regular file, to be read. Raises ServingError that says what `path` is instead."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe would wait for a writer
    except FileNotFoundError:
        if path.is_symlink():
            raise ServingError(
                f"{path}: is a link to {path.readlink()}, and nothing is there: fetch the model again"
            ) from None
        raise ServingError(f"{path}: is not there{_part_hint(path)}") from None
    except OSError as error:
        raise ServingError(f"{path}: cannot be opened: {error.strerror or error}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ServingError(f"{path}: is no file; name one, or a link to one")
    return descriptor


def _part_hint(path: Path) -> str:
    parts = sorted(each.name for each in path.parent.glob(f"{path.name}.*")) if path.parent.is_dir() else []
    return f"; {parts[0]} is: a download that was broken off. Fetch the model again" if parts else ""


def _read(path: Path, descriptor: int) -> SafetensorsFile:
    stamp = Stamp.of(os.fstat(descriptor))
    prefix = os.pread(descriptor, PREFIX, 0)
    length = int.from_bytes(prefix, "little")
    if wrong := _wrong_length(stamp.size, length):
        raise ServingError(f"{path}: {wrong}{_looks_like(os.pread(descriptor, 64, 0))}")
    content = _exactly(path, descriptor, length)
    header = parse_header(content, stamp.size - PREFIX - length, str(path))
    return SafetensorsFile(
        path=path, stamp=stamp, data_begin=PREFIX + length, header=header, header_bytes=prefix + content
    )


def _wrong_length(size: int, length: int) -> str | None:
    if size == 0:
        return "is empty: a download that has not begun, or a disk that was full. Fetch it again"
    if size < PREFIX:
        return f"has {size} bytes, and a safetensors file begins with {PREFIX} that say how long its header is"
    if length > LARGEST_HEADER:
        return f"its header would be of {length} bytes, over {LARGEST_HEADER} bytes, the most that the format allows"
    if length > size - PREFIX:
        return f"its header would be of {length} bytes, and {size - PREFIX} are there: it is truncated. Fetch it again"
    if length < 2:
        return f"its header is of {length} bytes, which is no JSON object. Fetch it again, or write it again"
    return None


def _looks_like(first: bytes) -> str:
    begins = first.lstrip().lower()
    for sign, meaning in _LOOKALIKES.items():
        if begins.startswith(sign):
            return f". It looks like {meaning}"
    return ""


def _exactly(path: Path, descriptor: int, length: int) -> bytes:
    parts, at = [], 0
    while at < length:
        part = os.pread(descriptor, length - at, PREFIX + at)
        if not part:
            raise ServingError(f"{path}: became shorter while its header was read: somebody writes to it")
        parts.append(part)
        at += len(part)
    return b"".join(parts)
