"""The hydrator for real: its rendered startup script under bash, copying real files, with a disk that is a folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from infra.plan.startup import HydrateStartup, render_hydrate

VERDICT = "instance/guest-attributes/spotrail/verdict"
FILES = {"config.json": b"{}", "model.safetensors": b"weights" * 1000, "tokenizer/tokenizer.json": b"[1, 2]"}


@pytest.fixture
def bucket(tmp_path: Path, machine: Any) -> Path:
    """The folder of a model in its bucket, which `gcloud storage` reads; the disk is attached."""
    folder = tmp_path / "bucket/llama/v1"
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    write_manifest(folder)
    machine.has_device("google-staging")
    machine.stand_in(
        "gcloud",
        'bucket="$HOME/bucket"\n'
        'case "$3" in\n'
        '  cat) cat "${4/gs:\\/\\/models/$bucket}" ;;\n'
        '  rsync) cp -r "${5/gs:\\/\\/models/$bucket}/." "$6" ;;\n'
        "esac",
    )
    return folder


def write_manifest(folder: Path) -> str:
    """A manifest of all files of `folder`; its digest."""
    listed = [
        {
            "path": file.relative_to(folder).as_posix(),
            "bytes": file.stat().st_size,
            "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        }
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != "MANIFEST.json"
    ]
    text = json.dumps({"schema": "spotrail.model/1", "files": listed}).encode()
    (folder / "MANIFEST.json").write_bytes(text)
    return hashlib.sha256(text).hexdigest()


def digest_of(folder: Path) -> str:
    return hashlib.sha256((folder / "MANIFEST.json").read_bytes()).hexdigest()


def script(digest: str, path: str = "llama/v1") -> str:
    return render_hydrate(HydrateStartup(bucket="models", path=path, manifest_sha256=digest))


def test_a_model_is_copied_verified_and_reported(machine: Any, bucket: Path) -> None:
    code, said = machine.run(script(digest_of(bucket)))
    assert (code, machine.put(VERDICT)) == (0, "ok"), said
    staged = machine.root / "mnt/staging"
    assert {name: (staged / name).read_bytes() for name in FILES} == FILES
    commands = [call.split()[0] for call in machine.calls if call.startswith(("mkfs", "mount", "umount", "gcloud"))]
    assert commands == ["mkfs.ext4", "mount", "gcloud", "gcloud", "umount"], "unmounted before the verdict"
    assert f"-L model-{digest_of(bucket)[:8]}" in next(call for call in machine.calls if call.startswith("mkfs"))


def corrupt(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"Weights" + b"weights" * 999)


def lose(folder: Path) -> None:
    (folder / "config.json").unlink()


def cut(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"weights")


def add(folder: Path) -> None:
    (folder / "notes.txt").write_text("left by somebody")


def garble(folder: Path) -> None:
    (folder / "MANIFEST.json").write_text('{"schema": "spotrail.model/2", "files": []}')


@pytest.mark.parametrize(
    ("harm", "verdict"),
    [
        (corrupt, "failed: model.safetensors has another digest than the manifest says"),
        (lose, "failed: config.json is missing"),
        (cut, "failed: model.safetensors has 7 bytes, not 7000"),
        (add, "failed: notes.txt is not in MANIFEST.json"),
        (garble, "failed: MANIFEST.json is not spotrail.model/1: schema is 'spotrail.model/2'"),
    ],
)
def test_a_damaged_model_is_reported(machine: Any, bucket: Path, harm: Callable[[Path], None], verdict: str) -> None:
    harm(bucket)
    code, said = machine.run(script(digest_of(bucket)))
    assert code != 0
    assert machine.put(VERDICT) == verdict, said
    assert "umount" not in [call.split()[0] for call in machine.calls]


def test_another_manifest_than_the_settings_say_is_reported(machine: Any, bucket: Path) -> None:
    machine.run(script("0" * 64))
    expected = f"failed: MANIFEST.json has the digest {digest_of(bucket)}, the settings say {'0' * 64}"
    assert machine.put(VERDICT) == expected


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        ("mkfs.ext4", "failed: the staging disk cannot be formatted"),
        ("mount", "failed: the staging disk cannot be formatted"),
        ("umount", "failed: the staging disk cannot be unmounted"),
        ("gcloud", "failed: gs://models/llama/v1/MANIFEST.json cannot be read"),
    ],
)
def test_a_command_that_fails_is_reported(machine: Any, bucket: Path, command: str, verdict: str) -> None:
    machine.stand_in(command, "exit 1")
    assert machine.run(script(digest_of(bucket)))[0] != 0
    assert machine.put(VERDICT) == verdict


def test_a_disk_that_is_not_attached_is_reported(machine: Any) -> None:
    machine.run(script("0" * 64))
    assert machine.put(VERDICT) == "failed: the staging disk is not attached"
    assert not any(call.startswith("mkfs") for call in machine.calls)


def test_a_reboot_after_the_verdict_formats_nothing(machine: Any, bucket: Path) -> None:
    machine.run(script(digest_of(bucket)))
    before = len(machine.calls)
    assert machine.run(script(digest_of(bucket)))[0] == 0
    assert machine.calls[before:] == []
