"""From text to a folder that training reads: tokenizer, checksummed shards, manifest.

The folder appears whole or not at all: it is written beside its place, under a name that begins with a dot, and moved
when it is complete. The same text and options give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, Final, final

import numpy as np
import numpy.typing as npt

from training.data.dataset import TokenDataset
from training.data.documents import BadLine, DocumentSource
from training.data.manifest import MANIFEST, TOKENIZER, Manifest, SplitEntry, read_manifest
from training.data.output_folder import check_place, new_folder
from training.data.packing import PACKINGS, PackingKind
from training.data.shards import SHARD_BYTES, DamagedShardError, dtype_for, write_shards
from training.data.survey import Progress, Survey, documents, kept_for_validation, survey
from training.data.text import text_file
from training.errors import TrainingError
from training.model.tokenizer import SMALLEST, Tokenizer, load_tokenizer, train_tokenizer

SAMPLE_BYTES: Final = 1 << 26
"""Text that a tokenizer is trained on at most: an even choice of the documents."""
BATCH_BYTES: Final = 1 << 22
"""Text that is tokenized together, about."""
LONGEST: Final = 1 << 20
"""Of a sequence, in tokens."""
BYTES_PER_TOKEN: Final = 3
"""Of English text, about: to say how much is needed before there are tokens."""


@final
@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How text is prepared. Raises TrainingError for a number outside its range."""

    vocab_size: int = 4096
    """Of the tokenizer that is trained, at most; without effect where one is given."""
    sequence_length: int = 512
    """Tokens that a row predicts."""
    packing: PackingKind = PackingKind.CONCAT_SPLIT
    """How documents are put into rows."""
    validation: float = 0.05
    """Fraction of the documents that is kept from training; 0 keeps none."""
    shard_bytes: int = SHARD_BYTES
    """Bytes of the tokens of a shard, at most."""

    def __post_init__(self) -> None:
        if not 1 <= self.sequence_length <= LONGEST:
            raise TrainingError(f"--sequence-length is {self.sequence_length}; it must be 1 to {LONGEST}")
        if not 0 <= self.validation <= 0.5:
            raise TrainingError(f"--validation is {self.validation}; it is a fraction of the documents, from 0 to 0.5")
        if self.vocab_size < SMALLEST:
            raise TrainingError(f"--vocab-size is {self.vocab_size}; bytes and reserved tokens alone are {SMALLEST}")

    @property
    def width(self) -> int:
        """Tokens of a row."""
        return self.sequence_length + 1


