"""`--stack`: what is of another stack is refused by every command that reads one, before a figure is shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Command: TypeAlias = Callable[..., Any]
JSON = ("--format", "json", "--as-of", "2026-11-29")
DISK = "gcp:compute/disk:Disk"


def state(stack: str, mibps: int) -> str:
    """A stack of one Hyperdisk ML volume of 200 GiB: 16.00, and 0.12 for each MiB/s."""
    inputs = {"type": "hyperdisk-ml", "size": 200, "provisionedThroughput": mibps, "zone": "us-central1-b"}
    volume = {"urn": f"urn:pulumi:{stack}::reef::{DISK}::v", "custom": True, "type": DISK, "id": "v", "inputs": inputs}
    return json.dumps({"version": 3, "deployment": {"resources": [volume]}})


@pytest.fixture
def files(tmp_path: Path, spotrail: Command) -> Path:
    (tmp_path / "dev.json").write_text(state("dev", 400))
    (tmp_path / "both.json").write_text(state("dev", 400) + state("prod", 1200))
    (tmp_path / "kept.json").write_text(spotrail("estimate", "dev.json", *JSON, cwd=tmp_path).stdout)
    return tmp_path


@pytest.mark.parametrize(("stack", "monthly"), [("dev", "64.00"), ("acme/reef/prod", "160.00")])
def test_of_a_file_of_several_stacks_one_is_read(spotrail: Command, files: Path, stack: str, monthly: str) -> None:
    found = spotrail("estimate", "both.json", "--stack", stack, *JSON, cwd=files).document
    assert found["monthly"] == monthly
    assert spotrail("check", "both.json", "-s", stack, "--budget", monthly, *JSON, cwd=files).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("estimate", "dev.json"), "dev.json: it is of the stack reef/dev; --stack asks for qa"),
        (("check", "dev.json"), "dev.json: it is of the stack reef/dev; --stack asks for qa"),
        (("diff", "dev.json", "dev.json"), "dev.json: it is of the stack reef/dev; --stack asks for qa"),
        (("diff", "kept.json", "dev.json"), "kept.json: it is of the stack reef/dev; --stack asks for qa"),
        (("estimate", "both.json"), "it is of the stack reef/dev, it is of the stack reef/prod; --stack asks for qa"),
    ],
)
def test_another_stack_is_refused(spotrail: Command, files: Path, arguments: tuple[str, ...], words: str) -> None:
    ran = spotrail(*arguments, "--stack", "qa", cwd=files)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert words in ran.stderr


@pytest.mark.parametrize("command", [("plan", "dev"), ("check", "dev"), ("diff", "dev", "dev")])
def test_an_environment_is_the_stack_of_its_name(spotrail: Command, command: tuple[str, ...]) -> None:
    refused = spotrail(*command, "--stack", "prod")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "dev: it is of the stack spotrail/dev; --stack asks for prod" in refused.stderr
    assert spotrail(*command, "--stack", "acme/spotrail/dev", "--as-of", "2026-11-29").stderr == ""


def test_a_kept_estimate_of_the_stack_is_compared(spotrail: Command, files: Path) -> None:
    found = spotrail("diff", "kept.json", "both.json", "--stack", "dev", *JSON, cwd=files).document
    assert found["delta"]["monthly"] == "0.00"


@pytest.mark.parametrize("name", ["", "a/b/c/d", "de v"])
def test_what_is_no_name_is_bad_usage(spotrail: Command, name: str) -> None:
    ran = spotrail("estimate", "-", "--stack", name)
    assert ran.returncode == 2
    assert "is no name of a stack" in " ".join(ran.stderr.split())


@pytest.mark.parametrize("command", ["plan", "estimate", "diff", "check"])
def test_help_teaches(spotrail: Command, command: str) -> None:
    words = " ".join(spotrail(command, "--help").stdout.split())
    assert "--stack NAME" in words
    assert "organization/project/dev" in words
