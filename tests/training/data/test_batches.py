"""The batch of a step: a function of its number alone, whatever was read before, by however many hosts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.training.data.prepared import reading, write_rows
from training.data.batches import CHUNK, BatchSource
from training.data.config import DataConfig, SourceConfig, StageConfig
from training.errors import TrainingError


def rows_of(source: BatchSource, steps: Sequence[int]) -> list[int]:
    return [row for step in steps for row in source.batch(step).rows.tolist()]


def test_a_run_that_is_cut_anywhere_reads_what_the_straight_run_reads(tmp_path: Path) -> None:
    config = reading(write_rows(tmp_path / "a", 10))
    straight = rows_of(BatchSource(config, 0, 2), range(20))
    for cut in range(21):
        resumed = rows_of(BatchSource(config, 0, 2), range(cut)) + rows_of(BatchSource(config, 0, 2), range(cut, 20))
        assert resumed == straight
    epochs = [straight[first : first + 10] for first in range(0, 40, 10)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4


@pytest.mark.parametrize("hosts", [[1, 2, 2, 2], [1, 4, 4, 4], [4, 1, 1, 1], [1, 2, 4, 1]])
def test_the_number_of_hosts_changes_nothing(tmp_path: Path, hosts: list[int]) -> None:
    source = BatchSource(reading(write_rows(tmp_path / "a", 16)), 0, 4)
    seen = []
    for step, count in enumerate(hosts):
        parts = [source.batch(step, host, count) for host in range(count)]
        whole = source.batch(step)
        for field in ("tokens", "segments", "rows"):
            assert np.array_equal(np.concatenate([getattr(part, field) for part in parts]), getattr(whole, field))
        seen += whole.rows.tolist()
    assert sorted(seen) == list(range(16))


@pytest.mark.parametrize("hosts", [0, 3, 8])
def test_a_batch_that_does_not_divide_is_refused(tmp_path: Path, hosts: int) -> None:
    source = BatchSource(reading(write_rows(tmp_path / "a", 16)), 0, 4)
    with pytest.raises(
        TrainingError, match=f"batch of 4 rows does not divide among {hosts} hosts; it does among 1, 2, 4"
    ):
        source.batch(0, 0, hosts)
    with pytest.raises(TrainingError, match="host 4 is outside 0 to 3"):
        source.batch(0, 4, 4)


def test_tokens_and_segments_are_those_of_the_row(tmp_path: Path) -> None:
    source = BatchSource(reading(write_rows(tmp_path / "a", 100, shard_rows=7, block_rows=3)), 1, 10)
    for step in range(10):
        batch = source.batch(step)
        assert batch.tokens.dtype == batch.segments.dtype == np.int32
        assert batch.tokens.tolist() == [[row] * 4 for row in batch.rows]
        assert batch.segments.tolist() == [[1] * 4] * 10


def test_shards_do_not_change_the_order(tmp_path: Path) -> None:
    sources = []
    for number, shard_rows in enumerate((1, 7, 1000)):
        folder = write_rows(tmp_path / str(number), 50, shard_rows=shard_rows)
        sources.append(BatchSource(reading(folder, shuffle=False), 0, 8))
    tokens = [[source.batch(step).tokens.tolist() for step in range(10)] for source in sources]
    assert tokens[0] == tokens[1] == tokens[2]


def test_another_seed_is_another_order(tmp_path: Path) -> None:
    config = reading(write_rows(tmp_path / "a", 1000))
    assert rows_of(BatchSource(config, 0, 100), range(10)) != rows_of(BatchSource(config, 1, 100), range(10))


def test_without_shuffle_rows_come_as_they_were_prepared(tmp_path: Path) -> None:
    source = BatchSource(reading(write_rows(tmp_path / "a", 10), shuffle=False), 0, 4)
    assert rows_of(source, range(5)) == [*range(10), *range(10)]


def test_an_epoch_longer_than_a_chunk_is_a_permutation(tmp_path: Path) -> None:
    rows = 2 * CHUNK + 17
    source = BatchSource(reading(write_rows(tmp_path / "a", rows)), 0, 1)
    for epoch in range(2):
        assert sorted(rows_of(source, range(epoch * rows, (epoch + 1) * rows))) == list(range(rows))


def test_a_mixture_reads_each_source_through_before_it_reads_it_again(tmp_path: Path) -> None:
    sizes = (30, 7, 100)
    folders = [write_rows(tmp_path / str(number), size, name=str(number)) for number, size in enumerate(sizes)]
    config = DataConfig(sources=tuple(SourceConfig(path=str(folder), weight=1.0) for folder in folders))
    source = BatchSource(config, 0, 9)
    rows = np.array(rows_of(source, range(100)))
    firsts = (0, 30, 37, 137)
    for number, size in enumerate(sizes):
        mine = rows[(rows >= firsts[number]) & (rows < firsts[number + 1])] - firsts[number]
        assert abs(len(mine) - 300) <= 1
        for epoch in range(len(mine) // size):
            assert sorted(mine[epoch * size : (epoch + 1) * size]) == list(range(size))
    assert source.epochs(100) == pytest.approx([300 / size for size in sizes], abs=0.2)


def test_step_1e9_is_as_near_as_step_0(tmp_path: Path) -> None:
    folders = [write_rows(tmp_path / str(number), 50, name=str(number)) for number in range(2)]
    one, other = BatchSource(reading(*folders), 0, 16), BatchSource(reading(*folders), 0, 16)
    far = 10**9
    for step in range(5):
        other.batch(step)
    assert np.array_equal(one.batch(far).tokens, other.batch(far).tokens)
    # Row 1.6e10 of the run: each source has been read 1.6e8 times, and goes on where it was.
    assert one.epochs(far) == pytest.approx((1.6e8, 1.6e8))
    counts = np.bincount([row for step in range(far, far + 100) for row in one.batch(step).rows], minlength=100)
    assert counts.min() >= 14
    assert counts.max() <= 18


def test_a_step_that_is_none_is_refused(tmp_path: Path) -> None:
    source = BatchSource(reading(write_rows(tmp_path / "a", 10)), 0, 2)
    for step in (-1, 2**61):
        with pytest.raises(TrainingError, match=f"step {step} is outside 0 to"):
            source.batch(step)


def weighted(folders: Sequence[Path], *weights: float, **more: object) -> DataConfig:
    sources = tuple(SourceConfig(path=str(path), weight=weight) for path, weight in zip(folders, weights, strict=True))
    return dataclasses.replace(DataConfig(sources=sources), **more)


def test_weights_change_at_the_step_of_a_stage(tmp_path: Path) -> None:
    folders = [write_rows(tmp_path / str(number), 40, name=str(number)) for number in range(2)]
    stages = (StageConfig(from_step=10, weights=(0, 1)), StageConfig(from_step=20, weights=(1, 0)))
    source = BatchSource(weighted(folders, 3, 1, stages=stages), 0, 20)
    assert sum(row < 40 for row in rows_of(source, range(10))) == 150
    assert min(rows_of(source, range(10, 20))) >= 40
    assert max(rows_of(source, range(20, 50))) < 40


def capped(folders: Sequence[Path], caps: Sequence[float | None], **more: object) -> DataConfig:
    sources = tuple(
        SourceConfig(path=str(path), weight=1.0, max_epochs=cap) for path, cap in zip(folders, caps, strict=True)
    )
    return dataclasses.replace(DataConfig(sources=sources), **more)


def test_no_source_is_read_more_often_than_its_cap(tmp_path: Path) -> None:
    folders = [write_rows(tmp_path / str(number), size, name=str(number)) for number, size in enumerate((10, 33, 500))]
    source = BatchSource(capped(folders, (2, 2.5, None)), 0, 10, steps=60)
    rows = rows_of(source, range(60))
    counts = [sum(first <= row < end for row in rows) for first, end in ((0, 10), (10, 43), (43, 543))]
    assert counts[0] in (19, 20)
    assert counts[1] in (81, 82)
    assert counts[2] == 600 - counts[0] - counts[1]


def test_all_data_can_be_read_exactly_once(tmp_path: Path) -> None:
    folders = [write_rows(tmp_path / str(number), size, name=str(number)) for number, size in enumerate((33, 33, 34))]
    rows = rows_of(BatchSource(capped(folders, (1, 1, 1)), 0, 10, steps=10), range(10))
    assert sorted(rows) == list(range(100))


def test_caps_hold_over_all_stages(tmp_path: Path) -> None:
    folders = [write_rows(tmp_path / str(number), size, name=str(number)) for number, size in enumerate((10, 100))]
    config = capped(folders, (3, None), stages=(StageConfig(from_step=4, weights=(1, 1)),))
    rows = rows_of(BatchSource(config, 0, 10, steps=10), range(10))
    # Half of the first 40 rows, and what the cap has left for the other 60.
    assert sum(row < 10 for row in rows[:40]) == 20
    assert sum(row < 10 for row in rows) in (29, 30)


def test_caps_need_the_length_of_the_run_and_enough_data(tmp_path: Path) -> None:
    folders = [write_rows(tmp_path / str(number), 10, name=str(number)) for number in range(2)]
    with pytest.raises(TrainingError, match="max_epochs shares out the rows of the whole run; give its steps"):
        BatchSource(capped(folders, (1, None)), 0, 5)
    with pytest.raises(TrainingError, match=r"the sources have 30 rows, and the run takes 100: .*Raise max_epochs"):
        BatchSource(capped(folders, (1, 2)), 0, 5, steps=20)


def test_validation_rows_come_in_order_and_the_last_batch_is_filled_with_padding(tmp_path: Path) -> None:
    folders = [write_rows(tmp_path / str(n), 20, validation=rows, name=str(n)) for n, rows in enumerate((5, 0, 6))]
    source = BatchSource(reading(*folders), 0, 4)
    assert source.validation_batches == 3
    batches = [source.validation(number) for number in range(3)]
    assert [batch.rows.tolist() for batch in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, -1]]
    assert [row[0] for batch in batches for row in batch.tokens.tolist()] == [
        *range(40_000, 40_005),
        *range(40_000, 40_006),
        0,
    ]
    assert batches[2].segments.tolist() == [[1] * 4] * 3 + [[0] * 4]
    for number in range(3):
        halves = [source.validation(number, host, 2) for host in range(2)]
        assert np.array_equal(np.concatenate([half.tokens for half in halves]), batches[number].tokens)
        assert np.array_equal(np.concatenate([half.rows for half in halves]), batches[number].rows)
    with pytest.raises(TrainingError, match="validation batch 3 is outside 0 to 2"):
        source.validation(3)


def test_the_digest_is_of_the_data_and_the_schedule_not_of_the_place(tmp_path: Path) -> None:
    one = write_rows(tmp_path / "one", 10)
    same = write_rows(tmp_path / "same", 10)
    other = write_rows(tmp_path / "other", 11)
    digest = BatchSource(reading(one), 0, 2).digest
    assert BatchSource(reading(same), 0, 2).digest == digest
    assert BatchSource(reading(other), 0, 2).digest != digest
    assert BatchSource(reading(one, shuffle=False), 0, 2).digest != digest
    assert BatchSource(reading(one), 0, 2, steps=5).digest == digest
    caps = [BatchSource(capped([one], (5,)), 0, 2, steps=steps).digest for steps in (5, 6)]
    assert len({digest, *caps}) == 3


def test_sources_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    one = write_rows(tmp_path / "one", 10)
    longer = write_rows(tmp_path / "longer", 10, sequence_length=7)
    with pytest.raises(TrainingError, match=r"one has sequences of 3 tokens, .*longer of 7; prepare both"):
        BatchSource(reading(one, longer), 0, 2)
    other = write_rows(tmp_path / "other", 10, tokenizer=b"[]")
    with pytest.raises(TrainingError, match=r"have different tokenizers; .*--tokenizer .*one/tokenizer\.json"):
        BatchSource(reading(one, other), 0, 2)


def test_too_little_data_for_a_batch_is_told(tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "a", 5)
    with pytest.raises(
        TrainingError, match=r"the data has 5 rows of 4 tokens and a batch takes 8: .* at least 32 tokens"
    ):
        BatchSource(reading(folder), 0, 8)
    with pytest.raises(TrainingError, match="the batch size is 0; it must be 1 or more rows"):
        BatchSource(reading(folder), 0, 0)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("none", "none: there is no such folder; make it: python -m training prepare --text FILE --out .*none"),
        ("", r"holds no prepared data \(MANIFEST\.json is missing\)"),
    ],
)
def test_a_folder_that_is_not_prepared_is_told(tmp_path: Path, path: str, message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        BatchSource(reading(tmp_path / path), 0, 1)


def test_a_bucket_is_told_to_be_copied() -> None:
    config = DataConfig(sources=(SourceConfig(path="gs://bucket/data"),))
    with pytest.raises(TrainingError, match="data is read through memory maps; copy it to a disk"):
        BatchSource(config, 0, 1)


def test_what_the_model_needs_to_know(tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "a", 10)
    source = BatchSource(reading(folder), 0, 2)
    assert source.sequence_length == 3
    assert source.vocab_size == 50_000
    assert source.tokenizer_path == folder / "tokenizer.json"
    assert source.validation_batches == 0
