"""The training image: what a slice of a stack asks of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys

from tests.dockerfiles import ROOT, Dockerfile

IMAGE = Dockerfile(path=ROOT / "training" / "Dockerfile")
WORKER = (ROOT / "infra" / "templates" / "worker.sh.j2").read_text("utf-8")


def test_it_trains() -> None:
    (entry,) = (json.loads(rest) for word, rest in IMAGE.instructions if word == "ENTRYPOINT")
    assert entry == ["python", "-m", "training"]
    assert "--extra train" in IMAGE.runs


def test_the_notice_of_a_preemption_finds_its_trainers() -> None:
    (pattern,) = re.findall(r"trainers='(.*)'", WORKER)
    assert re.search(pattern, "python -m training --config run.yaml")


def test_a_slice_joins_its_head_with_it() -> None:
    assert "--entrypoint ray" in WORKER
    assert "--extra cluster" in IMAGE.runs
    assert "/bin/ray" in IMAGE.runs


WITHOUT_PULUMI = """
import sys
for name in ("pulumi", "pulumi_gcp", "pulumi_policy"):
    sys.modules[name] = None
import training.loop, training.commands.train, training.commands.export
"""


def test_it_trains_without_what_is_left_out() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_PULUMI], cwd=ROOT, check=True, timeout=300)
