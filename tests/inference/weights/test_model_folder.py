"""What a folder says of its model, but for the tensors."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from inference.errors import ServingError
from inference.weights.manifest import parse_manifest, read_manifest
from inference.weights.model_folder import read_model_folder
from training.model.tokenizer import train_tokenizer


@pytest.fixture
def folder(export: Path, tmp_path: Path) -> Path:
    """An export to spoil."""
    shutil.copytree(export, tmp_path / "model")
    return tmp_path / "model"


def test_an_export_is_read_without_a_warning(folder: Path) -> None:
    found = read_model_folder(folder)
    assert found.warnings == ()
    assert found.identity == hashlib.sha256((folder / "MANIFEST.json").read_bytes()).hexdigest()


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_file_that_is_missing_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(ServingError, match=f"model: has no {name}; a model is a folder as `python -m training export`"):
        read_model_folder(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "MANIFEST.json"])
def test_a_pipe_is_not_waited_for(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(ServingError, match=f"{name}: cannot be read: it is a pipe, a socket or a device, and no file"):
        read_model_folder(folder)


def test_no_folder_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(ServingError, match="nowhere: is no folder; a model is a folder as"):
        read_model_folder(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (
            "config.json",
            b'{"architectures": ["Mamba2ForCausalLM"]}',
            r'config.json: schema is null; .* "spotrail.model/1"',
        ),
        ("config.json", b"\xff", r"config.json: is no UTF-8 at byte 0"),
        ("config.json", b"{", r"config.json: is not JSON"),
        ("tokenizer.json", b"{}", r"tokenizer.json: is no tokenizer of the tokenizers library"),
        ("tokenizer.json", train_tokenizer(["abcdefgh" * 40], 400).to_json(), None),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_named(
    folder: Path, name: str, content: bytes, reason: str | None
) -> None:
    (folder / "MANIFEST.json").unlink()
    (folder / name).write_bytes(content)
    if reason is None:
        read_model_folder(folder)
    else:
        with pytest.raises(ServingError, match=reason):
            read_model_folder(folder)


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused(folder: Path) -> None:
    (folder / "MANIFEST.json").unlink()
    text = " ".join(f"{number:x} {number**3:o}" for number in range(2000))
    (folder / "tokenizer.json").write_bytes(train_tokenizer([text], 600).to_json())
    with pytest.raises(ServingError, match=r"tokenizer.json: has 600 tokens, and the model knows 304 \(config.json\)"):
        read_model_folder(folder)


def test_another_chat_template_is_a_warning_and_none_is_fine(folder: Path) -> None:
    (folder / "MANIFEST.json").unlink()
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    (warning,) = read_model_folder(folder).warnings
    assert warning.endswith("is not the known template; it is not used, and turns are composed by the known one")
    (folder / "chat_template.jinja").unlink()
    assert read_model_folder(folder).warnings == ()


def test_a_size_that_is_not_that_of_the_manifest_is_refused(folder: Path) -> None:
    size = (folder / "tokenizer.json").stat().st_size
    with (folder / "tokenizer.json").open("ab") as file:
        file.write(b" ")
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(ServingError) as caught:
        read_model_folder(folder)
    assert str(caught.value).splitlines() == [
        f"{folder / 'MANIFEST.json'}: the folder is not what was exported; fetch it again:",
        "  chat_template.jinja cannot be read: No such file or directory",
        f"  tokenizer.json has {size + 1} bytes, and the manifest says {size}",
    ]


def test_a_file_that_the_manifest_does_not_list_is_refused(folder: Path) -> None:
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    manifest["files"] = [each for each in manifest["files"] if each["path"] != "model.safetensors"]
    (folder / "MANIFEST.json").write_text(json.dumps(manifest))
    with pytest.raises(ServingError, match=r"model.safetensors: is not in MANIFEST.json, and came after the export"):
        read_model_folder(folder)


FILE = {"path": "config.json", "bytes": 1, "sha256": "0" * 64}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ([], r'schema is \[\]; this version reads "spotrail.model/1"'),
        ({"schema": "spotrail.model/2"}, r'schema is "spotrail.model/2"; this version reads'),
        ({"schema": "spotrail.model/1"}, r"files is no list of path, bytes and sha256"),
        ([FILE | {"path": "../config.json"}], r"path is '../config.json'; it must be the name of a file in the folder"),
        ([FILE | {"path": 7}], r"path is '7'; it must be the name"),
        ([FILE | {"bytes": -1}], r"bytes of config.json is -1; it must be a whole number"),
        ([FILE | {"bytes": True}], r"bytes of config.json is True; it must be a whole number"),
        ([FILE | {"sha256": "A" * 64}], r"sha256 of config.json is 'AAA.*; it must be 64 digits of hex, small letters"),
        ([FILE, FILE], r"config.json stands twice in it"),
        (["config.json"], r"path is 'None'"),
    ],
)
def test_a_manifest_that_is_none_is_refused(content: Any, reason: str) -> None:
    body = {"schema": "spotrail.model/1", "files": content} if isinstance(content, list) and content else content
    with pytest.raises(ServingError, match=rf"^manifest: {reason}"):
        parse_manifest(json.dumps(body).encode(), "manifest")


def test_no_manifest_is_none(tmp_path: Path) -> None:
    assert read_manifest(tmp_path) is None
