"""Shards: rows of tokens on disk, with a checksum for every block.

A shard is three files. `NAME.tokens`: its rows one after the other, raw little-endian u16 or u32. `NAME.segments`:
little-endian u32, first for every row (and the end) where its pieces begin in what follows, then the tokens of every
piece; the last piece of a row is its padding and may be 0. `NAME.json`: sizes, and crc32c of the segments and of each
block of the tokens. A block is checked when the first of its rows is read, once.
"""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, final

import google_crc32c
import numpy as np
import numpy.typing as npt

from training.data.manifest import ShardEntry
from training.data.packing import Packing
from training.data.permutation import Numbers
from training.errors import TrainingError

SCHEMA: Final = "spotrail.shard/1"
BLOCK_BYTES: Final = 1 << 16
"""Bytes of a block, about: it holds whole rows."""
SHARD_BYTES: Final = 1 << 28
"""Bytes of the tokens of a shard, at most."""
NARROW: Final = 1 << 16
"""The largest vocabulary that two bytes hold."""

_REMEDY: Final = ". Copy the folder again from where it was made, or prepare it again"


@final
class DamagedShardError(TrainingError):
    """A shard that is not as it was written."""


def dtype_for(vocab_size: int) -> str:
    """How tokens below `vocab_size` are stored: `<u2` or `<u4`."""
    return "<u2" if vocab_size <= NARROW else "<u4"


