"""Trying again: what a store refuses for now is asked again, later and later, until a deadline."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

ResultT = TypeVar("ResultT")
_FIRST_SECONDS = 0.1
_MOST_SECONDS = 8.0


def retried(
    call: Callable[[], ResultT],
    *,
    passing: Callable[[Exception], bool],
    seconds: float,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> ResultT:
    """What `call` gives, once it raises nothing that is `passing`.

    The waits double, up to 8 s, each cut by up to a half at random, so that many hosts do not come back at once. The
    last error is raised where the next wait would end after so many seconds.
    """
    end = clock() + seconds
    pause = _FIRST_SECONDS
    while True:
        try:
            return call()
        except Exception as error:
            wait = pause * random.uniform(0.5, 1.0)
            if not passing(error) or clock() + wait > end:
                raise
        sleep(wait)
        pause = min(2 * pause, _MOST_SECONDS)
