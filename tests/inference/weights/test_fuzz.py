"""Files that chance has changed: each is refused, or read as the library of the format reads it."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import safetensors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inference.errors import ServingError
from inference.weights.dtypes import DTYPES
from inference.weights.reading_style import ReadingStyle
from inference.weights.safetensors import read_safetensors
from tests.inference.weights.files import entry, made, read_all

STYLE = ReadingStyle(workers=2, read_bytes=7, stretch_bytes=30, in_flight_bytes=100)
TENSORS = {
    "__metadata__": {"format": "pt"},
    "a": entry("F32", [2, 3], 0, 24),
    "b": entry("BF16", [5], 24, 34),
    "z": entry("U8", [0], 34, 34),
    "c": entry("I64", [], 34, 42),
}
DATA = bytes(range(42))
SMALL = settings(max_examples=250, suppress_health_check=[HealthCheck.too_slow])

values: st.SearchStrategy[Any] = st.one_of(
    st.integers(-2, 50),
    st.sampled_from(
        [2**32, 2**62, 2**63, 2**64 - 1, 2**64, -(2**63), 1.0, True, None, "", "F32", "F4", "F6_E2M3", "BOOL"]
    ),
    st.lists(st.integers(0, 5), max_size=4),
    st.builds(dict),
)


@st.composite
def right_headers(draw: st.DrawFn) -> tuple[dict[str, Any], int]:
    """A header as it should be, its names in any order, and the bytes of its tensors."""
    found, end = [], 0
    for name in draw(st.lists(st.sampled_from(["a", "b", "c.weight", "\u00e9", "", "../x"]), unique=True)):
        dtype, shape = DTYPES[draw(st.sampled_from(sorted(DTYPES)))], draw(st.lists(st.integers(0, 4), max_size=3))
        size = -(-math.prod(shape) * dtype.bits // 8)
        found.append((name, entry(dtype.name, shape, end, end + size)))
        end += size
    if draw(st.booleans()):
        found.append(("__metadata__", draw(st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2))))
    return dict(draw(st.permutations(found))), end


@given(st.data())
@SMALL
def test_a_header_that_was_changed(data: st.DataObject) -> None:
    header, size = data.draw(right_headers())
    for _ in range(data.draw(st.sampled_from([0, 0, 1, 1, 2, 3])) if header else 0):
        change(header, data.draw)
    size = max(0, size + data.draw(st.sampled_from([0, 0, 0, 0, -1, 1, 4])))
    text = json.dumps(header, ensure_ascii=data.draw(st.booleans())).encode() + b" " * data.draw(st.integers(0, 3))
    check(made(text, bytes(each % 2 for each in range(size))))


def change(header: dict[str, Any], draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
    """One value, name or field of it."""
    name = draw(st.sampled_from(sorted(header)))
    field = draw(st.sampled_from(["dtype", "shape", "data_offsets", "other"]))
    match draw(st.integers(0, 3)):
        case 0:
            header[name] = draw(values)
        case 1:
            header[draw(st.sampled_from(["a", "new", "__metadata__"]))] = header.pop(name)
        case _ if not isinstance(header[name], dict):
            pass
        case 2:
            header[name][field] = draw(values)
        case _ if isinstance(offsets := header[name].get("data_offsets"), list) and len(offsets) == 2:
            offsets[draw(st.integers(0, 1))] += draw(st.integers(-2, 2))
        case _:
            header[name].pop(field, None)


@given(st.data())
@SMALL
def test_a_file_that_was_changed(data: st.DataObject) -> None:
    content = bytearray(made(TENSORS, DATA))
    head = len(content) - len(DATA)
    changes: list[Callable[[int], Any]] = [
        lambda at: content.__setitem__(at, data.draw(st.integers(0, 255))),
        lambda at: content.insert(at, data.draw(st.sampled_from(b'{}[]",:0123456789eE.- \t\n\0\xff\\u'))),
        lambda at: content.pop(at),
        lambda at: content.__delitem__(slice(at, None)),
    ]
    for _ in range(data.draw(st.integers(1, 2))):
        if content:
            last = len(content) - 1
            at = data.draw(st.one_of(st.integers(0, last), st.integers(min(head, last), last)))
            data.draw(st.sampled_from([changes[0], *changes]))(at)
    check(bytes(content))


@given(st.binary(max_size=80), st.booleans())
@SMALL
def test_a_file_of_chance(content: bytes, counted: bool) -> None:
    check(made(content) if counted else content)


def check(content: bytes) -> None:
    """Refused by name, or the tensors that the library finds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        path.write_bytes(content)
        try:
            file = read_safetensors(path)
        except ServingError:
            return
        theirs = dict(safetensors.deserialize(content))  # type: ignore[no-untyped-call]
        ours = file.header.tensors
        assert {name: (each.dtype.name, list(each.shape)) for name, each in ours.items()} == {
            name: (found["dtype"], found["shape"]) for name, found in theirs.items()
        }
        if all(each.dtype.numpy is not None for each in ours.values()):
            read = read_all([file], STYLE)
            assert {name: array.tobytes() for name, array in read.items()} == {
                name: bytes(found["data"]) for name, found in theirs.items()
            }
