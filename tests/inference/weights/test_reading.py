"""The parallel reader on files that are slow, come in bits, fail, stand still, shrink or change."""

from __future__ import annotations

import errno
import itertools
import os
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from inference.errors import ServingError
from inference.weights import file_access
from inference.weights.arena import ALIGNMENT, aligned_empty
from inference.weights.buffers import all_finite
from inference.weights.file_access import ReadAt, batches, behind
from inference.weights.plan import Box, make_target
from inference.weights.reading import Reader
from inference.weights.reading_style import ReadingStyle
from inference.weights.safetensors import SafetensorsFile, read_safetensors
from inference.weights.sharded_index import Placed
from inference.weights.watchdog import Patience, Verdict, judge_error, judge_silence
from tests.inference.weights.files import entry, made, read_all, whole_targets

IMPATIENT = Patience(seconds=0.2, attempts=2)
STYLE = ReadingStyle(workers=3, read_bytes=500, stretch_bytes=1000, in_flight_bytes=1 << 20)
Arrays = Mapping[str, NDArray[np.float32]]
EIGHT: Arrays = {str(number): np.arange(250, dtype=np.float32) + number for number in range(8)}
"""Of 1000 bytes each, so that each is one stretch."""


def saved(folder: Path, arrays: Arrays) -> SafetensorsFile:
    header, end = {}, 0
    for name, array in arrays.items():
        header[name] = entry("F32", array.shape, end, end + array.nbytes)
        end += array.nbytes
    path = folder / "model.safetensors"
    path.write_bytes(made(header, b"".join(array.tobytes() for array in arrays.values())))
    return read_safetensors(path)


@pytest.fixture
def file(tmp_path: Path) -> SafetensorsFile:
    return saved(tmp_path, EIGHT)


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    for thread in threading.enumerate():
        if thread.name == "weights-reader":
            thread.join(timeout=5)
            assert not thread.is_alive()


def check(found: Mapping[str, NDArray[Any]], arrays: Arrays) -> None:
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].tobytes() == array.tobytes()
        assert not array.size or found[name].ctypes.data % ALIGNMENT == 0


def once(trouble: ReadAt, number: int = 0) -> ReadAt:
    """The first read, or the one behind so many, is `trouble`, and all others are real."""
    numbers = itertools.count()
    return lambda *read: (trouble if next(numbers) == number else os.preadv)(*read)


@given(
    workers=st.integers(1, 4),
    read_bytes=st.integers(1, 300),
    more=st.integers(0, 2000),
    in_flight=st.integers(1, 2000),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60)
def test_however_it_is_read_and_however_it_comes_the_bits_are_those_of_the_file(
    workers: int, read_bytes: int, more: int, in_flight: int, seed: int
) -> None:
    chance = np.random.default_rng(seed)
    arrays = {str(number): np.arange(size, dtype=np.float32) for number, size in enumerate(chance.integers(0, 90, 6))}
    style = ReadingStyle(
        workers=workers, read_bytes=read_bytes, stretch_bytes=read_bytes + more, in_flight_bytes=in_flight
    )
    lengths = chance.integers(1, read_bytes + 1, 64).tolist()

    def in_bits(descriptor: int, views: Sequence[memoryview], at: int) -> int:
        return os.preadv(descriptor, [views[0][: lengths[at % 64]]], at)

    with tempfile.TemporaryDirectory() as folder:
        check(read_all([saved(Path(folder), arrays)], style, read_at=in_bits), arrays)


