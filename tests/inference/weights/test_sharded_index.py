"""Weights shared out over files: index and files are of one mind, or the model is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inference.errors import ServingError
from inference.weights.reading_style import ReadingStyle
from inference.weights.sharded_index import INDEX, parse_index, read_weight_files
from tests.inference.weights.files import entry, made, read_all, write_index

ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
MAP = {"a": ONE, "b": TWO}


def fp32(*numbers: float) -> bytes:
    return np.array(numbers, np.float32).tobytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Tensors a = [1, 2] and b = [3] in a file each."""
    path = tmp_path / "model"
    path.mkdir()
    (path / ONE).write_bytes(made({"a": entry("F32", [2], 0, 8)}, fp32(1, 2)))
    (path / TWO).write_bytes(made({"b": entry("F32", [1], 0, 4)}, fp32(3)))
    write_index(path, MAP, total_size=12)
    return path


def test_two_files_are_one_model(folder: Path, small_style: ReadingStyle) -> None:
    found = read_weight_files(folder)
    assert found.warnings == ()
    assert {name: placed.file.path.name for name, placed in found.tensors.items()} == MAP
    read = read_all(found.files, small_style)
    assert {name: array.tolist() for name, array in read.items()} == {"a": [1, 2], "b": [3]}


def test_links_into_a_cache_are_followed(folder: Path, tmp_path: Path, small_style: ReadingStyle) -> None:
    snapshot = tmp_path / "cache" / "snapshots" / "0123"
    snapshot.mkdir(parents=True)
    for name in (ONE, TWO, INDEX):
        (snapshot / name).symlink_to(Path("../../../model") / name)
    found = read_weight_files(snapshot)
    assert found.files[0].stamp.size == (folder / ONE).stat().st_size  # of what the link points to
    assert read_all(found.files, small_style)["b"].tolist() == [3]


def absolute(folder: Path) -> None:
    write_index(folder, MAP | {"b": f"/srv/{TWO}"})


def parent(folder: Path) -> None:
    write_index(folder, MAP | {"b": f"../ok/{TWO}"})


def twice(folder: Path) -> None:
    both = {"a": entry("F32", [2], 0, 8), "b": entry("F32", [1], 8, 12)}
    (folder / ONE).write_bytes(made(both, fp32(1, 2, 9)))


def missing(folder: Path) -> None:
    (folder / TWO).unlink()


def part(folder: Path) -> None:
    (folder / TWO).rename(folder / f"{TWO}.incomplete")


def unknown(folder: Path) -> None:
    write_index(folder, MAP | {"bb": TWO})


def truncated(folder: Path) -> None:
    (folder / TWO).write_bytes((folder / TWO).read_bytes()[:-2])


def swapped(folder: Path) -> None:
    write_index(folder, {"a": TWO, "b": ONE})


def no_map(folder: Path) -> None:
    (folder / INDEX).write_text('{"metadata": {}}')


def no_json(folder: Path) -> None:
    (folder / INDEX).write_text('{"weight_map": ')


def doubled(folder: Path) -> None:
    (folder / INDEX).write_text(json.dumps({"weight_map": MAP})[:-2] + f', "a": "{TWO}"}}}}')


def pickle(folder: Path) -> None:
    write_index(folder, {"a": "pytorch_model.bin"})


def beside_a_single(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(made({}))


def broken_link(folder: Path) -> None:
    (folder / TWO).unlink()
    (folder / TWO).symlink_to("../blobs/0123")


SPOILT = [
    (absolute, rf"index.json: the file of 'b' is '/srv/{TWO}'; it must be the name of a .safetensors file in the same"),
    (parent, rf"index.json: the file of 'b' is '../ok/{TWO}'; it must be the name"),
    (pickle, r"index.json: the file of 'a' is 'pytorch_model.bin'; it must be the name of a .safetensors file"),
    (twice, rf"index.json: the index and the files do not agree.*\n  'b' is in {ONE} and in {TWO}"),
    (missing, rf"{TWO}: is not there$"),
    (part, rf"{TWO}: is not there; {TWO}.incomplete is: a download that was broken off. Fetch the model again"),
    (broken_link, rf"{TWO}: is a link to ../blobs/0123, and nothing is there"),
    (unknown, rf"\n  'bb' is not in {TWO}, which the index says; no file has it$"),
    (truncated, rf"{TWO}: it is truncated: by its header it is of 66 bytes, and it has 64"),
    (swapped, rf"\n  'a' is not in {TWO}, which the index says; {ONE} has it\n  'b' is not in {ONE}, .*; {TWO} has it"),
    (no_map, r"index.json: has no weight_map"),
    (no_json, r"index.json: is no index of weights: no JSON: Expecting value.*Fetch the model again"),
    (doubled, r"index.json: is no index of weights: 'a' stands twice in one object"),
    (beside_a_single, r"model: has model.safetensors and model.safetensors.index.json, which names other files"),
]


@pytest.mark.parametrize(("spoil", "reason"), SPOILT, ids=lambda each: getattr(each, "__name__", ""))
def test_what_does_not_agree_is_refused(spoil: Any, reason: str, folder: Path) -> None:
    spoil(folder)
    with pytest.raises(ServingError, match=reason) as caught:
        read_weight_files(folder)
    assert str(folder) in str(caught.value)


def test_a_tensor_that_is_not_listed_is_ignored_with_a_warning(folder: Path, small_style: ReadingStyle) -> None:
    more = {"b": entry("F32", [1], 0, 4), "c": entry("F32", [1], 4, 8)}
    (folder / TWO).write_bytes(made(more, fp32(3, 4)))
    write_index(folder, MAP, total_size=16)  # with c or without: both are written
    found = read_weight_files(folder)
    assert found.warnings == (f"{folder / INDEX}: not listed, and ignored: 'c' of {TWO}",)
    assert set(found.tensors) == {"a", "b"}
    write_index(folder, MAP, total_size=12)
    assert len(read_weight_files(folder).warnings) == 1


def test_another_total_size_is_a_warning(folder: Path) -> None:
    write_index(folder, MAP, total_size=999)
    assert read_weight_files(folder).warnings == (
        f"{folder / INDEX}: total_size is 999, and the tensors take 12 bytes; the tensors count",
    )


@pytest.mark.parametrize("metadata", [None, {}, {"total_size": "12"}, {"total_size": 12.5}, {"total_size": True}])
def test_a_total_size_may_be_wanting(metadata: Any) -> None:
    content = json.dumps({"metadata": metadata, "weight_map": MAP}).encode()
    assert parse_index(content, "index") == (MAP, None)


def test_a_folder_without_weights_says_what_is_there(tmp_path: Path) -> None:
    with pytest.raises(ServingError, match=r"has neither model.safetensors nor .*index.json; no other file of weights"):
        read_weight_files(tmp_path)
    (tmp_path / "adapter.safetensors").touch()
    with pytest.raises(ServingError, match=r"; there are adapter.safetensors$"):
        read_weight_files(tmp_path)
    with pytest.raises(ServingError, match=r"nowhere: is no folder; a model is a folder with config.json and"):
        read_weight_files(tmp_path / "nowhere")
