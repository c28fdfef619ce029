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

_SECONDS: Final = 60
"""An `up` comes so far within them, and ends within them once it is told to."""
_HEARD: Final = "^C received"
"""What the CLI says to the first Ctrl-C; the second one ends it at once."""


def killed(stand: Stand, type_: str) -> Ended:
    """An `up` whose CLI is killed while a resource of `type_` is made."""
    return _ended(stand, type_, lambda command, said: command.kill())


def interrupted(stand: Stand, type_: str) -> Ended:
    """An `up` that is interrupted twice while a resource of `type_` is made: Ctrl-C, and Ctrl-C again."""

    def twice(command: subprocess.Popen[str], said: Path) -> None:
        command.send_signal(signal.SIGINT)
        _wait(lambda: _HEARD in said.read_text("utf-8"), "the CLI heard no interrupt")
        command.send_signal(signal.SIGINT)

    return _ended(stand, type_, twice)


def _ended(stand: Stand, type_: str, end: Callable[[subprocess.Popen[str], Path], None]) -> Ended:
    faults = [{"on": "create", "type": type_, "kind": "hangs"}]
    environment = {**os.environ, **stand.environment, "SPOTRAIL_FAULTS": json.dumps(faults)}
    said = stand.folder / "said.txt"
    with language_host(stand.folder) as port, said.open("w", encoding="utf-8") as file:
        order = ["pulumi", "up", "--yes", "--skip-preview", "--non-interactive", "--stack", stand.name]
        order += served_at(port)
        command = subprocess.Popen(
            order, cwd=stand.folder, env=environment, stdout=file, stderr=subprocess.STDOUT, text=True
        )
        try:
            _wait(lambda: type_ in pending(stand), f"no {type_} was begun")
            end(command, said)
            code = command.wait(_SECONDS)
        finally:
            command.kill()
    return Ended(code=code, stdout=said.read_text("utf-8"), stderr="")


def pending(stand: Stand) -> dict[str, str]:
    """What the backend has of operations that have not ended, by the type of the resource."""
    file = stand.folder / "backend" / ".pulumi" / "stacks" / PROJECT / f"{stand.name}.json"
    try:
        latest: dict[str, Any] = json.loads(file.read_text("utf-8"))["checkpoint"]["latest"] or {}
    except (OSError, ValueError):  # it is being written
        return {}
    return {each["resource"]["type"]: each["type"] for each in latest.get("pending_operations") or ()}


def _wait(reached: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + _SECONDS
    while not reached():
        if time.monotonic() > end:
            raise TimeoutError(otherwise)
        time.sleep(0.1)
