"""Many questions at once: each has an answer or a reason, and what is given up is not asked any more."""

from __future__ import annotations

import threading
import time

from policies.audit.live.failures import CloudError
from policies.audit.live.gathering import WORKERS, gather


def test_every_question_has_its_answer() -> None:
    assert gather({number: (lambda it=number: it * it) for number in range(50)}, 60) == {
        number: number * number for number in range(50)
    }


def test_what_is_given_up_is_not_asked_any_more() -> None:
    """A thread that asks on in the background would still be there in whatever runs next."""
    going_on, asked = threading.Event(), list[int]()
    before = set(threading.enumerate())  # a server that hung in another test may still hold a thread

    def ask(number: int) -> int:
        asked.append(number)
        going_on.wait(30)
        return number

    found = gather({number: (lambda it=number: ask(it)) for number in range(4 * WORKERS)}, 0.5)
    going_on.set()
    deadline = time.monotonic() + 30
    while any(thread.name.startswith("gather-") for thread in set(threading.enumerate()) - before):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert len(asked) == WORKERS
    assert all(isinstance(answer, CloudError) for answer in found.values())
