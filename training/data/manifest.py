"""What a prepared folder holds: `MANIFEST.json`, written last.

A manifest names every other file with its digest, and has a digest of its own in it: a folder without a manifest is not
complete, and one byte changed anywhere is found.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from training.errors import TrainingError

SCHEMA: Final = "spotrail.tokens/1"
MANIFEST: Final = "MANIFEST.json"
TOKENIZER: Final = "tokenizer.json"


@final
@dataclass(frozen=True, kw_only=True)
class ShardEntry:
    """One shard, as the manifest knows it."""

    name: str
    """`train-00000`: the stem of its three files."""
    rows: int
    """How many it holds."""
    index_sha256: str
    """Digest of its `.json`, which holds the checksums of the other two."""


@final
@dataclass(frozen=True, kw_only=True)
class SplitEntry:
    """The rows for training, or those for validation."""

    documents: int
    """Documents in it."""
    tokens: int
    """Tokens of those documents, the end of each included; what is left of the rows is padding."""
    rows: int
    """Rows of `sequence_length` + 1 tokens."""
    shards: tuple[ShardEntry, ...]
    """In the order of their rows."""


@final
@dataclass(frozen=True, kw_only=True)
class SourceEntry:
    """One file that was prepared."""

    name: str
    """Of the file, without its folder."""
    documents: int
    """Documents that it gave, without the empty ones."""
    bytes: int
    """Of their text, as UTF-8."""
    skipped: int
    """Bad lines that were left out, as was asked."""


@final
@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The content of `MANIFEST.json`. No time and no folder is in it: the same input gives the same bytes."""

    sequence_length: int
    """Tokens that a row predicts; a row holds one more."""
    packing: str
    """How documents were put into rows (PackingKind)."""
    dtype: str
    """`<u2` or `<u4`: tokens on disk."""
    vocab_size: int
    """One more than the largest token."""
    tokenizer_sha256: str
    """Digest of `tokenizer.json`."""
    recipe: str
    """Digest of what was asked for: the text of all documents and every option."""
    train: SplitEntry
    """Rows to train on."""
    validation: SplitEntry
    """Rows kept from training."""
    sources: tuple[SourceEntry, ...]
    """In the order in which they were given."""

    @property
    def width(self) -> int:
        """Tokens of a row."""
        return self.sequence_length + 1

    def to_json(self) -> bytes:
        """The content of the file, its own digest at the end."""
        fields = {"schema": SCHEMA, **dataclasses.asdict(self)}
        return json.dumps({**fields, "digest": digest_of(fields)}, indent=1).encode() + b"\n"

    @property
    def digest(self) -> str:
        """sha256 of everything in it, and through the digests in it of every byte of the folder."""
        return digest_of({"schema": SCHEMA, **dataclasses.asdict(self)})


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a prepared folder. Raises TrainingError where there is none, or it is damaged."""
    path = folder / MANIFEST
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise TrainingError(_absent(folder)) from None
    except OSError as error:
        raise TrainingError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        fields = json.loads(content)
        said, schema = fields.pop("digest"), fields["schema"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise TrainingError(
            f"{path}: is damaged, or no manifest of `python -m training prepare`; prepare again"
        ) from None
    if said != (found := digest_of(fields)):
        raise TrainingError(f"{path}: is damaged: its digest is {found}, it says {said!r}; prepare again")
    if schema != SCHEMA:
        raise TrainingError(f"{path}: its schema is {schema!r}, and this version reads {SCHEMA!r}; prepare again")
    manifest = _parsed(fields)
    if manifest.to_json() != content:
        raise TrainingError(f"{path}: is damaged: it is not laid out as it was written; prepare again")
    return manifest


def _absent(folder: Path) -> str:
    if str(folder).startswith("gs:"):
        return f"{folder}: data is read through memory maps; copy it to a disk of the host first"
    if not folder.is_dir():
        return f"{folder}: there is no such folder; make it: python -m training prepare --text FILE --out {folder}"
    return (
        f"{folder}: holds no prepared data ({MANIFEST} is missing); "
        f"python -m training prepare --text FILE --out {folder} makes it"
    )


def _parsed(fields: Mapping[str, Any]) -> Manifest:
    """The manifest whose digest is right, so that its shape is too."""
    splits = {
        name: SplitEntry(
            **{**fields[name], "shards": tuple(ShardEntry(**shard) for shard in fields[name]["shards"])},
        )
        for name in ("train", "validation")
    }
    sources = tuple(SourceEntry(**source) for source in fields["sources"])
    return Manifest(
        **{name: value for name, value in fields.items() if name != "schema"} | splits | {"sources": sources}
    )


def digest_of(fields: Mapping[str, Any]) -> str:
    """sha256 of a JSON value, however it is laid out."""
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
