"""A run that is small enough to be killed and started again in seconds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
STEPS = 24


def write_text(folder: Path, *, lines: int = 75) -> list[Path]:
    """Twelve files of text, some of which are kept for validation."""
    paths = [folder / f"part-{number:02}.txt" for number in range(12)]
    for start, path in enumerate(paths):
        numbers = range(lines * start, lines * start + lines)
        path.write_text("".join(f"The {n}th line says that {n} and {n} make {2 * n}.\n" for n in numbers))
    return paths


def small_config(data: Path, **changes: Any) -> dict[str, Any]:
    """One layer of everything that has a state: Kron with a rotation, momentum, warm-up, and a decaying rate."""
    return {
        "name": "small",
        "steps": STEPS,
        "model": {"d_model": 16, "n_layers": 1, "d_feed_forward": 24, "mixers": [{"type": "linear", "n_heads": 2}]},
        "data": {"sources": [{"path": str(data)}]},
        "optim": {"type": "kron", "dense_steps": 6, "refresh_period": 4, "anneal_steps": 12},
        "learning": {"warmup_steps": 4, "weight_decay": 0.1},
        "batch": {"size": 4},
        "checkpoint": {"every": 5},
        "log": {"validate_every": 10, "validation_batches": 1, "sample_every": 0, "tensorboard": False},
    } | changes


@dataclass(frozen=True, kw_only=True)
class SmallRun:
    """Its files, and ways of starting it."""

    config: Path
    run_dir: Path
    compiled: Path
    """Programs that an earlier attempt has compiled."""

    @classmethod
    def make(cls, folder: Path, config: Mapping[str, Any], compiled: Path) -> SmallRun:
        folder.mkdir()
        (folder / "run.yaml").write_text(yaml.safe_dump(dict(config)))
        return cls(config=folder / "run.yaml", run_dir=folder / "run", compiled=compiled)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Begin an attempt in a process of its own, on one device."""
        line = ["training", "--config", str(self.config), "--run-dir", str(self.run_dir), *arguments]
        return self.module(*line)

    def module(self, name: str, *arguments: str) -> subprocess.Popen[str]:
        """A module in a process of its own, on one device, with the programs that were compiled."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("XLA_")} | {
            "JAX_PLATFORMS": "cpu",
            "JAX_COMPILATION_CACHE_DIR": str(self.compiled),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        line = [sys.executable, "-m", name, *arguments]
        return subprocess.Popen(
            line, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    @staticmethod
    def wait_until_it_listens(process: subprocess.Popen[str]) -> None:
        """Until an attempt has taken SIGTERM into its own hands, which is before its imports."""
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            status = Path(f"/proc/{process.pid}/status").read_text()
            caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
            if int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1:
                return
            time.sleep(0.001)

    def finish(self, *arguments: str) -> tuple[int, str]:
        """One attempt to its end: its exit code and what it said."""
        process = self.start(*arguments)
        _, said = process.communicate(timeout=300)
        return process.returncode, said

    def lines(self) -> list[dict[str, Any]]:
        """The metrics that are whole."""
        path = self.run_dir / "metrics.jsonl"
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def wait_for_step(self, step: int, process: subprocess.Popen[str]) -> None:
        """Until an attempt has finished a step, or its end."""
        deadline = time.monotonic() + 300
        while process.poll() is None and time.monotonic() < deadline:
            if any(line.get("step", 0) >= step for line in self.lines()):
                return
            time.sleep(0.005)

    def final(self) -> dict[str, Any]:
        """The last line of a finished run."""
        (found,) = [line["final"] for line in self.lines() if "final" in line]
        return dict(found)
