"""Shards: what is written is what is read, and every byte that is not as it was written is found and named."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import google_crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.data.prepared import reading, write_rows
from training.data.batches import BatchSource
from training.data.dataset import TokenDataset
from training.data.manifest import MANIFEST, digest_of
from training.data.packing import PACKINGS, PackingKind
from training.data.shards import DamagedShardError, Shard, dtype_for, write_shards
from training.errors import TrainingError


def read_all(folder: Path) -> None:
    """Read every row, as training does."""
    source = BatchSource(reading(folder), 0, 5)
    for step in range(4):
        source.batch(step)
    for number in range(source.validation_batches):
        source.validation(number)


def small(folder: Path) -> Path:
    """20 rows in shards of 7 and blocks of 3, and 4 for validation."""
    return write_rows(folder, 20, validation=4, shard_rows=7, block_rows=3)


def test_every_flipped_bit_is_found_and_its_file_named(tmp_path: Path) -> None:
    folder = small(tmp_path / "a")
    read_all(folder)
    files = sorted(folder.iterdir())
    assert {path.suffix for path in files} == {".json", ".tokens", ".segments"}
    for path in files:
        content = path.read_bytes()
        # Every byte of the tokens and of the small files; some of the longer JSON.
        for place in range(0, len(content), 1 if path.suffix == ".tokens" or len(content) < 60 else 5):
            damaged = bytearray(content)
            damaged[place] ^= 1 << place % 8
            path.write_bytes(damaged)
            with pytest.raises(TrainingError, match=re.escape(str(path))):
                read_all(folder)
        path.write_bytes(content)
    read_all(folder)


def test_a_damaged_block_is_named_with_what_was_expected_and_found(tmp_path: Path) -> None:
    folder = small(tmp_path / "a")
    path = folder / "train-00001.tokens"
    content = bytearray(path.read_bytes())
    expected = google_crc32c.value(bytes(content[24:48]))
    content[30] ^= 4
    found = google_crc32c.value(bytes(content[24:48]))
    path.write_bytes(content)
    message = (
        rf"train-00001\.tokens: block 1 \(bytes 24 to 47\): its crc32c is {found:08x}, its index says {expected:08x}: "
        r"the file is damaged\. Copy the folder again from where it was made, or prepare it again"
    )
    with pytest.raises(DamagedShardError, match=message):
        TokenDataset(folder).verify()


def test_a_manifest_that_says_the_same_in_other_bytes_is_not_as_it_was_written(tmp_path: Path) -> None:
    path = small(tmp_path / "a") / MANIFEST
    path.write_bytes(path.read_bytes().replace(b" ", b"\t", 1))
    with pytest.raises(TrainingError, match=r"MANIFEST\.json: is damaged: it is not laid out as it was written"):
        TokenDataset(path.parent)


def test_a_block_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = BatchSource(reading(small(tmp_path / "a")), 0, 5)
    checked = []
    plain = google_crc32c.value
    monkeypatch.setattr(google_crc32c, "value", lambda content: checked.append(len(content)) or plain(content))
    for step in range(40):
        source.batch(step)
    # Two shards of 7 rows in 3 blocks, one of 6 rows in 2; and the segments of each.
    assert len(checked) == 8 + 3


def test_sound_blocks_beside_a_damaged_one_are_read(tmp_path: Path) -> None:
    folder = small(tmp_path / "a")
    path = folder / "train-00001.tokens"
    content = bytearray(path.read_bytes())
    content[30] ^= 4
    path.write_bytes(content)
    source = BatchSource(reading(folder, shuffle=False), 0, 2)
    # Rows 10 to 12 are in the damaged block.
    assert [source.batch(step).rows.tolist() for step in range(5)] == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
    for _ in range(2):
        with pytest.raises(DamagedShardError, match="block 1 "):
            source.batch(5)


@pytest.mark.parametrize("change", [b"", b"\x00" * 8])
@pytest.mark.parametrize("suffix", ["tokens", "segments"])
def test_a_file_of_another_length_is_named(tmp_path: Path, suffix: str, change: bytes) -> None:
    folder = small(tmp_path / "a")
    path = folder / f"train-00002.{suffix}"
    content = path.read_bytes()
    path.write_bytes(content[:-1] if not change else content + change)
    with pytest.raises(DamagedShardError, match=rf"{path.name}: has \d+ bytes, its index says {len(content)}"):
        TokenDataset(folder).verify()


@pytest.mark.parametrize(
    "name", ["train-00000.tokens", "train-00001.segments", "validation-00000.json", "tokenizer.json"]
)
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = small(tmp_path / "a")
    (folder / name).unlink()
    with pytest.raises(TrainingError, match=rf"{re.escape(name)}: cannot be read: No such file"):
        TokenDataset(folder).verify()


def test_a_folder_without_its_manifest_is_not_complete(tmp_path: Path) -> None:
    folder = small(tmp_path / "a")
    (folder / MANIFEST).unlink()
    with pytest.raises(TrainingError, match=r"holds no prepared data \(MANIFEST\.json is missing\)"):
        TokenDataset(folder)


def test_a_manifest_of_another_version_is_told(tmp_path: Path) -> None:
    folder = small(tmp_path / "a")
    fields = json.loads((folder / MANIFEST).read_bytes())
    fields["schema"] = "spotrail.tokens/2"
    del fields["digest"]
    (folder / MANIFEST).write_text(json.dumps({**fields, "digest": digest_of(fields)}))
    with pytest.raises(
        TrainingError, match=r"its schema is 'spotrail\.tokens/2', and this version reads 'spotrail\.tokens/1'"
    ):
        TokenDataset(folder)


def test_files_of_another_folder_are_found(tmp_path: Path) -> None:
    folder, other = small(tmp_path / "a"), write_rows(tmp_path / "b", 21, shard_rows=7, block_rows=3)
    shutil.copy(other / "train-00002.json", folder / "train-00002.json")
    shutil.copy(other / "train-00002.tokens", folder / "train-00002.tokens")
    with pytest.raises(DamagedShardError, match=r"train-00002\.json: its sha256 is .*, the manifest says"):
        TokenDataset(folder).verify()


@pytest.mark.parametrize(("vocab_size", "dtype"), [(261, "<u2"), (65_536, "<u2"), (65_537, "<u4"), (2**20, "<u4")])
def test_tokens_take_two_bytes_where_that_is_enough(tmp_path: Path, vocab_size: int, dtype: str) -> None:
    assert dtype_for(vocab_size) == dtype
    largest = vocab_size - 1
    stream = np.array([largest, 0, 1, largest], dtype_for(vocab_size))
    packing = PACKINGS[PackingKind.CONCAT_SPLIT](np.array([4]), 3)
    (entry,) = write_shards(tmp_path, "train", stream, packing, width=3, padding=largest)
    # Little-endian on every machine.
    assert (tmp_path / "train-00000.tokens").read_bytes()[: stream.itemsize] == largest.to_bytes(
        stream.itemsize, "little"
    )
    assert Shard(tmp_path, entry).tokens(np.array([1, 0])).tolist() == [[largest] * 3, [largest, 0, 1]]


@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=25),
    width=st.integers(2, 12),
    kind=st.sampled_from(PackingKind),
    shard_rows=st.integers(1, 9),
    block_rows=st.integers(1, 4),
)
def test_documents_come_back_from_their_segments(
    tmp_path_factory: pytest.TempPathFactory,
    lengths: list[int],
    width: int,
    kind: PackingKind,
    shard_rows: int,
    block_rows: int,
) -> None:
    # Token by token another number, so that a piece says which part of which document it is.
    stream = np.arange(1, sum(lengths) + 1, dtype="<u2")
    packing = PACKINGS[kind](np.array(lengths), width)
    folder = tmp_path_factory.mktemp("shards")
    entries = write_shards(
        folder,
        "train",
        stream,
        packing,
        width=width,
        padding=0,
        shard_bytes=shard_rows * width * 2,
        block_bytes=block_rows * width * 2,
    )
    seen: list[int] = []
    for entry in entries:
        shard = Shard(folder, entry)
        rows = np.arange(entry.rows)[::-1].copy()
        tokens, segments = shard.tokens(rows), shard.segments(rows)
        assert tokens.shape == segments.shape == (entry.rows, width)
        for row in range(entry.rows):
            numbers = segments[row]
            filled = int((numbers > 0).sum())
            assert not numbers[filled:].any()
            assert not tokens[row][filled:].any()
            assert np.array_equal(np.unique(numbers[:filled]), np.arange(1, numbers.max() + 1))
            for number in range(1, numbers.max() + 1):
                piece = tokens[row][numbers == number].astype(np.int64)
                assert np.array_equal(np.diff(piece), np.ones(len(piece) - 1))
                ends = np.cumsum(lengths)
                assert np.searchsorted(ends, piece[0]) == np.searchsorted(ends, piece[-1])
            seen += tokens[row][:filled].tolist()
    assert sorted(seen) == stream.tolist()
