"""Which bytes are read for which part of an array, held against numpy."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.weights import plan
from inference.weights.plan import Box, Range, Target, box_ranges, coalesce, make_stretches, make_target
from inference.weights.reading_style import ReadingStyle
from inference.weights.safetensors import SafetensorsFile, read_safetensors
from inference.weights.sharded_index import Placed
from tests.inference.weights.files import entry, made, read_all, whole_targets


@pytest.fixture
def no_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "SHORTEST_GAP", 0)


def saved(path: Path, *arrays: np.ndarray) -> SafetensorsFile:
    """A file of fp32 arrays, which are named by their number."""
    header, data = {}, b""
    for number, array in enumerate(arrays):
        header[str(number)] = entry("F32", array.shape, len(data), len(data) + array.nbytes)
        data += array.tobytes()
    path.write_bytes(made(header, data))
    return read_safetensors(path)


def target_of(file: SafetensorsFile, boxes: Mapping[Hashable, Box], dtype: type = np.float32) -> Target:
    tensor = file.header.tensors["0"]
    placed = Placed(file=file, tensor=tensor)
    return make_target("0", placed, tensor.shape, np.dtype(dtype), boxes)


@pytest.mark.usefixtures("no_gaps")
@pytest.mark.parametrize(
    ("box", "expected"),
    [
        (((0, 4), (0, 6)), [(0, 48)]),
        (((1, 3), (0, 6)), [(12, 36)]),
        (((1, 2), (2, 4)), [(16, 20)]),
        (((1, 3), (2, 4)), [(16, 20), (28, 32)]),
        (((0, 4), (0, 3)), [(0, 6), (12, 18), (24, 30), (36, 42)]),
        (((2, 2), (0, 6)), []),
    ],
)
def test_the_bytes_of_a_part_are_its_rows(box: Box, expected: list[tuple[int, int]]) -> None:
    assert [(each.begin, each.end) for each in box_ranges((4, 6), 2, box)] == expected


def test_short_gaps_are_read_and_long_ones_are_not() -> None:
    gap = plan.SHORTEST_GAP
    assert box_ranges((3, gap + 2), 1, ((0, 3), (0, 2))) == (Range(0, 3 * (gap + 2)),)
    assert len(box_ranges((3, gap + 3), 1, ((0, 3), (0, 2)))) == 3
    assert box_ranges((1, gap + 9), 1, ((0, 1), (4, 6))) == (Range(4, 6),)  # one row: there is no gap


@given(st.data())
def test_the_bytes_have_all_of_the_part_and_not_much_more(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), max_size=4))
    box = tuple(tuple(sorted((data.draw(st.integers(0, n)), data.draw(st.integers(0, n))))) for n in shape)
    gap = data.draw(st.integers(0, 8))
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    wanted = set(numbers[tuple(slice(*side) for side in box)].ravel().tolist())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "SHORTEST_GAP", gap)
        ranges = box_ranges(shape, 1, box)  # type: ignore[arg-type]
    read = [place for each in ranges for place in range(each.begin, each.end)]
    assert read == sorted(set(read))
    assert wanted <= set(read)
    if gap == 0:
        assert set(read) == wanted
    if not wanted:
        assert not read


def test_ranges_are_joined_over_gaps_up_to_a_length() -> None:
    ranges = [Range(30, 40), Range(0, 10), Range(12, 20), Range(5, 8)]
    assert coalesce(ranges, 0) == (Range(0, 10), Range(12, 20), Range(30, 40))
    assert coalesce(ranges, 2) == (Range(0, 20), Range(30, 40))
    assert coalesce(ranges, 10) == (Range(0, 40),)
    assert coalesce([], 5) == ()


def test_rows_go_straight_to_their_devices_and_columns_are_staged(tmp_path: Path) -> None:
    file = saved(tmp_path / "f", np.zeros((4, 6), np.float32))
    rows = target_of(file, {"x": ((0, 2), (0, 6)), "y": ((2, 4), (0, 6)), "z": ((0, 2), (0, 6))})
    assert not rows.staged
    assert rows.boxes == {((0, 2), (0, 6)): ("x", "z"), ((2, 4), (0, 6)): ("y",)}  # read once, for both
    assert rows.size == 96
    assert target_of(file, {"x": ((0, 4), (0, 3))}).staged
    assert target_of(file, {"x": ((0, 4), (0, 6))}, ml_dtypes.bfloat16).staged


def test_parts_of_a_staged_array_that_are_near_each_other_are_one_run(tmp_path: Path) -> None:
    file = saved(tmp_path / "f", np.zeros((1, 100), np.float32))
    boxes: dict[Hashable, Box] = {"x": ((0, 1), (0, 4)), "y": ((0, 1), (8, 12))}
    assert target_of(file, boxes, ml_dtypes.bfloat16).ranges == (Range(0, 48),)
    assert target_of(file, boxes).ranges == (Range(0, 16), Range(32, 48))  # no memory is there for what is between


def test_a_host_reads_what_its_devices_need_and_no_more(tmp_path: Path) -> None:
    rows, row = 8, 1 << 20
    file = saved(tmp_path / "f", np.zeros((rows, row // 4), np.float32))
    for host in range(4):
        devices: dict[Hashable, Box] = {
            str(chip): ((2 * host + chip, 2 * host + chip + 1), (0, row // 4)) for chip in (0, 1)
        }
        target = target_of(file, devices)
        assert target.ranges == (Range(2 * host * row, 2 * (host + 1) * row),)
        columns = target_of(file, {"0": ((0, rows), (host * row // 16, (host + 1) * row // 16))})
        assert columns.size == rows * row // 4


def test_stretches_go_through_each_file_once_in_order(tmp_path: Path) -> None:
    files = [saved(tmp_path / name, np.zeros(30, np.float32), np.zeros(7, np.float32)) for name in "ba"]
    targets = [target for file in files for target in whole_targets(file)]
    style = ReadingStyle(workers=1, read_bytes=10, stretch_bytes=50, in_flight_bytes=1)
    stretches = make_stretches(targets, style)
    assert [(each.file.path.name, each.size) for each in stretches] == [
        ("a", 50), ("a", 50), ("a", 48), ("b", 50), ("b", 50), ("b", 48),
    ]  # fmt: skip
    pieces = [piece for each in stretches[:3] for piece in each.pieces]
    assert pieces[0].begin == files[1].data_begin
    assert all(one.end == other.begin for one, other in itertools.pairwise(pieces))
    assert [(each.target, each.offset, each.end - each.begin) for each in pieces] == [
        (2, 0, 50), (2, 50, 50), (2, 100, 20), (3, 0, 28),
    ]  # fmt: skip


def test_a_number_of_half_a_byte_is_named_and_not_read(tmp_path: Path, small_style: ReadingStyle) -> None:
    (tmp_path / "f").write_bytes(made({"0": entry("F4", [4], 0, 2), "1": entry("U8", [1], 2, 3)}, b"\1\2\3"))
    file = read_safetensors(tmp_path / "f")
    with pytest.raises(ValueError, match="is stored as F4, of less than a byte a number, and is not read"):
        make_target("0", Placed(file=file, tensor=file.header.tensors["0"]), (4,), np.dtype(np.float32), {})
    placed = Placed(file=file, tensor=file.header.tensors["1"])
    other = make_target("1", placed, (1,), np.dtype(np.uint8), {"device": ((0, 1),)})
    assert other.ranges == (Range(0, 1),)  # a file may have such a tensor beside others


def test_a_whole_file_is_read_in_one_run(tmp_path: Path, small_style: ReadingStyle) -> None:
    arrays = [np.arange(number, dtype=np.float32) for number in (3, 0, 50, 1)]
    file = saved(tmp_path / "f", *arrays)
    found = read_all([file], small_style)
    for number, array in enumerate(arrays):
        np.testing.assert_array_equal(found[str(number)], array)
