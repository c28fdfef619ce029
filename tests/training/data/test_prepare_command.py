"""`python -m training prepare`: what a user types, and what it says."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import click.testing
import pytest

from training.commands.prepare import PACKINGS, command
from training.data.packing import PackingKind
from training.errors import TrainingError

SMALL = ("--vocab-size", "400", "--sequence-length", "64")


def ran(*arguments: object) -> click.testing.Result:
    """The command, with what it raised raised again."""
    return click.testing.CliRunner().invoke(command, [str(one) for one in arguments], catch_exceptions=False)


def test_pydoc_is_prepared_and_told(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = ran("--corpus", "pydoc", "--out", out, *SMALL)
    assert first.exit_code == 0
    assert first.stdout.startswith(f"{out}: prepared\n  train ")
    assert f"data: {{sources: [{{path: {out}}}]}}" in first.stdout
    assert not first.stderr
    again = ran("--corpus", "pydoc", "--out", out, *SMALL)
    assert again.stdout.startswith(f"{out}: already prepared, and every byte checked\n")


def test_a_bar_for_each_phase_is_shown_on_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    script = "from training.commands.prepare import command; command.main()"
    command_line = [sys.executable, "-c", script, "--corpus", "pydoc", "--out", str(tmp_path / "out"), *SMALL]
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, stderr=theirs, text=True) as process:
        os.close(theirs)
        seen = read_terminal(ours)
        assert process.stdout is not None
        assert process.stdout.read().startswith(f"{tmp_path / 'out'}: prepared")
    for phase in ("reading", "training the tokenizer", "tokenizing", "packing"):
        assert phase in seen
    assert seen.count("100%") >= 4


def read_terminal(ours: int) -> str:
    """What a program wrote to its terminal, until it ended."""
    seen = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while part := os.read(ours, 1 << 16):
            seen += part
    os.close(ours)
    return seen.decode()


def test_json_is_all_that_stands_on_standard_output(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    lines = [json.dumps({"body": f"document {number} " * 20}) for number in range(50)]
    path.write_text("\n".join([*lines, *["{"] * 7]))
    book = tmp_path / "book.txt"
    book.write_text("A line of text.\n\n" * 40)
    arguments = (
        "--jsonl",
        path,
        "--field",
        "body",
        "--text",
        book,
        "--lenient",
        "--format",
        "json",
        "--packing",
        "best-fit",
    )
    done = ran(*arguments, "--out", tmp_path / "out", *SMALL)
    told = json.loads(done.stdout)
    assert told["schema"] == "spotrail.prepared/1"
    assert told["packing"] == "best-fit"
    assert [(source["name"], source["documents"], source["skipped"]) for source in told["sources"]] == [
        ("book.txt", 1, 0),
        ("data.jsonl", 50, 7),
    ]
    assert told["train"]["documents"] + told["validation"]["documents"] == 51
    assert done.stderr.splitlines()[0].startswith(f"left out: {path}:51: is no JSON")
    assert done.stderr.splitlines()[-1] == "left out: 2 more"


def test_text_takes_the_files_that_a_shell_lists(tmp_path: Path) -> None:
    names = ("a.txt", "b.txt", "c.txt")
    for name in names:
        (tmp_path / name).write_text(f"The text of {name}.\n\n" * 40)
    done = ran("--text", *(tmp_path / name for name in names), "--format", "json", "--out", tmp_path / "out", *SMALL)
    assert [source["name"] for source in json.loads(done.stdout)["sources"]] == [*names]


def test_a_text_without_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Some text of a file, and then some more of it.\n\n" * 400)
    (tmp_path / "empty.txt").write_text("\ufeff")
    done = ran("--text", tmp_path / "empty.txt", tmp_path / "a.txt", "--out", tmp_path / "out", *SMALL)
    assert done.exit_code == 0
    assert done.stderr == "left out: empty.txt: there is no text in it\n"


def test_a_field_that_no_line_has_is_told_where_bad_lines_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n' * 3)
    told = r'no line of a.jsonl holds text: 3 were left out; the first, .*/a.jsonl:1: has no field "txt"; it has "text"'
    with pytest.raises(TrainingError, match=told):
        ran("--jsonl", tmp_path / "a.jsonl", "--field", "txt", "--lenient", "--out", tmp_path / "out")


def test_the_same_text_twice_is_a_slip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("Some text.\n" * 400)
    (tmp_path / "link.txt").symlink_to("a.txt")
    for names in (("a.txt", "./a.txt"), ("a.txt", "link.txt"), ("a.txt", "--jsonl", "a.txt")):
        done = ran("--text", *names, "--out", "out", *SMALL)
        assert (done.exit_code, done.stdout) == (2, "")
        assert f"{tmp_path}/a.txt is named twice; name it once." in done.stderr
    assert "pydoc is named twice" in ran("--corpus", "pydoc", "--corpus", "pydoc", "--out", "out").stderr
    assert not (tmp_path / "out").exists()


def test_mistakes_of_the_user_are_errors_with_their_place(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="there is nothing to prepare"):
        ran("--out", tmp_path / "out")
    with pytest.raises(TrainingError, match="none: the tokenizer cannot be read"):
        ran("--corpus", "pydoc", "--out", tmp_path / "out", "--tokenizer", tmp_path / "none")
    assert "Missing option '--out'" in ran("--corpus", "pydoc").stderr
    assert "stray.txt stands behind no option" in ran("stray.txt", "--out", "x").stderr
    assert "b.jsonl stands behind no option" in ran("--jsonl", "a.jsonl", "b.jsonl", "--out", "x").stderr
    assert "'milton' is not one of 'pydoc', 'shakespeare'" in ran("--corpus", "milton", "--out", "x").stderr


def test_help_teaches_and_comes_at_once() -> None:
    script = (
        "import sys; from training.commands.prepare import command\n"
        "try: command.main(['--help'])\n"
        "finally: print(sorted({'numpy', 'tokenizers', 'jax', 'rich'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert "python -m training prepare --corpus shakespeare --out data/shakespeare" in done.stdout
    assert done.stderr.strip() == "[]"


def test_the_command_offers_every_packing() -> None:
    assert list(PACKINGS) == [kind.value for kind in PackingKind]
