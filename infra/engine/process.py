"""The process in which the program runs: started, waited for until a deadline, and never left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Final, final

from infra.engine.channel import Message, pair
from infra.engine.errors import ProgramFailed
from infra.engine.position import is_own

HOST: Final = """
import sys
sys.path.insert(0, sys.argv[1])
from infra.engine.language_host import main
main(int(sys.argv[2]))
"""
"""The language host, found before a package `infra` on the caller's PYTHONPATH; it takes the entry away again."""

_HOME: Final = str(Path(__file__).parents[2])
_FAREWELL: Final = 1.0
"""Seconds that the process has to end after its last word."""
_TICK: Final = 0.5
"""Seconds between two looks at whether the process still lives."""
_DUMP_LEAD: Final = 0.5
"""Seconds before the deadline at which a program that hangs writes down where it is."""
_KEPT: Final = 1 << 20
"""Bytes of the program's output that are kept, from its end."""
_QUOTED: Final = 10
"""Lines of output that an error quotes."""
_GARBLED: Final = (
    "the answer of the program's process cannot be read;"
    " has the program written to a file descriptor that is not its own?"
)
_NOT_INHERITED: Final = ("PULUMI_", "TRACEPARENT")
"""The user's own Pulumi settings must not change what a preview shows."""


@final
class Program:
    """A running language host. As a context manager it is gone when the block ends, and with it all that it started,
    but for what the program has put into a session of its own."""

    def __init__(self, folder: Path, timeout: float) -> None:
        """Start it in `folder`; `timeout` seconds from now it is stopped."""
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._line, theirs = pair()
        try:
            self._process = subprocess.Popen(
                # -P: neither our folder nor the caller's is on the program's path, as under Pulumi's own host.
                [sys.executable, "-P", "-c", HOST, _HOME, str(theirs.fileno())],
                cwd=folder,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        finally:
            theirs.close()

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._line.close()
        self._output.close()

    @property
    def dump_at(self) -> float:
        """When a program that hangs writes down where it is, on the clock of `time.monotonic`, which all share."""
        return self._deadline - _DUMP_LEAD

    def ask(self, message: Message) -> Message:
        """Send `message` and wait for the answer. Raises ProgramFailed where the process ends or hangs instead."""
        with contextlib.suppress(OSError):  # where it is gone, the answer is missing too
            self._line.send(message)
        while time.monotonic() < self._deadline:
            try:
                answer = self._line.receive(max(min(_TICK, self._deadline - time.monotonic()), 0.001))
                if answer is None:
                    break
                return answer
            except TimeoutError:
                pass
            except ValueError:
                raise ProgramFailed(_GARBLED) from None
            # What the program has forked may hold the line open when the process itself is dead.
            if self._process.poll() is not None:
                break
        raise ProgramFailed(self._obituary())

    def output(self) -> tuple[str, ...]:
        """The lines that the program printed, once it has had the time to print the last."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_FAREWELL)
        return self._lines()

    def _obituary(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_FAREWELL if time.monotonic() < self._deadline else 0)
        code = self._process.poll()
        lines = self._lines()
        if code is None:
            said = f"the program did not end within {self._timeout:g} s and was stopped{_where(lines)}"
            lines = lines[: _dump_start(lines)]
        elif code < 0:
            said = f"the program's process died of {signal.Signals(-code).name}"
        else:
            said = f"the program's process ended itself with exit code {code}, before Pulumi was told its end"
        return "\n".join([said, *(f"  | {line}" for line in lines[-_QUOTED:])])

    def _lines(self) -> tuple[str, ...]:
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(size - _KEPT, 0))
        return tuple(self._output.read().decode(errors="replace").splitlines())


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith(_NOT_INHERITED)}


def _dump_start(lines: tuple[str, ...]) -> int:
    """Where the dump of a program that hangs begins in its output."""
    starts = [place for place, line in enumerate(lines) if line.startswith("Timeout (")]
    return starts[-1] if starts else len(lines)


def _where(lines: tuple[str, ...]) -> str:
    """The program's own innermost line at the time, from that dump; nothing where it was not in its own code."""
    for line in lines[_dump_start(lines) :]:
        quoted = line.split('"')
        if len(quoted) == 3 and is_own(quoted[1]):
            return f"; it was at {quoted[1]}{quoted[2]}"
    return ""
