"""Batches read ahead by a thread, so many and no more.

A batch is a function of its step, so what was read ahead and not used is nothing: who goes on later begins at the step
after the last one that he has trained on.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator

from training.data.batches import Batch, BatchSource


def prefetch(
    source: BatchSource, start: int, stop: int, depth: int, *, host: int = 0, hosts: int = 1
) -> Generator[Batch, None, None]:
    """The batches of steps `start` to `stop` - 1, at most `depth` of them read ahead; 0 reads each when asked for it.

    What goes wrong with a step is raised when its turn comes. The thread ends with the iterator, early
    where that is closed.
    """
    if depth < 1:
        return (source.batch(step, host, hosts) for step in range(start, stop))
    return _ahead(source, range(start, stop), depth, host, hosts)


def _ahead(source: BatchSource, steps: range, depth: int, host: int, hosts: int) -> Generator[Batch, None, None]:
    found: queue.SimpleQueue[Batch | BaseException] = queue.SimpleQueue()
    free = threading.Semaphore(depth)
    left = threading.Event()

    def read() -> None:
        try:
            for step in steps:
                free.acquire()
                if left.is_set():
                    return
                found.put(source.batch(step, host, hosts))
        except BaseException as error:  # noqa: BLE001 (raised again where the batch is asked for)
            found.put(error)

    reader = threading.Thread(target=read, name="prefetch", daemon=True)
    reader.start()
    try:
        for _ in steps:
            batch = found.get()
            if isinstance(batch, BaseException):
                raise batch
            free.release()
            yield batch
    finally:
        left.set()
        free.release()
        reader.join()
