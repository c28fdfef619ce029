"""From the thread of the engine to the event loop: one wake-up a turn for all streams, not one a token."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar, final

T = TypeVar("T")


@final
class Inbox(Generic[T]):
    """What has come for one answer and is not taken yet; on the event loop only. `full` is called at `most` things."""

    def __init__(self, *, most: int, full: Callable[[], None]) -> None:
        self._most: Final = most
        self._full: Final = full
        self._items: list[T] = []
        self._waiting: asyncio.Future[None] | None = None

    def put(self, item: T) -> None:
        """One more."""
        self._items.append(item)
        if len(self._items) == self._most:
            self._full()
        self.wake()

    def wake(self) -> None:
        """Let whoever waits go on, though nothing may have come."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def take(self) -> list[T]:
        """All that has come, at once; waits until something has, or until it is woken: then it may be nothing."""
        if not self._items:
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        taken, self._items = self._items, []
        return taken


@final
class Post(Generic[T]):
    """Carries things to inboxes. Given by any thread; brought when `send_off` is called, all of them by one wake-up."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._lock: Final = threading.Lock()
        self._given: list[tuple[Inbox[T], T]] = []
        self.wake_ups = 0
        """Of the loop, so far."""

    def give(self, inbox: Inbox[T], item: T) -> None:
        """`item` for `inbox`, with the next that is sent off."""
        with self._lock:
            self._given.append((inbox, item))

    def send_off(self) -> None:
        """Bring all that was given. Nothing happens where the loop is closed: then nobody waits."""
        with self._lock:
            if not self._given:
                return
            bag, self._given = self._given, []
        self.wake_ups += 1
        try:
            self._loop.call_soon_threadsafe(_hand_out, bag)
        except RuntimeError:
            if not self._loop.is_closed():
                raise


def _hand_out(bag: Iterable[tuple[Inbox[T], T]]) -> None:
    for inbox, item in bag:
        inbox.put(item)
