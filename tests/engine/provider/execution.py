"""The execution of a Cloud Run job: its own script, under bash, with a gcloud that asks the loopback Google Cloud."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.engine.provider.cloud import Cloud

COMMANDS: Final = Path(__file__).parent / "commands"
"""`gcloud`, and a `sleep` that is short."""
_MOST_SECONDS: Final = 40
"""Of one attempt: a script that waits longer waits for ever."""


def run(cloud: Cloud, job: Mapping[str, Any], *, fails: bool) -> str:
    """Run every attempt that the job allows; what went wrong, empty where nothing did.

    `fails`: the model that is copied has another digest than its manifest says.
    """
    task = job["template"]["template"]
    container = task["containers"][0]
    said = ""
    for _ in range(int(task.get("maxRetries", 3)) + 1):
        said = _attempt(cloud, container, fails=fails)
        if not said:
            return ""
    return f"Error waiting to create Job: Error waiting for Creating Job: Error code 9, message: {said}"


def condition(failed: str) -> Mapping[str, str]:
    """The terminal condition of a job after an execution, of which `failed` says what went wrong."""
    if failed:
        return {"type": "Ready", "state": "CONDITION_FAILED", "message": failed}
    return {"type": "Ready", "state": "CONDITION_SUCCEEDED"}


def _attempt(cloud: Cloud, container: Mapping[str, Any], *, fails: bool) -> str:
    given = {each["name"]: each.get("value", "") for each in container.get("envs", ())}
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **given,
            "PATH": f"{COMMANDS}:{os.environ['PATH']}",
            "SPOTRAIL_WORLD": cloud.endpoint,
            "SPOTRAIL_VERDICT": "failed: model.safetensors has another digest" if fails else "",
            "TMPDIR": folder,
        }
        command = [*container.get("commands", ()), *container.get("args", ())]
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=_MOST_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"The execution was still running after {_MOST_SECONDS} seconds"
    if done.returncode == 0:
        return ""
    return f"The execution has failed: exit code {done.returncode}. Its log ends with: {done.stderr[-600:].strip()}"
