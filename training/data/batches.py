"""The batch of a step: a pure function of the prepared data, the configuration, the seed and the number of the step.

No state is carried from one step to the next. A run that goes on at step s, on whatever number of hosts, reads what the
run that was never stopped would have read, and step 1e9 is as near as step 0.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, final

import numpy as np
import numpy.typing as npt

from training.data.config import DataConfig
from training.data.dataset import Split, TokenDataset
from training.data.permutation import MOST, Numbers, epoch_key, permute
from training.data.schedule import has_caps, plan_mixture
from training.errors import TrainingError

CHUNK: Final = 256
"""Positions of a permutation that are worked out together and kept for a while."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Rows of packed documents."""

    tokens: npt.NDArray[np.int32]
    """(batch, sequence_length + 1): what is predicted is the same row, one on."""
    segments: npt.NDArray[np.int32]
    """(batch, sequence_length + 1): pieces of documents, numbered from 1 in each row; 0 is padding."""
    rows: Numbers
    """(batch,): which row of the data each is, counted through all sources in their order; -1 where there is none."""


@final
class BatchSource:
    """The batches of a run.

    Raises TrainingError where a source can not be read, the sources do not go together, or there is too little data.
    `steps`, the length of the run, is needed only where a source has `max_epochs`. A block of data is checked when it
    is first read: any batch may raise DamagedShardError, which names the block.
    """

    def __init__(self, config: DataConfig, seed: int, batch_size: int, steps: int | None = None) -> None:
        if batch_size < 1:
            raise TrainingError(f"the batch size is {batch_size}; it must be 1 or more rows")
        self._config = config
        self._seed = seed
        self._batch_size = batch_size
        self._sources = tuple(TokenDataset(Path(source.path)) for source in config.sources)
        _check_alike(self._sources)
        sizes = [source.train.rows for source in self._sources]
        _check_enough(sum(sizes), batch_size, self.sequence_length)
        self._mixture = plan_mixture(config, sizes, batch_size, steps)
        self._steps = steps if has_caps(config) else None
        self._order = lru_cache(maxsize=max(64, 4 * len(sizes)))(self._make_order)

    @property
    def sequence_length(self) -> int:
        """Tokens that a row predicts; a row has one more."""
        return self._sources[0].manifest.sequence_length

    @property
    def vocab_size(self) -> int:
        """One more than the largest token."""
        return self._sources[0].manifest.vocab_size

    @property
    def tokenizer_path(self) -> Path:
        """The `tokenizer.json` of the data."""
        return self._sources[0].tokenizer_path

    @property
    def digest(self) -> str:
        """sha256 of everything but the seed and the batch size that decides what is read: the data and the schedule.

        Not of where the folders lie.
        """
        fields = asdict(self._config)
        for source in fields["sources"]:
            del source["path"]
        manifests = [source.digest for source in self._sources]
        content = json.dumps({"data": fields, "manifests": manifests, "steps": self._steps}, sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    def batch(self, step: int, host: int = 0, hosts: int = 1) -> Batch:
        """The rows of step `step`; of several hosts, the part of one: `host` 0 has the first rows.

        Raises TrainingError where the batch does not divide among the hosts.
        """
        if not 0 <= step < MOST // self._batch_size:
            raise TrainingError(f"step {step} is outside 0 to {MOST // self._batch_size - 1}")
        part = self._part(host, hosts)
        sources, numbers = self._mixture.locate(step * self._batch_size + part.start, len(part))
        batch = self._empty(len(part))
        first_row = 0
        for index, source in enumerate(self._sources):
            places = np.flatnonzero(sources == index)
            if len(places):
                # Consecutive rows of a run have consecutive numbers in each source.
                rows = self._rows(index, int(numbers[places[0]]), len(places))
                source.train.read(rows, batch.tokens, batch.segments, places)
                batch.rows[places] = first_row + rows
            first_row += source.train.rows
        return batch

    def validation(self, number: int, host: int = 0, hosts: int = 1) -> Batch:
        """The `number`-th of `validation_batches` batches of validation rows, always in the same order.

        The last is filled up with rows that are all padding.
        """
        if not 0 <= number < self.validation_batches:
            raise TrainingError(f"validation batch {number} is outside 0 to {self.validation_batches - 1}")
        part = self._part(host, hosts)
        batch = self._empty(len(part))
        first = number * self._batch_size + part.start
        rows = np.arange(first, first + len(part))
        batch.rows[:] = np.where(rows < self.validation_rows, rows, -1)
        for source in self._sources:
            _read_in_order(source.validation, first, batch)
            first -= source.validation.rows
        return batch

    @property
    def validation_rows(self) -> int:
        """Rows kept from training, of all sources."""
        return sum(source.validation.rows for source in self._sources)

    @property
    def validation_batches(self) -> int:
        """Batches that hold them."""
        return -(-self.validation_rows // self._batch_size)

    def epochs(self, step: int) -> tuple[float, ...]:
        """How often each source has been read through before step `step`."""
        counts = self._mixture.counts(step * self._batch_size)
        return tuple(count / source.train.rows for count, source in zip(counts, self._sources, strict=True))

    def _part(self, host: int, hosts: int) -> range:
        """The rows of the batch that belong to a host."""
        if hosts < 1 or self._batch_size % hosts:
            fitting = ", ".join(str(n) for n in range(1, self._batch_size + 1) if self._batch_size % n == 0)
            raise TrainingError(
                f"a batch of {self._batch_size} rows does not divide among {hosts} hosts; it does among {fitting}"
            )
        if not 0 <= host < hosts:
            raise TrainingError(f"host {host} is outside 0 to {hosts - 1}")
        size = self._batch_size // hosts
        return range(host * size, (host + 1) * size)

    def _empty(self, rows: int) -> Batch:
        shape = (rows, self.sequence_length + 1)
        return Batch(
            tokens=np.zeros(shape, np.int32), segments=np.zeros(shape, np.int32), rows=np.empty(rows, np.int64)
        )

    def _rows(self, source: int, first: int, count: int) -> Numbers:
        """The rows of a source that have the numbers `first` to `first + count - 1` in its share of the run."""
        size = self._sources[source].train.rows
        found = []
        while count:
            epoch, position = divmod(first, size)
            chunk, offset = divmod(position, CHUNK)
            found.append(self._order(source, epoch, chunk)[offset : offset + count])
            first, count = first + len(found[-1]), count - len(found[-1])
        return np.concatenate(found)

    def _make_order(self, source: int, epoch: int, chunk: int) -> Numbers:
        """The rows at `CHUNK` positions of one pass over a source."""
        size = self._sources[source].train.rows
        positions = np.arange(chunk * CHUNK, min((chunk + 1) * CHUNK, size), dtype=np.int64)
        if not self._config.shuffle:
            return positions
        return permute(positions, size, epoch_key(self._seed, self._sources[source].digest, epoch))


def _read_in_order(split: Split, first: int, batch: Batch) -> None:
    """Put the rows of `split` from `first` on at the beginning of a batch; where first < 0, so far behind it."""
    rows = np.arange(max(first, 0), min(first + len(batch.rows), split.rows), dtype=np.int64)
    if len(rows):
        split.read(rows, batch.tokens, batch.segments, rows - first)


def _check_alike(sources: Sequence[TokenDataset]) -> None:
    one = sources[0]
    for other in sources[1:]:
        if other.manifest.tokenizer_sha256 != one.manifest.tokenizer_sha256:
            raise TrainingError(
                f"{one.folder} and {other.folder} have different tokenizers; prepare one with that of the other: "
                f"--tokenizer {one.tokenizer_path}"
            )
        if other.manifest.sequence_length != one.manifest.sequence_length:
            raise TrainingError(
                f"{one.folder} has sequences of {one.manifest.sequence_length} tokens, {other.folder} of "
                f"{other.manifest.sequence_length}; prepare both with one --sequence-length"
            )


def _check_enough(rows: int, batch_size: int, sequence_length: int) -> None:
    if rows < batch_size:
        raise TrainingError(
            f"the data has {rows} rows of {sequence_length + 1} tokens and a batch takes {batch_size}: one would "
            f"stand in it twice. Give at least {batch_size * (sequence_length + 1):,} tokens, or take a smaller batch"
        )