def write_shards(
    folder: Path,
    split: str,
    stream: npt.NDArray[np.unsignedinteger[Any]],
    packing: Packing,
    *,
    width: int,
    padding: int,
    shard_bytes: int = SHARD_BYTES,
    block_bytes: int = BLOCK_BYTES,
) -> tuple[ShardEntry, ...]:
    """Write the rows of `packing`, whose pieces are in `stream`, as shards `SPLIT-00000` and so on."""
    row_bytes = width * stream.itemsize
    block_rows = max(1, block_bytes // row_bytes)
    shard_rows = max(1, shard_bytes // row_bytes)
    entries = []
    for number, first in enumerate(range(0, packing.rows, shard_rows)):
        rows = range(first, min(first + shard_rows, packing.rows))
        name = f"{split}-{number:05}"
        with (folder / f"{name}.tokens").open("xb") as out:
            sums = _write_tokens(out, stream, packing, rows, width, padding, block_rows)
        segments = _segments_of(packing, rows, width).tobytes()
        (folder / f"{name}.segments").write_bytes(segments)
        index = {
            "schema": SCHEMA,
            "rows": len(rows),
            "width": width,
            "dtype": stream.dtype.str,
            "block_rows": block_rows,
            "segments_bytes": len(segments),
            "segments_crc32c": google_crc32c.value(segments),
            "blocks_crc32c": sums,
        }
        content = json.dumps(index).encode() + b"\n"
        (folder / f"{name}.json").write_bytes(content)
        entries.append(ShardEntry(name=name, rows=len(rows), index_sha256=hashlib.sha256(content).hexdigest()))
    return tuple(entries)


def _write_tokens(
    out: IO[bytes],
    stream: npt.NDArray[np.unsignedinteger[Any]],
    packing: Packing,
    rows: range,
    width: int,
    padding: int,
    block_rows: int,
) -> list[int]:
    """Write `rows`, block by block; the crc32c of each."""
    sums = []
    for first in range(rows.start, rows.stop, block_rows):
        block = np.full((min(block_rows, rows.stop - first), width), padding, stream.dtype)
        for row, tokens in enumerate(block, first):
            filled = 0
            for piece in range(int(packing.first_pieces[row]), int(packing.first_pieces[row + 1])):
                start, length = int(packing.starts[piece]), int(packing.lengths[piece])
                tokens[filled : filled + length] = stream[start : start + length]
                filled += length
        content = block.tobytes()
        out.write(content)
        sums.append(google_crc32c.value(content))
    return sums


def _segments_of(packing: Packing, rows: range, width: int) -> npt.NDArray[np.uint32]:
    """The content of a `.segments` file."""
    first = packing.first_pieces[rows.start : rows.stop + 1]
    lengths = packing.lengths[first[0] : first[-1]]
    within = first - first[0]
    padding = width - np.add.reduceat(lengths, within[:-1])
    # The padding of a row comes behind its last piece: every row before it has moved the pieces by one.
    begins = within + np.arange(len(within))
    return np.concatenate([begins, np.insert(lengths, within[1:], padding)]).astype("<u4")


@final
@dataclass(frozen=True, kw_only=True)
class _Index:
    """What `NAME.json` says."""

    schema: str
    rows: int
    width: int
    dtype: str
    block_rows: int
    segments_bytes: int
    segments_crc32c: int
    blocks_crc32c: Sequence[int]


@final
class Shard:
    """One shard, memory mapped. Raises DamagedShardError where a file is missing or is not as it was written."""

    def __init__(self, folder: Path, entry: ShardEntry) -> None:
        self._path = folder / f"{entry.name}.tokens"
        index = _read_index(folder / f"{entry.name}.json", entry)
        dtype = np.dtype(index.dtype)
        size = index.rows * index.width * dtype.itemsize
        self._tokens = _mapped(self._path, size).view(dtype).reshape(index.rows, index.width)
        self._block_rows = index.block_rows
        self._sums = index.blocks_crc32c
        self._checked = np.zeros(len(index.blocks_crc32c), np.bool_)
        path = folder / f"{entry.name}.segments"
        segments = _mapped(path, index.segments_bytes)
        if (found := google_crc32c.value(segments)) != index.segments_crc32c:
            raise DamagedShardError(_damage(path, "its crc32c", index.segments_crc32c, found))
        words = segments.view("<u4")
        self._begins, self._lengths = words[: index.rows + 1], words[index.rows + 1 :]

    def tokens(self, rows: Numbers) -> npt.NDArray[np.unsignedinteger[Any]]:
        """The tokens of `rows`, (len(rows), width)."""
        blocks = rows // self._block_rows
        if not self._checked[blocks].all():
            for block in np.unique(blocks[~self._checked[blocks]]).tolist():
                self._check(block)
        return self._tokens[rows]

    def segments(self, rows: Numbers) -> npt.NDArray[np.int32]:
        """The segment of every token of `rows`, (len(rows), width): from 1 in each row; 0 is padding."""
        begins = self._begins[rows].astype(np.int64)
        counts = self._begins[rows + 1] - begins
        ends = np.cumsum(counts)
        nth = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
        lengths = self._lengths[np.repeat(begins, counts) + nth]
        numbers = (nth + 1).astype(np.int32)
        numbers[ends - 1] = 0
        return np.repeat(numbers, lengths).reshape(len(rows), -1)

    def verify(self) -> None:
        """Check every block that was not checked yet."""
        for block in np.flatnonzero(~self._checked).tolist():
            self._check(block)

    def _check(self, block: int) -> None:
        """Compare the checksum of a block, once. Raises DamagedShardError."""
        rows = self._tokens[block * self._block_rows : (block + 1) * self._block_rows]
        found = google_crc32c.value(rows)
        if found != self._sums[block]:
            start = block * self._block_rows * self._tokens.itemsize * self._tokens.shape[1]
            place = f"block {block} (bytes {start} to {start + rows.nbytes - 1}): its crc32c"
            raise DamagedShardError(_damage(self._path, place, self._sums[block], found))
        self._checked[block] = True


def _read_index(path: Path, entry: ShardEntry) -> _Index:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DamagedShardError(f"{path}: cannot be read: {error.strerror or error}{_REMEDY}") from None
    found = hashlib.sha256(content).hexdigest()
    if found != entry.index_sha256:
        raise DamagedShardError(
            f"{path}: its sha256 is {found}, the manifest says {entry.index_sha256}: the file is damaged{_REMEDY}"
        )
    return _Index(**json.loads(content))


def _mapped(path: Path, size: int) -> npt.NDArray[np.uint8]:
    """The bytes of a file of `size` bytes, read only."""
    try:
        with path.open("rb") as stream:
            found = path.stat().st_size
            if found != size:
                raise DamagedShardError(
                    f"{path}: has {found} bytes, its index says {size}: it was cut or grew{_REMEDY}"
                )
            return np.frombuffer(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    except OSError as error:
        raise DamagedShardError(f"{path}: cannot be read: {error.strerror or error}{_REMEDY}") from None


def _damage(path: Path, place: str, expected: int, found: int) -> str:
    return f"{path}: {place} is {found:08x}, its index says {expected:08x}: the file is damaged{_REMEDY}"
