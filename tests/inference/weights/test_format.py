"""Files of every kind: those that break a rule are refused by it, at once and for no memory; the others are read."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from inference.errors import ServingError
from inference.weights.dtypes import DTYPES
from inference.weights.header import LARGEST_HEADER
from inference.weights.reading_style import ReadingStyle
from inference.weights.safetensors import read_safetensors
from tests.inference.weights.files import entry, made, read_all

FOUR = b"\0\0\x80?"
"""1.0 in fp32."""
ONE = entry("F32", [1], 0, 4)


def fp32(*numbers: float) -> NDArray[np.float32]:
    return np.array(numbers, np.float32)


def offsets(begin: Any, end: Any) -> dict[str, Any]:
    return {"dtype": "F32", "shape": [1], "data_offsets": [begin, end]}


DAMAGED = {
    "empty": (b"", "is empty: a download that has not begun"),
    "seven bytes": (b"\2\0\0\0\0\0\0", "has 7 bytes, and a safetensors file begins with 8"),
    "no header": (bytes(8), "its header is of 0 bytes, which is no JSON object"),
    "huge header": (b"\xff" * 8 + b"{}", "its header would be of 18446744073709551615 bytes, over 100000000 bytes"),
    "header over the limit": ((LARGEST_HEADER + 1).to_bytes(8, "little") + b"{}", "of 100000001 bytes, over 100000000"),
    "header past the end": ((1000).to_bytes(8, "little") + b"{}", "of 1000 bytes, and 2 are there: it is truncated"),
    "pointer of LFS": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n",
        "Git LFS.*git lfs pull",
    ),
    "page of HTML": (b"<!DOCTYPE html><html><head><title>404</title></head></html>", "looks like a page of HTML"),
    "error of a bucket": (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "looks like XML"),
    "torch": (b"PK\3\4" + bytes(60), "looks like a zip file, as torch.save writes it"),
    "gguf": (b"GGUF\3\0\0\0" + bytes(60), "looks like a GGUF file"),
    "a list": (made([]), "its header is a list, and must be an object"),
    "no JSON": (made(b'{"a":', FOUR), "its header: no JSON: Expecting value"),
    "no UTF-8": (made(b'{"a\xff":' + made(ONE)[8:] + b"}", FOUR), "its header: no UTF-8 at byte 3"),
    "byte order mark": (made(b"\xef\xbb\xbf{}"), "its header: no JSON: Unexpected UTF-8 BOM"),
    "padded with zeros": (made(b"{}\0\0"), "its header: no JSON: Extra data"),
    "half a surrogate pair": (made({"\ud800": ONE}, FOUR), r"'\\ud800' is no text: half a surrogate pair"),
    "nested": (made(b'{"a":' * 10**5), "nested deeper than any file of a model is"),
    "name twice": (
        made(b'{"a":%s,"a":%s}' % (made(ONE)[8:], made(ONE)[8:]), FOUR),
        "'a' stands twice in one object; which one is meant cannot be known",
    ),
    "field twice": (
        made(b'{"a":{"dtype":"U8","dtype":"F32","shape":[1],"data_offsets":[0,4]}}', FOUR),
        "'dtype' stands",
    ),
    "unknown dtype": (made({"a": entry("Q4_K", [1], 0, 4)}, FOUR), "the dtype of tensor 'a' is 'Q4_K', which"),
    "misspelt dtype": (made({"a": entry("BF-16", [2], 0, 4)}, FOUR), "is 'BF-16', which.*did its writer mean BF16"),
    "dtype no text": (made({"a": ONE | {"dtype": 3}}, FOUR), "the dtype of tensor 'a' is the number 3"),
    "no shape": (made({"a": {"dtype": "F32", "data_offsets": [0, 4]}}, FOUR), "tensor 'a' has no shape"),
    "one field more": (made({"a": ONE | {"strides": [1]}}, FOUR), "tensor 'a' has a field 'strides'"),
    "no entry": (made({"a": None}), "tensor 'a' is null, and must be an object"),
    "shape of truth": (made({"a": ONE | {"shape": [True]}}, FOUR), "the shape of tensor 'a' has a truth value in it"),
    "shape of floats": (made({"a": ONE | {"shape": [1.0]}}, FOUR), "1.0 is no size and no offset"),
    "shape of text": (made({"a": ONE | {"shape": "1"}}, FOUR), "the shape of tensor 'a' is text"),
    "negative shape": (made({"a": ONE | {"shape": [-1, -1]}}, FOUR), "-1 is no size and no offset"),
    "minus zero": (made(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[-0,4]}}', FOUR), "-0 is no size"),
    "NaN": (made({"a": offsets(0, float("nan"))}, FOUR), "NaN is no number of JSON"),
    "negative offset": (made({"a": offsets(-4, 0)}, FOUR), "-4 is no size and no offset"),
    "offset over 64 bits": (made({"a": offsets(0, 2**64)}, FOUR), "18446744073709551616 is no size and no offset"),
    "a number without end": (made(b'{"a":%s}' % (b"9" * 10**5)), "9999.* is no size and no offset"),
    "three offsets": (made({"a": ONE | {"data_offsets": [0, 4, 8]}}, FOUR), r"are \[0, 4, 8\], and must be a begin"),
    "end before begin": (
        made({"a": entry("F32", [0], 8, 0)}, bytes(8)),
        r"are \[8, 0\], and must be a begin and an end",
    ),
    "size of another shape": (
        made({"a": entry("F32", [3], 0, 8)}, bytes(8)),
        r"of F32\[3\] takes 12 bytes, and its offsets \[0, 8\] leave it 8",
    ),
    "product that wraps to 0": (made({"a": entry("F32", [2**62, 4], 0, 0)}), "more bits than 64 bits can count"),
    "half a byte": (made({"a": entry("F4", [3], 0, 1)}, b"\0"), "takes 12 bits, which are no whole bytes"),
    "overlap": (
        made({"a": entry("F32", [2], 0, 8), "b": entry("F32", [2], 4, 12)}, bytes(12)),
        "tensor 'b' begins at byte 4 of the data, inside tensor 'a': they overlap",
    ),
    "alias": (made({"a": entry("F32", [2], 0, 8), "b": entry("F32", [2], 0, 8)}, bytes(8)), "inside tensor 'a'"),
    "hole": (
        made({"a": ONE, "b": entry("F32", [1], 8, 12)}, bytes(12)),
        "4 bytes of the data, before tensor 'b', belong to no tensor",
    ),
    "hole at the beginning": (made({"a": entry("F32", [1], 4, 8)}, bytes(8)), "4 bytes of the data, before tensor 'a'"),
    "bytes at the end": (made({"a": ONE}, bytes(12)), "8 bytes at its end, behind tensor 'a', belong to no tensor"),
    "bytes and no tensor": (made({}, b"\0"), "1 bytes at its end, behind the header, belong to no tensor"),
    "truncated": (
        made({"a": ONE, "b": entry("F32", [4], 4, 20)}, bytes(12)),
        r"by its header it is of 136 bytes, and it has 128 \(8 are missing, from inside tensor 'b' on\)",
    ),
    "metadata of numbers": (made({"__metadata__": {"step": 7}, "a": ONE}, FOUR), "'step' is the number 7, and must be"),
    "metadata a list": (made({"__metadata__": []}), "__metadata__ is a list, and must be an object of text"),
}


@pytest.mark.parametrize(("content", "reason"), DAMAGED.values(), ids=DAMAGED)
def test_a_file_that_breaks_a_rule_is_refused_by_it(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(ServingError, match=reason) as caught:
            read_safetensors(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value)) < 1500
    assert peak < 4 * len(content) + (1 << 20)


RIGHT = {
    "two tensors": (
        made({"a": entry("F32", [2], 0, 8), "b": entry("F32", [1], 8, 12)}, fp32(1, 2, 3).tobytes()),
        {"a": fp32(1, 2), "b": fp32(3)},
    ),
    "in another order": (
        made({"b": entry("F32", [1], 8, 12), "a": entry("F32", [2], 0, 8)}, fp32(1, 2, 3).tobytes()),
        {"a": fp32(1, 2), "b": fp32(3)},
    ),
    "bf16": (made({"a": entry("BF16", [2], 0, 4)}, b"\x80\x3f\0\x40"), {"a": np.array([1, 2], ml_dtypes.bfloat16)}),
    "fp8": (made({"a": entry("F8_E4M3", [2], 0, 2)}, b"\x38\x40"), {"a": np.array([1, 2], ml_dtypes.float8_e4m3fn)}),
    "a scale": (
        made({"a": entry("F8_E8M0", [2], 0, 2)}, b"\x7f\x80"),
        {"a": np.array([1, 2], ml_dtypes.float8_e8m0fnu)},
    ),
    "no tensor": (made({}), {}),
    "metadata": (made({"__metadata__": {"format": "pt"}, "a": ONE}, FOUR), {"a": fp32(1)}),
    "padded": (made({"a": ONE}, FOUR, padding="   "), {"a": fp32(1)}),
    "a blank first": (made(b' {"a":%s}' % made(ONE)[8:], FOUR), {"a": fp32(1)}),
    "a scalar and an empty one": (
        made({"s": entry("F32", [], 0, 4), "z": entry("F32", [0, 4], 4, 4)}, FOUR),
        {"s": np.float32(1), "z": np.zeros((0, 4), np.float32)},
    ),
    "an empty one between": (
        made({"a": ONE, "z": entry("F32", [0], 4, 4), "b": entry("U8", [1], 4, 5)}, FOUR + b"\7"),
        {"a": fp32(1), "z": np.zeros(0, np.float32), "b": np.array([7], np.uint8)},
    ),
    "what is no path": (made({"../../x": ONE}, FOUR), {"../../x": fp32(1)}),
    "written in two ways": (made(b'{"\\u0061":%s}' % made(ONE)[8:], FOUR), {"a": fp32(1)}),
}


@pytest.mark.parametrize(("content", "expected"), RIGHT.values(), ids=RIGHT)
def test_a_right_file_is_read_bit_for_bit(
    content: bytes, expected: dict[str, Any], tmp_path: Path, small_style: ReadingStyle
) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    found = read_all([read_safetensors(path)], small_style)
    assert found.keys() == expected.keys()
    for name, array in found.items():
        assert (array.dtype, array.shape) == (expected[name].dtype, expected[name].shape)
        assert array.tobytes() == expected[name].tobytes()
        assert not array.flags.writeable


def test_numbers_that_are_none_are_read_as_they_are(tmp_path: Path, small_style: ReadingStyle) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(made({"a": ONE}, b"\1\0\xc0\x7f"))
    assert read_all([read_safetensors(path)], small_style)["a"].tobytes() == b"\1\0\xc0\x7f"


@pytest.mark.parametrize(
    "dtype", [each for each in DTYPES.values() if each.numpy is not None], ids=lambda each: each.name
)
def test_every_dtype_of_whole_bytes_is_read(dtype: Any, tmp_path: Path, small_style: ReadingStyle) -> None:
    data = bytes(range(2 * dtype.bits // 8)) if dtype.name != "BOOL" else b"\0\1"
    path = tmp_path / "model.safetensors"
    path.write_bytes(made({"a": entry(dtype.name, [2], 0, len(data))}, data))
    found = read_all([read_safetensors(path)], small_style)["a"]
    assert found.dtype == dtype.numpy
    assert found.tobytes() == data


def test_metadata_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(made({"__metadata__": {"format": "pt"}}))
    assert read_safetensors(path).header.metadata == {"format": "pt"}


def test_what_is_no_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(ServingError, match="model: is no file; name one, or a link to one"):
        read_safetensors(_made_folder(tmp_path / "model"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ServingError, match="pipe: is no file"):  # and no waiting for somebody to write
        read_safetensors(tmp_path / "pipe")
    with pytest.raises(ServingError, match=r"gone.safetensors: is not there$"):
        read_safetensors(tmp_path / "gone.safetensors")
    (tmp_path / "gone.safetensors.incomplete").touch()
    with pytest.raises(
        ServingError, match=r"not there; gone.safetensors.incomplete is: a download that was broken off"
    ):
        read_safetensors(tmp_path / "gone.safetensors")
    (tmp_path / "link").symlink_to(tmp_path / "blob")
    with pytest.raises(ServingError, match=r"link: is a link to .*blob, and nothing is there: fetch the model again"):
        read_safetensors(tmp_path / "link")


def _made_folder(path: Path) -> Path:
    path.mkdir()
    return path
