"""What a user types at `python -m training`: every mistake is one message, exit 2, and nothing is made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.training.checkpoint.trees import small_tree
from training.__main__ import run
from training.checkpoint.checkpointer import Checkpointer
from training.exit_codes import ExitCode

EMPTY = "it is empty; name a file or a folder"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["--config", "", "--run-dir", "r"], f"'--config': {EMPTY}"),
        (["--config", "run.yaml", "--run-dir", " "], f"'--run-dir': {EMPTY}"),
        (["--config", "run.yaml", "--run-dir", "gs://b/p"], "--set checkpoint.root=gs://bucket/prefix puts the check"),
        (["--config", "gs://b/run.yaml"], "gs://b/run.yaml is a bucket; copy the file to a disk first"),
        (["prepare", "--text", "", "--out", "o"], f"'--text': {EMPTY}"),
        (["prepare", "--text", "a.txt", "--out", ""], f"'--out': {EMPTY}"),
        (["prepare", "--text", "a.txt", "--out", "gs://b/p"], "gs://b/p is a bucket; data is prepared on a disk"),
        (["prepare", "--tokenizer", "", "--text", "a.txt", "--out", "o"], f"'--tokenizer': {EMPTY}"),
        (["export", "", "o"], "'CHECKPOINT': it is empty; name a folder or gs://bucket/prefix"),
        (["export", "c", ""], f"'OUT': {EMPTY}"),
        (["export", "c", "gs://b/p"], "gs://b/p is a bucket; export to a disk, and copy the folder"),
        (["checkpoints", "ls", ""], "'DIR': it is empty"),
        (["chekpoints", "ls", "c"], "there is no command 'chekpoints'; did you mean checkpoints?"),
        (["checkpoints", "verfy", "c"], "there is no command 'verfy'; did you mean verify?"),
        (["zzz"], "there is no command 'zzz'; there are checkpoints, export, prepare"),
        ([], "name a configuration with --config, or a command: checkpoints, export, prepare"),
    ],
    ids=" ".join,
)
def test_a_mistyped_line_makes_nothing(
    line: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(line) == ExitCode.BAD_INPUT
    output = capsys.readouterr()
    assert said in output.err
    assert output.out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [[], ["prepare"], ["export"], ["checkpoints"], ["checkpoints", "rm"]], ids=" ".join)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_every_command_has_help_whose_lists_are_whole(
    words: list[str], option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, option]) == ExitCode.FINE
    said = capsys.readouterr().out
    assert said.startswith("Usage: python -m training")
    listed = said.partition("Commands:")[2]
    assert "..." not in listed


@pytest.mark.parametrize(
    ("package", "line"),
    [
        ("jax", ["--config", "run.yaml"]),
        ("numpy", ["prepare", "--text", "a.txt", "--out", "o"]),
        ("google_crc32c", ["checkpoints", "ls", "c"]),
        ("safetensors", ["export", "c", "o"]),
    ],
)
def test_without_the_extra_of_training_a_command_says_how_to_get_it(package: str, line: list[str]) -> None:
    script = f"import sys; sys.modules[{package!r}] = None; from training.__main__ import run; sys.exit(run({line!r}))"
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (ExitCode.BAD_INPUT, "")
    assert done.stderr == f"error: training needs {package}, which is not installed: pip install 'spotrail[train]'\n"


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    with Checkpointer(tmp_path, run="r") as checkpointer:
        checkpointer.save(1, small_tree(1), {})
    return tmp_path


@pytest.mark.parametrize(
    ("shell", "code", "said"),
    [
        ("| true", 0, ""),
        (">&-", 0, ""),
        ("2>&-", 0, ""),
        ("> /dev/full", 1, "No space left on device"),
    ],
)
@pytest.mark.parametrize("form", ["table", "json"])
def test_standard_output_is_not_always_there(checkpoints: Path, shell: str, code: int, said: str, form: str) -> None:
    line = f"{sys.executable} -m training checkpoints ls {checkpoints} --format {form} {shell}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], check=False, capture_output=True, text=True)
    assert done.returncode == code
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == bool(said)
