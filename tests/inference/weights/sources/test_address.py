"""gs:// addresses, and names of objects that are to be files."""

from __future__ import annotations

import pytest

from inference.errors import ServingError
from inference.weights.sources.address import Address, check_apart, path_in_folder


@pytest.mark.parametrize(
    ("text", "bucket", "prefix"),
    [
        ("gs://models/llama/v1", "models", "llama/v1"),
        ("gs://models/llama/v1/", "models", "llama/v1"),
        ("gs://my.models-1_x", "my.models-1_x", ""),
        ("gs://models/", "models", ""),
        ("gs://models/Ein Modell ä", "models", "Ein Modell ä"),
    ],
)
def test_addresses(text: str, bucket: str, prefix: str) -> None:
    address = Address.parsed(text)
    assert (address.bucket, address.prefix) == (bucket, prefix)
    assert address.start == (f"{prefix}/" if prefix else "")


@pytest.mark.parametrize("text", ["gs://", "gs:///x", "gs://Models/x", "gs://m/x", "gs://models/a\nb", "gs://a b/c"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ServingError, match="write it as gs://bucket/prefix"):
        Address.parsed(text)


@pytest.mark.parametrize("name", ["model.safetensors", "a/b/c.json", "..a", "a..", "...", "x" * 255, "模型.json"])
def test_names_that_stay_in_the_folder(name: str) -> None:
    assert path_in_folder(name, "gs://b/m") == name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../x", "'.' or '..'"),
        ("a/../../x", "'.' or '..'"),
        ("..", "'.' or '..'"),
        ("./x", "'.' or '..'"),
        ("/etc/passwd", "slash"),
        ("a//b", "slash"),
        ("a/", "slash"),
        ("", "slash"),
        ("a\\..\\b", "backslash"),
        ("a\nb", "control"),
        ("a\0b", "control"),
        ("a\x7f", "control"),
        ("a\x85b", "control"),
        ("\ud800", "control"),
        ("a/" + "x" * 256, "255 bytes"),
        ("ä" * 128, "255 bytes"),
    ],
)
def test_names_that_do_not(name: str, why: str) -> None:
    with pytest.raises(ServingError, match=f"gs://b/m: .*{why}"):
        path_in_folder(name, "gs://b/m")


def test_a_file_cannot_be_a_folder() -> None:
    check_apart(["a", "b/a", "b/c", "ab"], "gs://b/m")
    with pytest.raises(ServingError, match="'b/c' is a file, and the folder of 'b/c/d/e'"):
        check_apart(["b/c/d/e", "b/c"], "gs://b/m")
