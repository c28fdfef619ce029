"""`python -m training checkpoints`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.training.checkpoint.trees import small_tree
from training.checkpoint.checkpointer import Checkpointer
from training.checkpoint.discovery import find_newest_valid
from training.checkpoint.errors import CheckpointError
from training.checkpoint.lease import read_lease
from training.checkpoint.local_store import LocalStore
from training.commands.checkpoints import command


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Steps 1, 2 (damaged, quarantined), 3 and 4 of run r, and an unfinished one of run other."""
    with Checkpointer(tmp_path, run="r") as checkpointer:
        for step in (1, 2):
            checkpointer.save(step, small_tree(step), {})
    (tmp_path / "00000002-1/PART-0.json").write_text("{}")
    find_newest_valid(tmp_path, "r")
    with Checkpointer(tmp_path, run="r") as checkpointer:
        for step in (3, 4):
            checkpointer.save(step, small_tree(step), {})
    with Checkpointer(tmp_path, run="other") as checkpointer:
        checkpointer.save(7, small_tree(7), {})
    (tmp_path / "00000007-3/MANIFEST.json").unlink()
    return tmp_path


def called(*arguments: object, typed: str = "") -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments], input=typed, catch_exceptions=False)


def states(result: Result) -> dict[str, Any]:
    return {entry["prefix"]: entry["state"] for entry in json.loads(result.stdout)["checkpoints"]}


EXPECTED = {
    "00000001-1": "complete",
    "00000002-1": "quarantined",
    "00000003-2": "complete",
    "00000004-2": "complete",
    "00000007-3": "incomplete or foreign",
}


def test_ls_says_what_is_there(root: Path) -> None:
    result = called("ls", root, "--format", "json")
    assert (result.exit_code, states(result)) == (0, EXPECTED)
    table = called("ls", root).stdout
    for prefix, state in EXPECTED.items():
        assert re.search(rf"{prefix} +(r|other) +{state} ", table)
    assert called("ls", root).exit_code == 0


def test_ls_knows_what_was_set_aside(root: Path) -> None:
    with Checkpointer(root, run="r", start_over=True) as checkpointer:
        checkpointer.save(1, small_tree(1), {})
    found = states(called("ls", root, "--format", "json"))
    assert found["00000004-2"] == "set aside"
    assert found["00000001-4"] == "complete"


def test_verify_reads_every_byte_and_changes_nothing(root: Path) -> None:
    fine = called("verify", root, "00000001-1", "00000004-2", "00000007-3")
    assert fine.exit_code == 0
    chunk = root / "00000004-2/host-0/00002.w/c.0.0"
    content = chunk.read_bytes()
    chunk.write_bytes(content[:7] + bytes([content[7] ^ 64]) + content[8:])
    result = called("verify", root, "--format", "json")
    assert result.exit_code == 1
    assert states(result) == EXPECTED | {"00000004-2": "damaged"}
    assert "00000004-2/host-0/00002.w/c.0.0 is damaged: its crc32c is another" in called("verify", root).stdout
    assert not (root / "00000004-2/QUARANTINED.json").exists()


def test_the_answer_comes_first(root: Path) -> None:
    assert called("ls", root).stdout.splitlines()[0] == f"{root}: 5 checkpoints"
    (root / "00000003-2/PART-0.json").write_text("{}")
    answer = called("verify", root).stdout.splitlines()[0]
    assert answer == f"{root}: 5 checkpoints, every byte read: 2 whole, 2 damaged, 1 not finished or foreign"
    assert called("verify", root, "00000001-1").stdout.startswith(f"{root}: 1 checkpoint, every byte read: 1 whole\n")


def test_rm_asks_and_spares_the_newest_valid_one(root: Path) -> None:
    kept = called("rm", root, "00000001-1", typed="n\n")
    assert (kept.exit_code, kept.stdout) == (0, "")
    assert kept.stderr.endswith("nothing was deleted\n")
    unasked = called("rm", root, "00000001-1")
    assert (unasked.exit_code, unasked.stdout) == (2, "")
    assert "nothing was deleted: nobody is there to be asked; say --yes" in unasked.stderr
    assert (root / "00000001-1").exists()
    with pytest.raises(CheckpointError, match=r"00000004-2 is the newest valid checkpoint of run r.*--force"):
        called("rm", root, "00000003-2", "00000004-2", "--yes")
    assert states(called("ls", root, "--format", "json")) == EXPECTED, "nothing was deleted"
    result = called("rm", root, "00000001-1", "00000007-3", "00000002-1", typed="y\n")
    assert result.stdout.endswith(
        "deleted 00000001-1 (complete)\ndeleted 00000007-3 (incomplete or foreign)\ndeleted 00000002-1 (quarantined)\n"
    )
    assert sorted(path.name for path in root.iterdir() if path.is_dir()) == ["00000003-2", "00000004-2"]


def test_rm_by_force_makes_the_one_before_the_newest(root: Path) -> None:
    assert called("rm", root, "00000004-2", "--force", "--yes").exit_code == 0
    held = read_lease(LocalStore(root), "r")
    assert held is not None
    assert held.committed == ("00000001-1", "00000003-2")
    found = find_newest_valid(root, "r")
    assert found is not None
    assert found.step == 3
    assert "00000004-2" not in " ".join(found.skipped)


def test_mistakes_are_named(root: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"has no checkpoint '0000001-1'; did you mean 00000001-1\?"):
        called("rm", root, "0000001-1")  # before anybody is asked
    with pytest.raises(CheckpointError, match=r"there is no folder .*nowhere"):
        called("ls", tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    assert called("ls", tmp_path / "empty").stdout == f"{tmp_path}/empty: no checkpoints\n"


def test_nothing_verified_is_no_answer_and_the_right_folder_is_told(root: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"empty: there are no checkpoints to verify$"):
        called("verify", tmp_path / "empty")
    (tmp_path / "run").mkdir()
    root.joinpath("00000001-1").rename(tmp_path / "run/checkpoints")
    hint = rf"; did you mean {tmp_path}/run/checkpoints\?$"
    with pytest.raises(CheckpointError, match=rf"run: there are no checkpoints to verify{hint}"):
        called("verify", tmp_path / "run")
    assert re.search(hint, called("ls", tmp_path / "run").stdout.strip())
    said = called("ls", root / "00000004-2").stdout
    assert said == f"{root}/00000004-2: no checkpoints; it is one itself: name {root}, and 00000004-2 behind it\n"