def test_each_worker_has_a_descriptor_and_reads_forward_through_its_stretches(file: SafetensorsFile) -> None:
    reads: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    all_there = threading.Barrier(STYLE.workers)

    def noted(descriptor: int, views: Sequence[memoryview], at: int) -> int:
        if not reads[threading.get_ident()]:
            all_there.wait(timeout=10)
        count = os.preadv(descriptor, views, at)
        reads[threading.get_ident()].append((descriptor, at, count))
        return count

    check(read_all([file], STYLE, read_at=noted), EIGHT)
    descriptors = [{descriptor for descriptor, _, _ in each} for each in reads.values()]
    assert [len(each) for each in descriptors] == [1] * STYLE.workers
    assert len(set.union(*descriptors)) == STYLE.workers
    for each in reads.values():
        places = [(at - file.data_begin, count) for _, at, count in each]
        assert places == sorted(places)
        assert all(count == STYLE.read_bytes for _, count in places)
        assert [at % STYLE.stretch_bytes for at, _ in places] == [0, 500] * (len(places) // 2)


def test_many_small_tensors_are_one_read(tmp_path: Path) -> None:
    arrays = {f"{number:03}": np.full(1, number, np.float32) for number in range(100)}
    calls = []

    def noted(descriptor: int, views: Sequence[memoryview], at: int) -> int:
        calls.append(len(views))
        return os.preadv(descriptor, views, at)

    check(read_all([saved(tmp_path, arrays)], STYLE, read_at=noted), arrays)
    assert calls == [100]


def test_no_more_is_in_flight_than_may_be(file: SafetensorsFile) -> None:
    style = ReadingStyle(workers=4, read_bytes=500, stretch_bytes=1000, in_flight_bytes=2500)
    lock = threading.Lock()
    most = come = placed = 0

    def noted(descriptor: int, views: Sequence[memoryview], at: int) -> int:
        nonlocal come, most
        count = os.preadv(descriptor, views, at)
        with lock:
            come += count
            most = max(most, come - placed)
        return count

    def place(target: object, boxes: object) -> None:
        nonlocal placed
        time.sleep(0.005)
        with lock:
            placed += 1000

    Reader(whole_targets(file), style, read_at=noted).run(place, lambda _: None)
    assert placed == 8000
    assert most <= 2000


def test_a_tensor_larger_than_what_may_be_in_flight_is_read(tmp_path: Path) -> None:
    arrays = {str(number): np.arange(size, dtype=np.float32) for number, size in enumerate((10, 5000, 10, 3000))}
    style = ReadingStyle(workers=3, read_bytes=64, stretch_bytes=128, in_flight_bytes=100)
    check(read_all([saved(tmp_path, arrays)], style), arrays)


def test_a_file_that_was_cut_since_its_header_was_read_is_refused(file: SafetensorsFile) -> None:
    os.truncate(file.path, file.stamp.size - 1000)
    with pytest.raises(ServingError, match=rf"changed while it was read \(it had {file.stamp.size} bytes and has"):
        read_all([file], STYLE)


def test_a_file_that_shrinks_while_it_is_read_is_no_zeros(file: SafetensorsFile) -> None:
    def cut(descriptor: int, views: Sequence[memoryview], at: int) -> int:
        os.truncate(file.path, file.data_begin + 250)
        return os.preadv(descriptor, views, at)

    style = ReadingStyle(workers=1, read_bytes=500, stretch_bytes=1000, in_flight_bytes=1000)
    where = rf"{file.path}: ends at byte {file.data_begin + 250} while it is read, and had {file.stamp.size} bytes"
    with pytest.raises(ServingError, match=where):
        read_all([file], style, read_at=once(cut))


def test_a_file_that_is_written_to_while_it_is_read_is_refused(file: SafetensorsFile) -> None:
    def touched(descriptor: int, views: Sequence[memoryview], at: int) -> int:
        os.utime(file.path, ns=(1, 1))
        return os.preadv(descriptor, views, at)

    with pytest.raises(ServingError, match="changed while it was read"):
        read_all([file], ReadingStyle(workers=1, read_bytes=500, stretch_bytes=500, in_flight_bytes=1), read_at=touched)


def test_a_file_that_is_gone_is_said_to_be(file: SafetensorsFile) -> None:
    def gone(descriptor: int, views: Sequence[memoryview], at: int) -> int:
        file.path.unlink(missing_ok=True)
        return os.preadv(descriptor, views, at)

    with pytest.raises(ServingError, match=r"is gone while it is read|is not there"):
        read_all([file], STYLE, read_at=gone)


def fails(descriptor: int, views: Sequence[memoryview], at: int) -> int:
    raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("number", [0, 1, 5])
def test_a_read_that_fails_is_tried_again_from_the_last_byte_that_came(file: SafetensorsFile, number: int) -> None:
    found: dict[str, NDArray[Any]] = {}
    style = ReadingStyle(workers=1, read_bytes=500, stretch_bytes=1000, in_flight_bytes=1000)
    reader = Reader(whole_targets(file), style, read_at=once(fails, number))
    reader.run(lambda target, boxes: found.update({target.name: boxes[0]}), lambda _: None)
    check(found, EIGHT)
    assert (reader.retries, reader.bytes_read) == (1, 8000)


def test_a_read_that_fails_for_good_is_an_error_that_says_where(file: SafetensorsFile) -> None:
    where = rf"{file.path}: cannot be read at byte \d+: Input/output error, in 2 attempts"
    with pytest.raises(ServingError, match=where):
        read_all([file], STYLE, patience=IMPATIENT, read_at=fails)


def test_a_read_that_stands_still_is_taken_over_by_another_worker(file: SafetensorsFile) -> None:
    over = threading.Event()
    hung: list[threading.Thread] = []

    def hangs(descriptor: int, views: Sequence[memoryview], at: int) -> int:
        hung.append(threading.current_thread())
        over.wait(timeout=20)
        return os.preadv(descriptor, views, at)

    found: dict[str, NDArray[Any]] = {}
    reader = Reader(whole_targets(file), STYLE, patience=IMPATIENT, read_at=once(hangs))
    reader.run(lambda target, boxes: found.update({target.name: boxes[0]}), lambda _: None)
    check(found, EIGHT)
    over.set()
    hung[0].join(timeout=20)
    assert (reader.retries, reader.bytes_read) == (1, 8000)  # what came late is not counted


def test_a_disk_that_stands_still_is_an_error_that_says_where(file: SafetensorsFile) -> None:
    over = threading.Event()

    def hangs(descriptor: int, views: Sequence[memoryview], at: int) -> int:
        over.wait(timeout=20)
        return os.preadv(descriptor, views, at)

    where = rf"{file.path}: nothing has come from byte {file.data_begin} on for 0.2 s, in 2 attempts"
    try:
        with pytest.raises(ServingError, match=where):
            read_all(
                [file],
                ReadingStyle(workers=1, read_bytes=500, stretch_bytes=1000, in_flight_bytes=1000),
                patience=IMPATIENT,
                read_at=hangs,
            )
    finally:
        over.set()


def test_what_cannot_be_placed_ends_the_reading(file: SafetensorsFile) -> None:
    def no_room(target: object, boxes: object) -> None:
        raise MemoryError("the device is full")

    with pytest.raises(MemoryError, match="the device is full"):
        Reader(whole_targets(file), STYLE).run(no_room, lambda _: None)
    assert not [thread for thread in threading.enumerate() if thread.name == "weights-reader"]


def test_columns_are_cut_out_and_converted(tmp_path: Path) -> None:
    array = (np.arange(60, dtype=np.float32) / np.float32(7)).reshape(3, 4, 5)
    file = saved(tmp_path, {"a": array})
    placed = Placed(file=file, tensor=file.header.tensors["a"])
    boxes: dict[Hashable, Box] = {
        "x": ((0, 3), (0, 2), (1, 4)),
        "y": ((1, 2), (2, 4), (0, 5)),
        "z": ((0, 3), (0, 2), (1, 4)),
    }
    target = make_target("a", placed, (3, 4, 5), np.dtype(ml_dtypes.bfloat16), boxes)
    found: list[NDArray[Any]] = []
    Reader([target], STYLE).run(lambda _, parts: found.extend(parts), lambda _: None)
    assert target.boxes == {boxes["x"]: ("x", "z"), boxes["y"]: ("y",)}
    for part, box in zip(found, target.boxes, strict=True):
        expected = array[tuple(slice(*side) for side in box)].astype(ml_dtypes.bfloat16)
        np.testing.assert_array_equal(part, expected)


def test_reads_are_of_adjacent_pieces_and_step_over_short_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_access, "SHORTEST_GAP", 3)
    memory, scratch = memoryview(bytearray(100)), memoryview(bytearray(3))
    pieces = [(0, memory[:4]), (4, memory[4:10]), (13, memory[10:12]), (20, memory[12:22])]
    found = [(at, [len(view) for view in views]) for at, views in batches(pieces, 16, scratch)]
    assert found == [(0, [4, 6, 3, 2]), (20, [10])]
    assert [(at, [len(view) for view in views]) for at, views in batches(pieces, 6, scratch)] == [
        (0, [4, 2]), (6, [4]), (13, [2]), (20, [6]), (26, [4]),
    ]  # fmt: skip
    assert list(batches([], 6, scratch)) == []


