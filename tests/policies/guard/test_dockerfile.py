"""The image of the guard, read as Docker would: there is no Docker where these tests run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.cli import COMMANDS

ROOT = Path(__file__).parents[3]
FILE = ROOT / "policies" / "Dockerfile"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def instructions() -> list[tuple[str, str]]:
    """Each instruction with its arguments; comments gone, continued lines joined."""
    lines = [line for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def stages() -> Iterator[list[tuple[str, str]]]:
    found: list[list[tuple[str, str]]] = []
    for word, rest in instructions():
        if word == "FROM":
            found.append([])
        found[-1].append((word, rest))
    yield from found


def copied() -> list[str]:
    """What is taken from the repository."""
    sources = (rest.split()[:-1] for word, rest in instructions() if word == "COPY" and not rest.startswith("--from"))
    return [source for each in sources for source in each]


def test_it_knows_only_instructions_of_docker() -> None:
    assert {word for word, _ in instructions()} <= {"FROM", "ENV", "WORKDIR", "RUN", "COPY", "USER", "ENTRYPOINT"}


@pytest.mark.parametrize("source", copied())
def test_what_is_copied_is_in_the_repository(source: str) -> None:
    listed = subprocess.run(["git", "ls-files", source], cwd=ROOT, capture_output=True, text=True, check=True)
    assert listed.stdout, source


def test_all_that_the_distribution_is_built_from_is_copied() -> None:
    needed = {*PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"], PROJECT["project"]["readme"]}
    needed |= {"pyproject.toml", "uv.lock", *PROJECT["project"]["license-files"]}
    assert set(copied()) == needed


def test_the_base_has_a_python_that_we_run_on() -> None:
    bases = {rest.split()[0] for word, rest in instructions() if word == "FROM"}
    assert bases == {"python:3.11-slim"}
    assert PROJECT["project"]["requires-python"] == ">=3.11"


def test_the_entry_point_is_a_command_that_exists() -> None:
    (entry,) = (json.loads(rest) for word, rest in instructions() if word == "ENTRYPOINT")
    assert entry == ["spotrail", "guard"]
    assert PROJECT["project"]["scripts"][entry[0]] == "scripts.cli:main"
    assert entry[1] in COMMANDS
    (path,) = (rest for word, rest in list(stages())[-1] if word == "ENV")
    assert "PATH=/opt/spotrail/bin:$PATH" in path


def test_it_does_not_run_as_root() -> None:
    *_, last = stages()
    words = [word for word, _ in last]
    (user,) = (rest for word, rest in last if word == "USER")
    assert user == "10001"
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert "RUN" not in words[words.index("USER") :]


def test_its_packages_are_the_extra_of_live_machines() -> None:
    runs = " ".join(rest for word, rest in instructions() if word == "RUN")
    assert "--extra live" in runs
    assert "live" in PROJECT["project"]["optional-dependencies"]
    left_out = re.findall(r"--no-install-package (\S+)", runs)
    declared = {re.split(r"[^a-z0-9-]", each)[0] for each in PROJECT["project"]["dependencies"]}
    assert set(left_out) == {name for name in declared if name.startswith("pulumi")}


GUARD_ALONE = """
import sys
for name in ("pulumi", "pulumi_gcp", "pulumi_policy"):
    sys.modules[name] = None
import policies.guard.running
from scripts.cli import run
print(run(["guard", "--project", "p", "--endpoint", "http://127.0.0.1:1"]))
"""


def test_the_guard_runs_without_what_is_left_out() -> None:
    line = [sys.executable, "-c", GUARD_ALONE]
    ran = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert ran.stdout.strip() == "5", ran.stderr
    assert "nothing answers there" in ran.stderr
