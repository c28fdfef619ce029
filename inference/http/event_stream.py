"""Server-sent events on their way to one client: the head with the first of them, and comments where nothing comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, final

from inference.http.disconnects import Client
from inference.protocol.stream import KEEP_ALIVE, MEDIA_TYPE

_HEADERS: Final = (
    (b"content-type", MEDIA_TYPE.encode()),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # nginx would gather the events
)


@final
class EventStream:
    """Sends events. `alive` is called where nothing was sent for `keep_alive` seconds; then nothing is to be sent."""

    def __init__(self, client: Client, opening: bytes, *, alive: Callable[[], None], keep_alive: float) -> None:
        self._client: Final = client
        self._opening = opening
        self._alive: Final = alive
        self._keep_alive: Final = keep_alive
        self._loop: Final = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._timer = self._loop.call_later(keep_alive, self._look)
        self.begun = False
        """Whether the head is sent: no status can be told any more."""

    async def send(self, events: bytes) -> None:
        """The next; a comment for none."""
        if events:
            events, self._opening = self._opening + events, b""
        await self._write(events or KEEP_ALIVE, more=True)

    async def end(self, events: bytes) -> None:
        """The last."""
        await self._write(self._opening + events, more=False)

    def close(self) -> None:
        """Nothing more is sent."""
        self._timer.cancel()

    async def _write(self, body: bytes, *, more: bool) -> None:
        if not self.begun:
            self.begun = True
            await self._client.send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await self._client.send({"type": "http.response.body", "body": body, "more_body": more})
        self._last = self._loop.time()

    def _look(self) -> None:
        """One timer for many events: most of them come soon."""
        idle = self._loop.time() - self._last
        if idle >= self._keep_alive:
            self._alive()
            idle = 0.0
        self._timer = self._loop.call_later(self._keep_alive - idle, self._look)
