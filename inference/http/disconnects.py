"""The other side of an answer: whether it is still there, and whether it takes what it is sent.

A client that leaves is known to the server by one thing only, the message `http.disconnect`, and to hear it somebody
must be waiting for it from before the answer is asked for until it is over. A client that stays and takes nothing is
known by a send that does not end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self, final

from starlette.types import Message, Receive, Send


@final
class Client:
    """Who waits for an answer; to be entered before the answer is asked for, behind the body.

    `left` is called once, as soon as the client leaves or has been dropped. `cut` cuts the connection; it is called by
    `drop`, and where a send takes longer than `patience` seconds.
    """

    def __init__(
        self, receive: Receive, send: Send, *, left: Callable[[], None], cut: Callable[[], None], patience: float
    ) -> None:
        self._receive: Final = receive
        self._send: Final = send
        self._left: Final = left
        self._cut: Final = cut
        self._patience: Final = patience
        self._loop: Final = asyncio.get_running_loop()
        self._listening: asyncio.Task[None] | None = None
        self._sending_since: float | None = None
        self._look: asyncio.TimerHandle | None = None
        self.here = True
        """Whether it may still be answered."""
        self.stalled = False
        """Whether it was dropped."""

    async def __aenter__(self) -> Self:
        self._listening = asyncio.create_task(self._listen())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._look is not None:
            self._look.cancel()
        assert self._listening is not None
        self._listening.cancel()
        await asyncio.wait([self._listening])

    async def send(self, message: Message) -> None:
        """Send; ends at once, and sends nothing, where the client is not there any more."""
        if not self.here:
            return
        self._sending_since = self._loop.time()
        if self._look is None:  # one timer for many sends: most of them end at once
            self._look = self._loop.call_later(self._patience, self._look_again)
        try:
            await self._send(message)
        finally:
            self._sending_since = None

    def drop(self) -> None:
        """It takes too little of what it is sent: cut the connection."""
        self.stalled = True
        self._cut()
        self._leave()

    async def _listen(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._leave()

    def _look_again(self) -> None:
        self._look = None
        if self._sending_since is None or not self.here:
            return
        left = self._sending_since + self._patience - self._loop.time()
        if left > 0:
            self._look = self._loop.call_later(left, self._look_again)
            return
        self.drop()

    def _leave(self) -> None:
        if self.here:
            self.here = False
            self._left()
