"""An `up` that does not end by itself: the provider never answers, and somebody ends the CLI meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.engine.stand import PROJECT, Ended, Stand, language_host, served_at

DISK: Final = "gcp:compute/disk:Disk"
_SECONDS: Final = 60
"""An `up` comes so far within them, and ends within them once it is told to."""
HEARD: Final = "^C received"
"""What the CLI says to the first Ctrl-C; the second one ends it at once."""


def killed(stand: Stand, name: str) -> Ended:
    """An `up` whose CLI is killed while the disk `name` is made, and nothing else."""
    return _ended(stand, name, lambda command, said: command.kill())


def interrupted(stand: Stand, name: str) -> Ended:
    """An `up` that is interrupted twice while the disk `name` is made: Ctrl-C, and Ctrl-C again."""

    def twice(command: subprocess.Popen[str], said: Path) -> None:
        command.send_signal(signal.SIGINT)
        _wait(lambda: HEARD in said.read_text("utf-8"), command, said)
        command.send_signal(signal.SIGINT)

    return _ended(stand, name, twice)


def _ended(stand: Stand, name: str, end: Callable[[subprocess.Popen[str], Path], None]) -> Ended:
    faults = [{"on": "create", "type": DISK, "name": name, "kind": "hangs"}]
    environment = {**os.environ, **stand.environment, "SPOTRAIL_FAULTS": json.dumps(faults)}
    said = stand.folder / "said.txt"
    with language_host(stand.folder) as port, said.open("w", encoding="utf-8") as file:
        order = ["pulumi", "up", "--yes", "--skip-preview", "--non-interactive", "--stack", stand.name]
        order += served_at(port)
        command = subprocess.Popen(
            order, cwd=stand.folder, env=environment, stdout=file, stderr=subprocess.STDOUT, text=True
        )
        try:
            _wait(lambda: pending(stand) == {name: "creating"}, command, said)
            end(command, said)
            code = command.wait(_SECONDS)
        finally:
            command.kill()
    return Ended(code=code, stdout=said.read_text("utf-8"), stderr="")


def pending(stand: Stand) -> dict[str, str]:
    """What the backend has of operations that have not ended, by the name of the resource."""
    file = stand.folder / "backend" / ".pulumi" / "stacks" / PROJECT / f"{stand.name}.json"
    try:
        latest: dict[str, Any] = json.loads(file.read_text("utf-8"))["checkpoint"]["latest"] or {}
    except (OSError, ValueError):  # it is being written
        return {}
    return {
        each["resource"]["urn"].rpartition("::")[2]: each["type"] for each in latest.get("pending_operations") or ()
    }


def _wait(reached: Callable[[], bool], command: subprocess.Popen[str], said: Path) -> None:
    end = time.monotonic() + _SECONDS
    while not reached():
        if command.poll() is not None or time.monotonic() > end:
            raise TimeoutError(f"the up did not come so far; it said {said.read_text('utf-8')}")
        time.sleep(0.1)
