"""The notice of preemption, with real signals and a real process that is ended in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from training.preemption import Notice


@pytest.fixture
def notice() -> Iterator[Notice]:
    made = Notice(grace_seconds=30)
    yield made
    made.close()


def wait_until_given(notice: Notice) -> None:
    deadline = time.monotonic() + 10
    while not notice.given and time.monotonic() < deadline:
        time.sleep(0.001)


def test_sigterm_is_noticed_and_ends_nothing(notice: Notice) -> None:
    assert not notice.given
    assert notice.seconds_left == 30
    os.kill(os.getpid(), signal.SIGTERM)
    wait_until_given(notice)
    assert notice.given
    assert 0 < notice.seconds_left < 30
    assert notice.seconds_since == pytest.approx(30 - notice.seconds_left, abs=1)


def test_a_second_signal_changes_nothing(notice: Notice) -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    wait_until_given(notice)
    time.sleep(0.05)
    before = notice.seconds_left
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.05)
    assert notice.seconds_left < before


def test_the_signal_is_given_back() -> None:
    former = signal.getsignal(signal.SIGTERM)
    Notice().close()
    assert signal.getsignal(signal.SIGTERM) is former


def test_a_loop_that_does_not_come_round_is_left() -> None:
    left: list[int] = []
    came = threading.Event()
    notice = Notice(grace_seconds=0.05, leave=lambda code: (left.append(code), came.set())[0])
    os.kill(os.getpid(), signal.SIGTERM)
    assert came.wait(10)
    notice.close()
    assert left == [6]


def test_a_loop_that_has_settled_is_not() -> None:
    left: list[int] = []
    notice = Notice(grace_seconds=0.05, leave=left.append)
    os.kill(os.getpid(), signal.SIGTERM)
    wait_until_given(notice)
    notice.settle()
    time.sleep(0.2)
    notice.close()
    assert left == []


def test_a_process_inside_c_code_is_ended_in_time() -> None:
    """One long call, as a compilation is: no bytecode of the main thread runs until it returns."""
    program = (
        "import hashlib\nfrom training.preemption import Notice\nNotice(grace_seconds=0.3)\n"
        "print('ready', flush=True)\nhashlib.pbkdf2_hmac('sha512', b'', b'', 10**9)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.terminate()
        _, said = process.communicate(timeout=60)
    assert process.returncode == 6
    assert b"preempted: nothing was committed within 0.3 s; the last checkpoint stands" in said
