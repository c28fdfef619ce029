"""Prepared folders whose content a test knows by heart."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from training.data.config import DataConfig, SourceConfig
from training.data.manifest import MANIFEST, TOKENIZER, Manifest, SplitEntry
from training.data.packing import concat_split
from training.data.shards import dtype_for, write_shards


def write_rows(
    folder: Path,
    rows: int,
    *,
    sequence_length: int = 3,
    validation: int = 0,
    vocab_size: int = 50_000,
    shard_rows: int = 1 << 20,
    block_rows: int = 8,
    name: str = "a",
    tokenizer: bytes = b"{}",
) -> Path:
    """A folder with `rows` full rows for training: row r holds the token r in all its places, one document a row.

    A row for validation holds 40,000 + r. `name` makes it another folder than one with as many rows.
    """
    folder.mkdir(parents=True)
    (folder / TOKENIZER).write_bytes(tokenizer)
    width = sequence_length + 1
    splits = {}
    for split, count, first in (("train", rows, 0), ("validation", validation, 40_000)):
        stream = np.repeat(np.arange(first, first + count), width).astype(dtype_for(vocab_size))
        row_bytes = width * stream.itemsize
        shards = write_shards(
            folder,
            split,
            stream,
            concat_split(np.full(count, width), width),
            width=width,
            padding=0,
            shard_bytes=shard_rows * row_bytes,
            block_bytes=block_rows * row_bytes,
        )
        splits[split] = SplitEntry(documents=count, tokens=count * width, rows=count, shards=shards)
    manifest = Manifest(
        sequence_length=sequence_length,
        packing="concat-split",
        dtype=dtype_for(vocab_size),
        vocab_size=vocab_size,
        tokenizer_sha256=hashlib.sha256(tokenizer).hexdigest(),
        recipe=name,
        train=splits["train"],
        validation=splits["validation"],
        sources=(),
    )
    (folder / MANIFEST).write_bytes(manifest.to_json())
    return folder


def reading(*folders: Path, shuffle: bool = True) -> DataConfig:
    """The configuration that reads `folders` in proportion to their sizes."""
    return DataConfig(sources=tuple(SourceConfig(path=str(folder)) for folder in folders), shuffle=shuffle)
