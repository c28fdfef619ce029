"""Patience: when it begins anew, and when it is over."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from inference.weights.sources.attempts import Attempts, Halt, Patience, tried
from inference.weights.sources.errors import CloudError, PassingError, StalledError, StoppedError


def fail_until_over(patience: Patience, error: PassingError, *, gained: bool, most: int) -> int:
    """How many tries there are before patience is over, or `most`."""
    attempts = Attempts(patience, Halt(threading.Event()))
    for number in range(most):
        try:
            attempts.failed(error, gained=gained)
        except CloudError:
            return number
    return most


@pytest.mark.parametrize(
    ("error", "gained", "endless"),
    [(PassingError("cut"), False, False), (PassingError("cut"), True, True), (StalledError("slow"), True, False)],
)
def test_only_what_brings_something_at_speed_begins_anew(error: PassingError, gained: bool, endless: bool) -> None:
    tries = fail_until_over(Patience(retry_seconds=0.35), error, gained=gained, most=4)
    assert (tries == 4) is endless


def test_what_comes_at_last_is_given_and_what_does_not_pass_is_raised() -> None:
    answers: Iterator[str | Exception] = iter([PassingError("no"), "yes", KeyError("bug")])

    def call() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    halt = Halt(threading.Event())
    assert tried(call, Patience(), halt) == "yes"
    with pytest.raises(KeyError):
        tried(call, Patience(), halt)


@pytest.mark.parametrize("own", [True, False])
def test_no_wait_outlives_a_stop(own: bool) -> None:
    stop = threading.Event()
    halt = Halt(stop)
    timer = threading.Timer(0.05, halt.fail if own else stop.set)
    timer.start()
    began = time.monotonic()
    with pytest.raises(StoppedError):
        halt.wait(30)
    assert time.monotonic() - began < 10
    timer.join()
    assert stop.is_set() is not own  # the stop of the program is the program's


@pytest.mark.parametrize("name", ["retry_seconds", "connect_seconds", "stall_seconds", "stall_bytes"])
def test_numbers_that_wait_for_nothing_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="every number is above 0"):
        Patience(**{name: 0})
