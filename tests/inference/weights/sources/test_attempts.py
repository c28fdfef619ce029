"""Patience: when it begins anew, and when it is over."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator

import pytest

from inference.weights.sources.attempts import Attempts, Halt, Patience, Trouble, tried
from inference.weights.sources.errors import CloudError, PassingError, StalledError, StoppedError


def fail_until_over(patience: Patience, error: PassingError, *, gained: bool, most: int) -> int:
    """How many tries there are before patience is over, or `most`."""
    heard: list[Trouble] = []
    attempts = Attempts(patience, Halt(threading.Event()), heard.append)
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
    heard: list[Trouble] = []
    assert tried(call, Patience(), halt, heard.append) == "yes"
    with pytest.raises(KeyError):
        tried(call, Patience(), halt, heard.append)
    assert [(each.what, each.tries) for each in heard] == [("no", 1)]


def test_each_wait_is_told_with_its_number_and_its_end() -> None:
    heard: list[Trouble] = []
    attempts = Attempts(Patience(retry_seconds=60), Halt(threading.Event()), heard.append)
    began = time.monotonic()
    for gained in (False, False, True):  # what came anew begins the count anew
        attempts.failed(PassingError("refused"), gained=gained)
    assert [each.tries for each in heard] == [1, 2, 1]
    assert [each.ends - began == pytest.approx(60, abs=5) for each in heard] == [True] * 3
    assert heard[0].ends == heard[1].ends < heard[2].ends


@pytest.mark.parametrize(("tries", "says"), [(1, "tried once"), (2, "tried 2 times")])
def test_trouble_says_until_when(tries: int, says: str) -> None:
    said = str(Trouble(what="gs://models: refused", tries=tries, ends=time.monotonic() + 100.4))
    match = re.fullmatch(rf"gs://models: refused; {says}, and again until (\d\d:\d\d:\d\d) \(100 s\)", said)
    assert match is not None
    allowed = [time.strftime("%H:%M:%S", time.localtime(time.time() + more)) for more in range(96, 102)]
    assert match[1] in allowed


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
