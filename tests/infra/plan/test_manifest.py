"""Verification of a copied model: what the hydrator runs, as it runs it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from infra.plan import manifest

CONTENT = b"abc"
# sha256("abc"), the example of FIPS 180-2.
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def model(folder: Path, files: Any, schema: str = "spotrail.model/1") -> str:
    text = json.dumps({"schema": schema, "files": files}).encode()
    (folder / "MANIFEST.json").write_bytes(text)
    (folder / "a.bin").write_bytes(CONTENT)
    return hashlib.sha256(text).hexdigest()


def entry(path: str = "a.bin", size: int = 3, digest: str = ABC) -> dict[str, Any]:
    return {"path": path, "bytes": size, "sha256": digest}


def test_a_whole_model(tmp_path: Path) -> None:
    assert manifest.mistakes(tmp_path, model(tmp_path, [entry()])) == []


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ([entry(size=4)], ["a.bin has 3 bytes, not 4"]),
        ([entry(digest="0" * 64)], ["a.bin has another digest than the manifest says"]),
        ([entry(), entry("b.bin")], ["b.bin is missing"]),
        ([entry("c.bin")], ["c.bin is missing", "a.bin is not in MANIFEST.json"]),
        ([], ["MANIFEST.json is not spotrail.model/1: files is not a list, or empty"]),
        ({}, ["MANIFEST.json is not spotrail.model/1: files is not a list, or empty"]),
        ([entry("../a.bin")], ["MANIFEST.json is not spotrail.model/1: path '../a.bin'"]),
        ([entry("/etc/passwd")], ["MANIFEST.json is not spotrail.model/1: path '/etc/passwd'"]),
        ([entry(), entry()], ["MANIFEST.json is not spotrail.model/1: path 'a.bin'"]),
        ([{"path": "a.bin"}], ["MANIFEST.json is not spotrail.model/1: 'bytes'"]),
    ],
)
def test_a_model_that_is_not_whole(tmp_path: Path, files: Any, why: list[str]) -> None:
    assert manifest.mistakes(tmp_path, model(tmp_path, files)) == why


def test_another_schema(tmp_path: Path) -> None:
    digest = model(tmp_path, [entry()], schema="spotrail.model/2")
    assert manifest.mistakes(tmp_path, digest) == [
        "MANIFEST.json is not spotrail.model/1: schema is 'spotrail.model/2'"
    ]


def test_another_digest_and_no_manifest(tmp_path: Path) -> None:
    assert manifest.mistakes(tmp_path, "0" * 64) == ["MANIFEST.json is missing"]
    digest = model(tmp_path, [entry()])
    assert manifest.mistakes(tmp_path, "0" * 64) == [
        f"MANIFEST.json has the digest {digest}, the settings say {'0' * 64}"
    ]


def test_a_link_is_no_file(tmp_path: Path) -> None:
    digest = model(tmp_path, [entry("b.bin"), entry()])
    (tmp_path / "b.bin").symlink_to(tmp_path / "a.bin")
    assert manifest.mistakes(tmp_path, digest) == ["b.bin is missing"]


def test_the_program_needs_the_standard_library_only(tmp_path: Path) -> None:
    """As on the hydrator: the text of the module, by a Python without this project."""
    digest = model(tmp_path, [entry(size=4)])
    program = Path(manifest.__file__).read_text(encoding="utf-8")
    command = [sys.executable, "-I", "-S", "-c", program, str(tmp_path), digest]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode, done.stdout) == (1, "a.bin has 3 bytes, not 4\n"), done.stderr