@final
@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What `prepare` leaves behind."""

    folder: Path
    """Where it lies."""
    manifest: Manifest
    """What it holds."""
    unchanged: bool
    """It was there already, from the same text and options, and every byte of it is as it was written."""
    bad_lines: tuple[BadLine, ...]
    """The first of the lines that were left out."""


def prepare(
    files: Sequence[DocumentSource | Path | str],
    out: Path,
    *,
    recipe: Recipe | None = None,
    tokenizer: Path | None = None,
    lenient: bool = False,
    replace: bool = False,
    progress: Progress = lambda phase, done, total: None,
) -> Prepared:
    """Prepare `files` (a path is a plain text file) as the folder `out`.

    `tokenizer` is a `tokenizer.json` to use instead of training one. `lenient` leaves out bad lines and goes on. A
    folder that holds the same already is left as it is; other prepared data only goes where `replace` says so.
    Raises TrainingError where something cannot be read, `out` holds something else, or there is too little text.
    """
    recipe = recipe or Recipe()
    sources = [file if isinstance(file, DocumentSource) else text_file(Path(file)) for file in files]
    if not sources:
        raise TrainingError("there is nothing to prepare; name text files, JSONL files or a corpus")
    given = load_tokenizer(tokenizer) if tokenizer else None
    check_place(out)
    found = survey(sources, lenient=lenient, progress=progress)
    _check_enough(found.bytes + len(found.hashes), recipe, found, "at most ")
    name = _recipe_digest(recipe, given, found)
    if (there := _existing(out, name, replace=replace)) is not None:
        return Prepared(folder=out, manifest=there, unchanged=True, bad_lines=found.bad_lines)
    with new_folder(out) as folder:
        kept = kept_for_validation(found.hashes, recipe.validation)
        model = given or _trained(sources, found, kept, recipe, progress)
        (folder / TOKENIZER).write_bytes(model.to_json())
        splits = _write_splits(folder, sources, found, kept, model, recipe, progress)
        manifest = Manifest(
            sequence_length=recipe.sequence_length,
            packing=recipe.packing.value,
            dtype=dtype_for(model.vocab_size),
            vocab_size=model.vocab_size,
            tokenizer_sha256=model.digest,
            recipe=name,
            train=splits[False],
            validation=splits[True],
            sources=found.sources,
        )
        (folder / MANIFEST).write_bytes(manifest.to_json())
    return Prepared(folder=out, manifest=manifest, unchanged=False, bad_lines=found.bad_lines)


def _recipe_digest(recipe: Recipe, given: Tokenizer | None, found: Survey) -> str:
    """A name for what is going to be written: it says the same only where every byte would be the same."""
    options = {**asdict(recipe), "packing": recipe.packing.value, "tokenizer": given.digest if given else None}
    if given:
        del options["vocab_size"]
    fields = {
        "options": options,
        "tokenizers": version("tokenizers"),
        "sources": [asdict(source) for source in found.sources],
        "documents": hashlib.sha256(found.hashes.tobytes()).hexdigest(),
    }
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def _existing(out: Path, recipe: str, *, replace: bool) -> Manifest | None:
    """The manifest of what is at `out` where it is what was asked for, and whole."""
    if not (out / MANIFEST).exists():
        return None
    try:
        there = read_manifest(out)
        if there.recipe == recipe:
            TokenDataset(out).verify()
            return there
    except DamagedShardError:
        # It was what was asked for: it is made anew.
        return None
    except TrainingError as error:
        if not replace:
            raise TrainingError(f"{error}, with --replace") from None
        return None
    if not replace:
        raise TrainingError(f"{out}: holds other prepared data; name another folder, or --replace it")
    return None


def _check_enough(tokens: int, recipe: Recipe, found: Survey, about: str = "") -> None:
    """Raises TrainingError where there is not one full row to train on."""
    if not len(found.hashes):
        names = ", ".join(source.name for source in found.sources[:3])
        if found.bad_lines:
            skipped = sum(source.skipped for source in found.sources)
            raise TrainingError(
                f"no line of {names} holds text: {skipped:,} were left out; the first, {found.bad_lines[0]}"
            )
        raise TrainingError(f"there is no text in {names}: every document is empty")
    if tokens < recipe.width:
        needed = recipe.width * max(BYTES_PER_TOKEN, found.bytes / max(tokens, 1))
        raise TrainingError(
            f"too little text: {found.bytes:,} bytes give {about}{tokens:,} tokens to train on, and a row takes "
            f"{recipe.width:,} (--sequence-length {recipe.sequence_length}, and one). Give {needed:,.0f} bytes or "
            "more (about), or a shorter sequence"
        )


def _trained(
    sources: Sequence[DocumentSource], found: Survey, kept: npt.NDArray[np.bool_], recipe: Recipe, progress: Progress
) -> Tokenizer:
    """A tokenizer of the documents to train on, or of an even choice of them."""
    most = min(1.0, SAMPLE_BYTES / found.bytes) * 2**32
    total = min(found.bytes, SAMPLE_BYTES)

    def sample() -> Iterator[str]:
        done = 0
        for text, value, validation in zip(documents(sources, found), map(int, found.hashes), kept, strict=True):
            # The low bits: the split goes by the high ones.
            if not validation and value % 2**32 < most:
                done += len(text)
                progress("training the tokenizer", done, total)
                yield text

    return train_tokenizer(sample(), recipe.vocab_size)


@final
@dataclass(kw_only=True)
class _Stream:
    """The tokens of a split, one document after the other, in a file that goes again."""

    path: Path
    file: IO[bytes]
    lengths: array[int] = field(default_factory=lambda: array("q"))
    """Tokens of each document, the end of it included."""


def _write_splits(
    folder: Path,
    sources: Sequence[DocumentSource],
    found: Survey,
    kept: npt.NDArray[np.bool_],
    model: Tokenizer,
    recipe: Recipe,
    progress: Progress,
) -> dict[bool, SplitEntry]:
    """Tokenize everything, and write the shards of training (False) and validation (True)."""
    paths = {False: folder / "train.stream", True: folder / "validation.stream"}
    with paths[False].open("wb") as train, paths[True].open("wb") as validation:
        streams = {
            False: _Stream(path=paths[False], file=train),
            True: _Stream(path=paths[True], file=validation),
        }
        dtype = np.dtype(dtype_for(model.vocab_size))
        done = 0
        for texts, sides in _batches(documents(sources, found), kept):
            for ids, side in zip(model.encode_batch(texts), sides, strict=True):
                streams[side].file.write(np.array([*ids, model.end], dtype).tobytes())
                streams[side].lengths.append(len(ids) + 1)
            done += sum(len(text.encode()) for text in texts)
            progress("tokenizing", done, found.bytes)
    _check_enough(sum(streams[False].lengths), recipe, found)
    progress("packing", 0, 2)
    splits = {}
    for number, (side, name) in enumerate(((False, "train"), (True, "validation"))):
        splits[side] = _write_split(folder, name, streams[side], dtype, model.end, recipe)
        progress("packing", number + 1, 2)
    return splits


def _write_split(
    folder: Path, name: str, stream: _Stream, dtype: np.dtype[np.unsignedinteger[Any]], padding: int, recipe: Recipe
) -> SplitEntry:
    lengths = np.array(stream.lengths, np.int64)
    tokens = np.memmap(stream.path, dtype, "r") if len(lengths) else np.empty(0, dtype)
    packing = PACKINGS[recipe.packing](lengths, recipe.width)
    shards = write_shards(
        folder, name, tokens, packing, width=recipe.width, padding=padding, shard_bytes=recipe.shard_bytes
    )
    stream.path.unlink()
    return SplitEntry(documents=len(lengths), tokens=int(lengths.sum()), rows=packing.rows, shards=shards)


def _batches(texts: Iterator[str], sides: npt.NDArray[np.bool_]) -> Iterator[tuple[list[str], list[bool]]]:
    """Documents of about `BATCH_BYTES` together, and on which side of the split each is."""
    batch: list[str] = []
    held, first = 0, 0
    for text in texts:
        batch.append(text)
        held += len(text)
        if held >= BATCH_BYTES:
            yield batch, sides[first : first + len(batch)].tolist()
            first += len(batch)
            batch, held = [], 0
    if batch:
        yield batch, sides[first:].tolist()
