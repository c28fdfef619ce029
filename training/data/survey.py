"""The first reading of the sources: what there is, what is wrong with it, and what is kept for validation."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from training.data.documents import BadLine, DocumentSource
from training.data.manifest import SourceEntry
from training.errors import TrainingError
from training.model.tokenizer import scalar_text

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and of how much."""
NAMED: Final = 5
"""Bad lines that are named."""


@final
@dataclass(frozen=True, kw_only=True)
class Survey:
    """What the sources hold. A document is known by its hash: the split does not hang on its place."""

    hashes: npt.NDArray[np.uint64]
    """Of every document that is not empty, in order: the first 8 bytes of the BLAKE2b of its text."""
    sources: tuple[SourceEntry, ...]
    """As the manifest has them."""
    bad_lines: tuple[BadLine, ...]
    """The first that were left out."""

    @property
    def bytes(self) -> int:
        """Of all text."""
        return sum(source.bytes for source in self.sources)


@final
@dataclass(kw_only=True)
class _Count:
    """What is found in one source."""

    documents: int = 0
    bytes: int = 0
    skipped: int = 0


def survey(sources: Sequence[DocumentSource], *, lenient: bool, progress: Progress) -> Survey:
    """Read all sources once. Raises TrainingError at the first bad line; `lenient` counts it and goes on."""
    hashes = array("Q")
    bad_lines: list[BadLine] = []
    entries = []
    total, before = sum(source.size for source in sources), 0
    for source in sources:
        count = _Count()
        for document in source.read():
            if isinstance(document, BadLine):
                if not lenient:
                    raise TrainingError(f"{document}. To leave such lines out, and have them counted: --lenient")
                count.skipped += 1
                bad_lines.extend([document] if len(bad_lines) < NAMED else [])
            elif content := scalar_text(document).encode():
                hashes.append(hash_of(content))
                count.documents += 1
                count.bytes += len(content)
                progress("reading", before + count.bytes, total)
        before += source.size
        entries.append(
            SourceEntry(name=source.name, documents=count.documents, bytes=count.bytes, skipped=count.skipped)
        )
    return Survey(hashes=np.array(hashes, np.uint64), sources=tuple(entries), bad_lines=tuple(bad_lines))


def documents(sources: Sequence[DocumentSource], found: Survey) -> Iterator[str]:
    """The documents that were surveyed, again. Raises TrainingError where a source has changed since."""
    expected = map(int, found.hashes)
    for source in sources:
        for document in source.read():
            if isinstance(document, str) and (text := scalar_text(document)):
                if hash_of(text.encode()) != next(expected, None):
                    raise TrainingError(f"{source.name} was changed while it was read; prepare again")
                yield text
    if next(expected, None) is not None:
        raise TrainingError(f"{sources[-1].name} was changed while it was read: it has become shorter; prepare again")


def hash_of(content: bytes) -> int:
    """64 bits that the content of a document has for itself."""
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")


def kept_for_validation(hashes: npt.NDArray[np.uint64], fraction: float) -> npt.NDArray[np.bool_]:
    """Which documents are not trained on: those with a hash in the lowest `fraction`.

    A document stays on its side when others come and go, and a copy of it is on the same side. Where there are few, at
    least one is kept for either side. Raises TrainingError where all documents are one.
    """
    if not fraction:
        return np.zeros(len(hashes), np.bool_)
    low, high = int(hashes.min()), int(hashes.max())
    if low == high:
        raise TrainingError(
            "the text is one document, or copies of one, and a part of it is to be kept for validation; give more (a "
            "text file is cut into documents of 16,384 characters), or train on all of it: --validation 0"
        )
    bound = min(max(int(fraction * 2**64), low + 1), high)
    return hashes < np.uint64(bound)
