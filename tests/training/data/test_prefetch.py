"""Batches read ahead: in order, so many and no more, and as if nothing were read ahead."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tests.training.data.prepared import reading, write_rows
from training.data.batches import Batch, BatchSource
from training.data.prefetch import prefetch
from training.errors import TrainingError


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "prefetch"]


@pytest.mark.parametrize("depth", [0, 1, 8])
def test_batches_come_in_order(tmp_path: Path, depth: int) -> None:
    source = BatchSource(reading(write_rows(tmp_path / "a", 40)), 0, 4)
    found = [batch.rows.tolist() for batch in prefetch(source, 3, 20, depth)]
    assert found == [source.batch(step).rows.tolist() for step in range(3, 20)]
    assert not readers()


@pytest.mark.parametrize("depth", [0, 8])
@pytest.mark.parametrize("taken_again", [0, 1])
def test_what_was_read_ahead_and_not_used_is_not_seen(tmp_path: Path, depth: int, taken_again: int) -> None:
    """Run 4, save, resume, run 1 (or none), save, resume, and so on to the end: every row once, in order."""
    folder = write_rows(tmp_path / "a", 100)
    seen: list[int] = []
    step = 0
    takes = [4, taken_again]
    while step < 20:
        # A process of its own each time: all that is carried over is the number of the next step.
        batches = prefetch(BatchSource(reading(folder, shuffle=False), 0, 5), step, 20, depth)
        for _ in range(min(takes[0], 20 - step)):
            seen += next(batches).rows.tolist()
            step += 1
        batches.close()
        takes = [takes[1], 1]
    assert seen == list(range(100))
    assert not readers()


def test_no_more_than_so_many_are_read_ahead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = BatchSource(reading(write_rows(tmp_path / "a", 40)), 0, 4)
    read: list[int] = []
    plain = BatchSource.batch

    def noted(self: BatchSource, step: int, host: int = 0, hosts: int = 1) -> Batch:
        read.append(step)
        return plain(self, step, host, hosts)

    monkeypatch.setattr(BatchSource, "batch", noted)
    batches = prefetch(source, 0, 100, 3)
    for used in range(1, 6):
        next(batches)
        deadline = time.monotonic() + 10
        while len(read) < used + 3 and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(0.01)
        assert read == list(range(used + 3))
    batches.close()
    assert not readers()


def test_each_host_gets_its_part(tmp_path: Path) -> None:
    source = BatchSource(reading(write_rows(tmp_path / "a", 40)), 0, 4)
    parts = [list(prefetch(source, 0, 5, 2, host=host, hosts=2)) for host in range(2)]
    for step in range(5):
        assert [*parts[0][step].rows, *parts[1][step].rows] == source.batch(step).rows.tolist()


def test_what_goes_wrong_is_raised_when_its_turn_comes(tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "a", 40, block_rows=4)
    tokens = folder / "train-00000.tokens"
    content = bytearray(tokens.read_bytes())
    content[20 * 8] ^= 1
    tokens.write_bytes(content)
    batches = prefetch(BatchSource(reading(folder, shuffle=False), 0, 4), 0, 10, 8)
    assert [next(batches).rows[0] for _ in range(5)] == [0, 4, 8, 12, 16]
    with pytest.raises(TrainingError, match="block 5 "):
        next(batches)
    assert not readers()
