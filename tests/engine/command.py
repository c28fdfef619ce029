"""Where the official Pulumi CLI of these tests comes from.

A `pulumi` on the PATH is used as it is where its version is supported; else the one that was built before, in the
user's cache folder; else it is built there, once, from the Go module beside this file. `python -m tests.engine.command`
does that and prints the path of the program; the tests themselves only look, and skip where there is none.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, final

Version: TypeAlias = tuple[int, int, int]

MODULE: Final = Path(__file__).with_name("cli")
"""The Go module that pins the CLI."""
PACKAGE: Final = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
STAMP: Final = "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version"
"""The variable that holds the version which the CLI prints."""
OLDEST: Final[Version] = (3, 272, 0)
"""The SDK that pyproject.toml asks for; a CLI that is older does not know all that it sends."""
PROGRAM: Final = "pulumi"
_PINNED: Final = re.compile(r"^\s*github\.com/pulumi/pulumi/pkg/v3 v(\d+\.\d+\.\d+)", re.MULTILINE)
_PRINTED: Final = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")
_PATIENCE: Final = 30.0
"""Seconds between two words on a build that goes on."""
_ANSWER: Final = 30.0
"""Seconds that a `pulumi` has to say its version."""


class BuildError(Exception):
    """The CLI could not be built: the message says in one line why."""


@final
@dataclass(frozen=True, kw_only=True)
class Found:
    """What there is on this machine."""

    on_path: Path | None = None
    """The `pulumi` on the PATH."""
    version: Version | None = None
    """What that one says it is; None where it says nothing that can be read."""
    cached: Path | None = None
    """The one that was built before."""
    go: Path | None = None
    """Go, which could build it."""


@final
@dataclass(frozen=True, kw_only=True)
class Decision:
    """Which `pulumi` the tests run, or why none."""

    program: Path | None = None
    reason: str = ""
    """One line, where there is no program."""
    buildable: bool = False
    """Whether a build would help."""


def supported(version: Version | None) -> bool:
    """Whether a CLI of that version is used as it is."""
    return version is not None and OLDEST <= version < (OLDEST[0] + 1, 0, 0)


def decide(found: Found) -> Decision:
    """The one on the PATH, else the one that was built, else why there is none."""
    if found.on_path and supported(found.version):
        return Decision(program=found.on_path)
    if found.cached:
        return Decision(program=found.cached)
    why = f"no pulumi of a supported version ({shown(OLDEST)} or later): {_lack(found)}"
    if found.go:
        return Decision(reason=f"{why}; `make engine` builds one", buildable=True)
    return Decision(reason=f"{why}, and no go on the PATH to build it; install Pulumi's CLI or Go")


def _lack(found: Found) -> str:
    if not found.on_path:
        return "none on the PATH"
    return f"{found.on_path} {'is ' + shown(found.version) if found.version else 'says no version'}"


def shown(version: Version) -> str:
    """`3.272.0`."""
    return ".".join(map(str, version))


def read_version(printed: str) -> Version | None:
    """The version in what `pulumi version` prints; None where it is none. What a pre-release adds is left out."""
    match = _PRINTED.match(printed.strip())
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def pinned(module: Path = MODULE) -> str:
    """The version that the Go module pins: `3.274.1`."""
    match = _PINNED.search((module / "go.mod").read_text(encoding="utf-8"))
    if match is None:
        raise BuildError(f"{module / 'go.mod'} requires no github.com/pulumi/pulumi/pkg/v3")
    return match[1]


def cache_of(environment: Mapping[str, str], version: str) -> Path:
    """Where a built CLI of `version` is kept: outside the tree, one folder a version."""
    home = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME") or Path.home()) / ".cache")
    return Path(home) / "spotrail" / f"pulumi-{version}" / PROGRAM


def look(environment: Mapping[str, str]) -> Found:
    """What there is on this machine."""
    path = environment.get("PATH", "")
    on_path, go = shutil.which(PROGRAM, path=path), shutil.which("go", path=path)
    cached = cache_of(environment, pinned())
    return Found(
        on_path=Path(on_path) if on_path else None,
        version=_version_of(Path(on_path), environment) if on_path else None,
        cached=cached if os.access(cached, os.X_OK) else None,
        go=Path(go) if go else None,
    )


def _version_of(program: Path, environment: Mapping[str, str]) -> Version | None:
    quiet = {**environment, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        said = subprocess.run([program, "version"], env=quiet, capture_output=True, text=True, timeout=_ANSWER)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return read_version(said.stdout) if said.returncode == 0 else None


def build(module: Path, target: Path, go: Path, environment: Mapping[str, str]) -> None:
    """Build the CLI into `target`, unless another process has done so meanwhile. Raises BuildError."""
    version = pinned(module)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone(target.parent):
        if target.exists():
            return
        for left in target.parent.glob(f"{PROGRAM}.*.part"):  # of a build that was killed
            left.unlink()
        part = target.with_name(f"{PROGRAM}.{os.getpid()}.part")
        _tell(f"building Pulumi's CLI {version} into {target.parent}, once: some 6 minutes on 2 cores ...")
        _run_go(module, part, version, go, environment)
        if _version_of(part, environment) != read_version(version):
            raise BuildError(f"what was built does not say that it is {version}")
        part.replace(target)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of `folder`; the system gives it back when the process ends, however it ends."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run_go(module: Path, part: Path, version: str, go: Path, environment: Mapping[str, str]) -> None:
    stamp = f"-s -w -X {STAMP}=v{version}"
    order: list[str | Path] = [
        go,
        "build",
        "-trimpath",
        "-tags",
        "osusergo grpcnotrace",
        "-ldflags",
        stamp,
        "-o",
        part,
        PACKAGE,
    ]
    began = time.monotonic()
    with subprocess.Popen(order, cwd=module, env=environment, stderr=subprocess.PIPE, text=True) as process:
        while True:
            try:
                _, complaint = process.communicate(timeout=_PATIENCE)
                break
            except subprocess.TimeoutExpired:
                _tell(f"  {time.monotonic() - began:.0f} s")
    if process.returncode:
        last = (complaint.strip() or f"exit code {process.returncode}").splitlines()[-1]
        raise BuildError(f"go build of Pulumi's CLI {version} failed: {last}")


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Print the path of a CLI, built if need be; exit 1 with one line where none can be had."""
    found = look(os.environ)
    decision = decide(found)
    if decision.buildable and found.go:
        target = cache_of(os.environ, pinned())
        try:
            build(MODULE, target, found.go, os.environ)
        except BuildError as error:
            sys.exit(str(error))
        decision = Decision(program=target)
    if decision.program is None:
        sys.exit(decision.reason)
    print(decision.program)


if __name__ == "__main__":
    main()
