"""`spotrail` as a process: its streams, its signals, its surroundings. The program that it runs is a small one."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SPOTRAIL = f"{sys.executable} -c 'from scripts.cli import main; main()'"
PROGRAM = "import pulumi, sys, time\npulumi.export('is', 'Größe')\nsys.stdout.flush()\n"
SLOW = f"{PROGRAM}open('started', 'w').close()\ntime.sleep(60)\n"
VOLUME = {
    "urn": "urn:pulumi:dev::small::gcp:compute/disk:Disk::volume",
    "custom": True,
    "type": "gcp:compute/disk:Disk",
    "id": "volume",
    "inputs": {"type": "hyperdisk-balanced", "size": 100, "zone": "us-central1-b"},
}
SHOW_CURSOR = b"\x1b[?25h"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: small\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {}\n")
    (tmp_path / "__main__.py").write_text(PROGRAM)
    return tmp_path


def shell(command: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which `spotrail` is the command."""
    line = f'spotrail() {{ {SPOTRAIL} "$@"; }}; {command}'
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **more}
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, cwd=cwd, env=environment, timeout=60, check=False
    )


def test_two_processes_say_the_same_of_the_real_stack() -> None:
    both = [
        subprocess.Popen(
            ["bash", "-c", f"{SPOTRAIL} plan dev --as-of 2026-11-29"], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    first, second = (process.communicate(timeout=60)[0] for process in both)
    assert first == second
    assert "dev costs" in first
    assert "\x1b" not in first


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("spotrail plan dev | head -n 1 >/dev/null; exit ${PIPESTATUS[0]}", 0, ""),
        ("spotrail check dev --budget 1 | head -n 1 >/dev/null; exit ${PIPESTATUS[0]}", 0, ""),
        ("spotrail check dev --format json | head -n 1 >/dev/null; exit ${PIPESTATUS[0]}", 0, ""),
        ("spotrail estimate - <&-", 2, "error: standard input is closed; name a file\n"),
        ("spotrail plan --help | true; exit ${PIPESTATUS[0]}", 0, ""),
        (
            "spotrail plan dev >/dev/full",
            2,
            "error: standard output: cannot be written: No space left on device\n",
        ),
        ("spotrail plan dev >&-", 2, "error: standard output is closed; name a file with --output FILE\n"),
        ("spotrail plan dev -o plan.txt <&- >&- 2>&- && grep -q 'dev costs' plan.txt", 0, ""),
        ("spotrail plan nothing 2>/dev/full", 2, ""),
    ],
)
def test_streams_that_are_broken(project: Path, command: str, code: int, said: str) -> None:
    ran = shell(command, project)
    assert (ran.returncode, ran.stdout, ran.stderr) == (code, "", said)


def test_what_the_program_says_is_quoted_beside_the_plan(project: Path) -> None:
    (project / "__main__.py").write_text("import pulumi\nprint('\x1b[31mred')\npulumi.log.warn('careful')\n")
    ran = shell("spotrail plan dev", project)
    assert (ran.returncode, ran.stderr) == (0, "the program said:\n  | \\x1b[31mred\n  | warning: careful\n")
    assert shell("spotrail plan dev --quiet", project).stderr == ""


@pytest.mark.parametrize("encoding", ["ascii", "utf-16"])
def test_a_table_is_written_in_any_encoding(project: Path, encoding: str) -> None:
    ran = shell(f"spotrail plan dev | iconv -f {encoding} -t ascii//TRANSLIT", project, PYTHONIOENCODING=encoding)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "dev costs" in ran.stdout


@pytest.mark.parametrize(("options", "code"), [("--budget 100000", 0), ("--budget 1", 3), ("--budget change=1", 4)])
def test_a_terminal_gets_the_verdict_in_colour_and_a_pipe_without(tmp_path: Path, options: str, code: int) -> None:
    (tmp_path / "state.json").write_text(json.dumps({"version": 3, "deployment": {"resources": [VOLUME]}}))
    line = f"{SPOTRAIL} check {tmp_path}/state.json --allow-stale {options}"
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(ROOT)
        os.environ["TERM"] = "xterm"
        os.execv("/bin/bash", ["bash", "-c", f"exec {line}"])
    written = b""
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:  # how a terminal on Linux says that the other side has ended
            break
        written += part
        if not part:
            break
    _, status = os.waitpid(process, 0)
    piped = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert os.waitstatus_to_exitcode(status) == piped.returncode == code
    assert b"\x1b[" in written
    assert b"\x1b" not in piped.stdout


@pytest.mark.parametrize("columns", ["1", "²"])
def test_any_width_is_survived(project: Path, columns: str) -> None:
    ran = shell("spotrail plan dev", project, COLUMNS=columns)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "dev costs" in ran.stdout


def test_a_device_or_a_pipe_is_written_to_and_not_replaced(project: Path) -> None:
    os.mkfifo(project / "pipe")
    ran = shell("cat pipe & spotrail plan dev -o pipe; code=$?; wait; exit $code", project)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "dev costs" in ran.stdout
    assert (project / "pipe").is_fifo()


def test_a_link_and_the_rights_of_a_file_are_kept(project: Path) -> None:
    plan, link = project / "plan.txt", project / "link.txt"
    plan.write_text("old")
    plan.chmod(0o640)
    link.symlink_to("plan.txt")
    assert shell("spotrail plan dev -o link.txt", project).returncode == 0
    assert "dev costs" in plan.read_text(encoding="utf-8")
    assert plan.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()


def test_packages_of_our_names_elsewhere_are_theirs(project: Path) -> None:
    for name in ("infra", "policies"):
        (project / name).mkdir()
        (project / name / "__init__.py").write_text("OWNER = 'them'\n")
    (project / "__main__.py").write_text("import infra, policies\nassert infra.OWNER == policies.OWNER == 'them'\n")
    ran = shell("spotrail plan dev", project, PYTHONPATH=f"{project}:{ROOT}")
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_with_the_cursor_shown_and_no_program_left(
    project: Path, number: signal.Signals, code: int
) -> None:
    (project / "__main__.py").write_text(SLOW)
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(project)
        os.environ["TERM"] = "xterm"
        os.execv("/bin/bash", ["bash", "-c", f"exec {SPOTRAIL} plan dev"])
    written = b""
    sent = False
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if not sent and (project / "started").exists():
            os.kill(process, number)
            sent = True
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                written += os.read(terminal, 1 << 16)
            except OSError:  # how a terminal on Linux says that the other side has ended
                break
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == code
    assert written.count(SHOW_CURSOR) == 1
    assert b"Traceback" not in written
