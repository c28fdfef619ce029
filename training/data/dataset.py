"""A prepared folder, opened for reading: rows of one split by their number."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, final

import numpy as np
import numpy.typing as npt

from training.data.manifest import TOKENIZER, Manifest, ShardEntry, SplitEntry, read_manifest
from training.data.permutation import Numbers
from training.data.shards import DamagedShardError, Shard
from training.errors import TrainingError


@final
class Split:
    """The rows of one split, over all its shards. A shard is opened when the first of its rows is read."""

    def __init__(self, folder: Path, entry: SplitEntry) -> None:
        self._folder = folder
        self._entries: tuple[ShardEntry, ...] = entry.shards
        self._firsts = np.cumsum([0, *(shard.rows for shard in entry.shards)])
        self._open: dict[int, Shard] = {}
        self.rows: Final = entry.rows

    def read(
        self, rows: Numbers, tokens: npt.NDArray[np.int32], segments: npt.NDArray[np.int32], places: Numbers
    ) -> None:
        """Put the tokens and the segments of `rows` at `places` of two arrays (rows, width).

        Raises DamagedShardError where a byte of them is not as it was written.
        """
        if len(self._entries) == 1:
            self._read_shard(0, rows, tokens, segments, places)
            return
        shards = np.searchsorted(self._firsts, rows, side="right") - 1
        for number in np.unique(shards).tolist():
            of_it = np.flatnonzero(shards == number)
            self._read_shard(number, rows[of_it] - self._firsts[number], tokens, segments, places[of_it])

    def _read_shard(
        self,
        number: int,
        rows: Numbers,
        tokens: npt.NDArray[np.int32],
        segments: npt.NDArray[np.int32],
        places: Numbers,
    ) -> None:
        shard = self._shard(number)
        tokens[places] = shard.tokens(rows)
        segments[places] = shard.segments(rows)

    def verify(self) -> None:
        """Read every byte. Raises DamagedShardError at the first that is not as it was written."""
        for number in range(len(self._entries)):
            self._shard(number).verify()

    def _shard(self, number: int) -> Shard:
        shard = self._open.get(number)
        if shard is None:
            shard = self._open[number] = Shard(self._folder, self._entries[number])
        return shard


@final
class TokenDataset:
    """A prepared folder. Raises TrainingError where it is not complete, or its manifest or tokenizer is damaged."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self.manifest: Final[Manifest] = read_manifest(folder)
        self.digest: Final = self.manifest.digest
        self.tokenizer_path: Final = folder / TOKENIZER
        self.train: Final = Split(folder, self.manifest.train)
        self.validation: Final = Split(folder, self.manifest.validation)
        self._check_tokenizer()

    def verify(self) -> None:
        """Read every byte of it. Raises DamagedShardError at the first that is not as it was written."""
        self.train.verify()
        self.validation.verify()

    def _check_tokenizer(self) -> None:
        try:
            found = hashlib.sha256(self.tokenizer_path.read_bytes()).hexdigest()
        except OSError as error:
            raise TrainingError(f"{self.tokenizer_path}: cannot be read: {error.strerror or error}") from None
        if found != self.manifest.tokenizer_sha256:
            raise DamagedShardError(
                f"{self.tokenizer_path}: its sha256 is {found}, the manifest says {self.manifest.tokenizer_sha256}: "
                "the file is damaged or was changed. Copy the folder again from where it was made, or prepare it again"
            )
