"""The image of the guard."""

from __future__ import annotations

import json
import subprocess
import sys

from scripts.cli import COMMANDS
from tests.dockerfiles import PROJECT, ROOT, Dockerfile

IMAGE = Dockerfile(path=ROOT / "policies" / "Dockerfile")


def test_the_entry_point_is_a_command_that_exists() -> None:
    (entry,) = (json.loads(rest) for word, rest in IMAGE.instructions if word == "ENTRYPOINT")
    assert entry == ["spotrail", "guard"]
    assert PROJECT["project"]["scripts"][entry[0]] == "scripts.cli:main"
    assert entry[1] in COMMANDS


def test_it_does_not_run_as_root() -> None:
    last = IMAGE.stages[-1]
    words = [word for word, _ in last]
    (user,) = (rest for word, rest in last if word == "USER")
    assert user == "10001"
    assert words.index("USER") < words.index("ENTRYPOINT")
    assert "RUN" not in words[words.index("USER") :]


def test_its_packages_are_the_extra_of_live_machines() -> None:
    assert "--extra live" in IMAGE.runs


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
