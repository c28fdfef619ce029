"""Many questions at once, each with an answer or a reason in bounded time."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from policies.audit.live.failures import CloudError, CredentialsError

WORKERS: Final = 8
"""Questions that are open at the same time."""

K = TypeVar("K")
T = TypeVar("T")


def gather(questions: Mapping[K, Callable[[], T]], seconds: float) -> Mapping[K, T | CloudError]:
    """The answer to each question, or why there is none; after `seconds` an answer that is still out counts as none.

    Raises CredentialsError as soon as one question meets it: no other can be answered.
    """
    answers: queue.SimpleQueue[tuple[K, T | BaseException]] = queue.SimpleQueue()
    open_questions = queue.SimpleQueue[K]()
    for key in questions:
        open_questions.put(key)
    for number in range(min(WORKERS, len(questions))):
        # A daemon: a server that sends a byte a minute must not keep the process from its end.
        threading.Thread(
            target=_work, args=(questions, open_questions, answers), name=f"gather-{number}", daemon=True
        ).start()
    try:
        return _collected(questions, answers, seconds)
    finally:
        _close(open_questions)


def _close(open_questions: queue.SimpleQueue[K]) -> None:
    """Leave no question to the workers: when all is answered there is none, and when it is given up nobody listens."""
    with contextlib.suppress(queue.Empty):
        while True:
            open_questions.get_nowait()


def _collected(
    questions: Mapping[K, Callable[[], T]],
    answers: queue.SimpleQueue[tuple[K, T | BaseException]],
    seconds: float,
) -> Mapping[K, T | CloudError]:
    found: dict[K, T | CloudError] = {}
    until = time.monotonic() + seconds
    while len(found) < len(questions):
        try:
            key, answer = answers.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            late = CloudError(f"no whole answer in {seconds:g} s; given up")
            return {key: found.get(key, late) for key in questions}
        if isinstance(answer, CredentialsError) or (
            isinstance(answer, BaseException) and not isinstance(answer, CloudError)
        ):
            raise answer
        found[key] = answer
    return {key: found[key] for key in questions}


def _work(
    questions: Mapping[K, Callable[[], T]],
    open_questions: queue.SimpleQueue[K],
    answers: queue.SimpleQueue[tuple[K, T | BaseException]],
) -> None:
    while True:
        try:
            key = open_questions.get_nowait()
        except queue.Empty:
            return
        try:
            answers.put((key, questions[key]()))
        except BaseException as error:  # noqa: BLE001 - raised again where the answers are collected
            answers.put((key, error))
