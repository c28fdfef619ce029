"""Files that are no clean UTF-8 JSON, which redirected output of a CLI often is."""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policies.changes import Reading
from policies.readers.errors import ReadError
from policies.readers.source import open_source
from tests.policies.readers.documents import LARGE, digest, record, state, step

Read = Callable[[Any], Reading]
TEXT = json.dumps(digest(step("create", new=LARGE | {"description": "Größe ist 140"}), create=1), ensure_ascii=False)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(TEXT.encode(), id="utf-8"),
        pytest.param(codecs.BOM_UTF8 + TEXT.encode(), id="utf-8 with a mark"),
        pytest.param(codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"), id="utf-16-le"),
        pytest.param(codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), id="utf-16-be"),
        pytest.param(("\r\n" + TEXT + "\r\n").encode(), id="blank lines around"),
    ],
)
def test_text_with_a_known_encoding_is_read(read: Read, content: bytes) -> None:
    (disk,) = read(content).after
    assert disk.inputs["size"] == 140
    assert disk.inputs["description"] == "Größe ist 140"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (TEXT.encode("latin-1"), r"reef\.json: byte [0-9,]+ is no UTF-8"),
        (codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le")[:-1], r"is no UTF-16 \(little endian\)"),
        (TEXT.encode("utf-16-le"), "UTF-16 or UTF-32 without a byte order mark"),
        (TEXT.encode("utf-16-be"), "UTF-16 or UTF-32 without a byte order mark"),
        (codecs.BOM_UTF32_LE + TEXT.encode("utf-32-le"), r"UTF-32 \(little endian\)"),
        (codecs.BOM_UTF32_BE + TEXT.encode("utf-32-be"), r"UTF-32 \(big endian\)"),
        (b"\x1f\x8b\x08\x00", "this is a gzip file; unpack it first"),
        (b"", "it is empty; Pulumi wrote nothing"),
        (b" \n\t", "it is empty"),
        (b"null", "line 1, column 1: text that is no JSON stands first"),
        (b"\nI1129 debug\n" + TEXT.encode(), "line 2, column 1: text that is no JSON stands first"),
        (b"[1]", "it is a JSON list"),
        (TEXT.encode()[:-40], "the text ends there: it was cut"),
        (TEXT.encode().replace(b'"op"', b"op"), "line 1, column [0-9,]+: the JSON is broken"),
        (b'{"steps": [], "steps": []}', 'the member "steps" stands twice'),
        (b'{"steps": [{"op": "same", "op": "create"}]}', r'steps\[0\]: the member "op" stands twice'),
        (TEXT.encode() + TEXT.encode(), "line 1, column [0-9,]+: a second document begins here"),
        (b'{"x": ' + b"[" * 100_000, "nested too deep"),
        (b'{"x": ' + b"7" * 5000 + b"}", "more than 4,300 digits"),
    ],
)
def test_other_text_is_refused_by_name(read: Read, content: bytes, said: str) -> None:
    with pytest.raises(ReadError, match=said):
        read(content)


def test_text_after_the_json_is_cut_and_noted(read: Read) -> None:
    reading = read(json.dumps(digest(step("create", new=LARGE), create=1), indent=1) + "\nUpdate plan written to 'p'\n")
    assert [disk.inputs["size"] for disk in reading.after] == [140]
    assert any(note.startswith("text after the JSON was left out, from line ") for note in reading.notes)


def test_half_a_surrogate_pair_does_not_reach_an_output(read: Read) -> None:
    (disk,) = read(
        digest(step("create", new=LARGE | {"description": "a\ud83d", "\udc00": "\ud83d\ude00"}), create=1)
    ).after
    assert disk.inputs["description"] == "a\ufffd"
    assert disk.inputs["\ufffd"] == "\U0001f600"


def test_a_path_and_standard_input_read_the_same(tmp_path: Path) -> None:
    content = json.dumps(state(record("coral"))).encode()
    path = tmp_path / "state.json"
    path.write_bytes(content)
    assert open_source(str(path)) == open_source("-", io.BytesIO(content))


@pytest.mark.parametrize(
    ("path", "said"), [("missing.json", "No such file"), (".", "Is a directory"), ("a\0b", "cannot be read: ")]
)
def test_a_path_that_cannot_be_opened_is_named(path: str, said: str) -> None:
    with pytest.raises(ReadError, match=said) as refused:
        open_source(path)
    assert str(refused.value).startswith(f"{path}: cannot be read")


def test_a_broken_standard_input_is_named() -> None:
    with pytest.raises(ReadError, match="standard input: it is empty"):
        open_source("-", io.BytesIO(b""))


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (
            {"schema": "spotrail.estimate/1"},
            r"itself \(spotrail.estimate/1\), not a stack; compare .*: spotrail diff\.",
        ),
        ({"schema": "spotrail.prices/1"}, r"a report of spotrail itself \(spotrail.prices/1\), not a stack\. spotrail"),
        (
            {"version": "0.2", "currency": "USD", "projects": []},
            "of infracost, not a stack; give the preview or the state",
        ),
        ({"terraform_version": "1.9.0", "planned_values": {}}, "of Terraform, not of Pulumi"),
        ({"stdout": "", "result": "succeeded"}, "the outcome of an update"),
        ({"anything": 1}, r"neither a preview nor a state \(it has anything\)"),
        ({}, "nothing in it"),
        ({"version": 3, "deployment": None}, "there is no deployment in it"),
        ({"version": 3, "deployment": {}}, "there is no deployment in it"),
        ({"version": 3, "checkpoint": {"stack": ""}}, "there is no deployment in it"),
        ({"version": 3, "checkpoint": {"stack": 5, "latest": None}}, "there is no deployment in it"),
        ({"version": 3, "checkpoint": {"stack": "s", "latest": {}}}, "there is no deployment in it"),
        ({"version": 2, "deployment": {"manifest": {}}}, "version is 2; read are versions 3 and 4"),
        ({"version": True, "deployment": {"manifest": {}}}, "version is no whole number; read are"),
        ({"version": None, "deployment": {"manifest": {}}}, "version is missing; read are"),
        ({"deployment": {"manifest": {}}}, "version is missing"),
        ({"version": 3, "deployment": {"resources": {}}}, "resources must be a list"),
        ({"steps": []}, "changeSummary is missing: the preview did not reach its end"),
        ({"steps": {}, "changeSummary": {"same": 1}}, "steps must be a list"),
        ({"steps": [], "changeSummary": {"same": -1}}, r"changeSummary\.same must be a whole number"),
        ({"steps": [], "changeSummary": {}, "config": []}, "config must be an object"),
    ],
)
def test_what_is_no_source_is_refused_and_told_what_is(read: Read, document: Any, said: str) -> None:
    with pytest.raises(ReadError, match=said) as refused:
        read(document)
    assert str(refused.value).startswith("reef.json: ")
