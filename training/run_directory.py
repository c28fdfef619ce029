"""The folder of one run: configuration, metrics, goodput; the same folder again goes on with the same run."""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import yaml

from training.checkpoint.names import CHECKPOINTS
from training.durable import sync
from training.errors import TrainingError, unwritable
from training.yaml_file import read


@final
class RunDirectory:
    """Holds its folder for this process alone, until `close`.

    Raises TrainingError where the folder cannot be made, or another process runs in it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = (path / ".lock").open("a")
        except OSError as error:
            raise unwritable(f"--run-dir {path}", error, "name a folder that can be written") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise TrainingError(
                f"--run-dir {path}: another run is at work there; wait for it, or name another"
            ) from None

    @property
    def metrics(self) -> Path:
        """One JSON line a step."""
        return self.path / "metrics.jsonl"

    @property
    def goodput(self) -> Path:
        """The ledger of all attempts."""
        return self.path / "goodput.jsonl"

    @property
    def tensorboard(self) -> Path:
        """Event files of TensorBoard."""
        return self.path / "tensorboard"

    @property
    def checkpoints(self) -> Path:
        """Where the checkpoints are unless the configuration names a root."""
        return self.path / CHECKPOINTS

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Keep the configuration as it is after defaults and overrides. Raises TrainingError where it cannot be."""
        _replace(self.path / "config.yaml", yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True).encode())

    def read_config(self) -> dict[str, Any]:
        """The configuration of the attempt before; empty where there was none, or where it cannot be read."""
        try:
            return read(self.path / "config.yaml")
        except TrainingError:
            return {}

    def cut_metrics(self, step: int) -> int:
        """Take away the lines of steps that will be done again, and what a kill has cut off; how many went."""
        if not self.metrics.exists():
            return 0
        lines = self.metrics.read_bytes().split(b"\n")
        kept = [line for line in lines if _step(line) is not None and (_step(line) or 0) <= step]
        _replace(self.metrics, b"".join(line + b"\n" for line in kept))
        return sum(1 for line in lines if line) - len(kept)

    def close(self) -> None:
        """Let another process have the folder."""
        self._lock.close()


def _step(line: bytes) -> int | None:
    """The step of a metrics line; None for what is none, such as the line at the end of a finished run."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    step = value.get("step") if isinstance(value, dict) else None
    return step if isinstance(step, int) else None


def _replace(path: Path, body: bytes) -> None:
    """Write a file so that a kill leaves the old one or the new one. Raises TrainingError or MachineError."""
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.write_bytes(body)
        sync(fresh)
        fresh.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise unwritable(str(path), error, "name a folder that can be written with --run-dir") from None