def test_a_short_read_leaves_what_is_behind_it() -> None:
    views = [memoryview(b"abc"), memoryview(b"de"), memoryview(b"f")]
    assert [b"".join(behind(views, count)) for count in range(7)] == [b"abcdef"[count:] for count in range(7)]


@pytest.mark.parametrize(
    ("silent", "attempt", "verdict"),
    [
        (9.9, 1, Verdict.WAIT),
        (10, 1, Verdict.RETRY),
        (10, 2, Verdict.RETRY),
        (10, 3, Verdict.GIVE_UP),
        (0, 9, Verdict.WAIT),
    ],
)
def test_silence_is_borne_for_a_while(silent: float, attempt: int, verdict: Verdict) -> None:
    assert judge_silence(Patience(seconds=10, attempts=3), silent, attempt) is verdict


@pytest.mark.parametrize(
    ("number", "attempt", "verdict"),
    [
        (errno.EIO, 1, Verdict.RETRY),
        (errno.ESTALE, 2, Verdict.RETRY),
        (errno.EIO, 3, Verdict.GIVE_UP),
        (errno.EACCES, 1, Verdict.GIVE_UP),
        (errno.EISDIR, 1, Verdict.GIVE_UP),
    ],
)
def test_only_what_may_pass_is_tried_again(number: int, attempt: int, verdict: Verdict) -> None:
    assert judge_error(Patience(seconds=10, attempts=3), OSError(number, ""), attempt) is verdict


@pytest.mark.parametrize(("seconds", "attempts"), [(0, 1), (float("nan"), 1), (1, 0)])
def test_no_patience_is_no_patience(seconds: float, attempts: int) -> None:
    with pytest.raises(ValueError, match="a read takes some time, and one attempt at least"):
        Patience(seconds=seconds, attempts=attempts)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.bool_])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 5), (7, 11)])
def test_memory_is_aligned(dtype: Any, shape: tuple[int, ...]) -> None:
    array = aligned_empty(shape, np.dtype(dtype))
    assert (array.dtype, array.shape) == (np.dtype(dtype), shape)
    assert not array.size or array.ctypes.data % ALIGNMENT == 0


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float16, np.float64])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_number_that_is_not_finite_is_found(dtype: Any, bad: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inference.weights.buffers.BLOCK", 16)
    array = np.ones((7, 11), dtype)
    assert all_finite(array)
    assert all_finite(np.ones((0, 3), dtype))
    array[6, 10] = bad
    assert not all_finite(array)
