"""A file of JSON lines on a disk that is full, or that lost power."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest

from training.errors import MachineError
from training.goodput import Bucket, Ledger, account, read_ledger
from training.json_lines import JsonLines
from training.run_directory import RunDirectory


@pytest.mark.parametrize("before", ["", '{"n": 0}\n', '{"n": 0}\n{"n"', "{"])
def test_what_is_left_of_a_line_spoils_no_other(tmp_path: Path, before: str) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text(before)
    lines = JsonLines(path)
    lines.append({"n": 1})
    lines.append({"n": 2})
    lines.close()
    whole = [line for line in path.read_text().split("\n") if line.endswith("}")]
    assert [json.loads(line)["n"] for line in whole[-2:]] == [1, 2]
    assert path.read_text().startswith(before)


def test_an_attempt_after_a_full_disk_keeps_its_first_line(tmp_path: Path) -> None:
    path = tmp_path / "goodput.jsonl"
    path.write_text(
        '{"attempt": 1, "step": 4, "began": 0.0, "time": 8.0, "seconds": {"step": 8.0}}\n{"attempt": 1, "st'
    )
    ledger = Ledger(path, 2, resumed_at=3, clock=iter([10.0, 11.0]).__next__, began=10.0)
    ledger.close()
    lines = read_ledger(path)
    assert [(line["attempt"], line["step"]) for line in lines] == [(1, 4), (2, 3)]
    assert account(lines).seconds[Bucket.WASTED] == 8.0


def test_a_full_disk_is_told_with_the_file_and_the_file_can_be_closed(tmp_path: Path) -> None:
    lines = JsonLines(tmp_path / "lines.jsonl")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        lines.append({"text": "a" * 60})
        with pytest.raises(MachineError, match=r"lines\.jsonl: cannot be written: File too large$"):
            lines.append({"text": "b" * 60})
        run = RunDirectory(tmp_path / "run")
        with pytest.raises(MachineError, match=r"run/config\.yaml: File too large$"):
            run.write_config({"name": "c" * 200})
        run.close()
        assert {path.name for path in (tmp_path / "run").iterdir()} == {".lock"}
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    lines.close()


def test_a_number_that_json_has_not_is_refused(tmp_path: Path) -> None:
    lines = JsonLines(tmp_path / "lines.jsonl")
    with pytest.raises(ValueError, match="Out of range float values"):
        lines.append({"loss": float("nan")})
    lines.close()
