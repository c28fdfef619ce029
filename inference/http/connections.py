"""An HTTP/1.1 connection that does not wait for ever, and that an answer can drop.

uvicorn's own, with four things added. A client that has opened a connection and sends no whole head of a request is
left. One that sends the next request before it has the answer to this one is still watched, so that its leaving is seen
(uvicorn would stop reading). What is no HTTP is told so in the shape of every error. And what answers can drop the
connection at once, with all that is still to be sent: closing one whose client takes nothing would wait for that
client.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import Any, Final, cast, final

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from inference.protocol.errors import no_http

MOST_AHEAD: Final = 64 << 10
"""Bytes that a client may send before it has the answer to what it sent."""
SEND_BUFFER: Final = 128 << 10
"""Bytes that the system keeps of what a client has not taken. As large as it likes otherwise, megabytes: a client that
takes nothing would be noticed after tens of thousands of tokens."""


@final
class Connection(H11Protocol):
    """One connection; in the state of every scope as `connection`.

    `patience`: seconds that the head of a request may take.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        patience: float,
    ) -> None:
        super().__init__(config, server_state, {**app_state, "connection": self}, _loop)
        self._patience: Final = patience
        self._head_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        # asyncio sets it only where a socket was made with the number of TCP, which those of a listener were not: a
        # head and its body would be 40 ms apart.
        self._plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._got_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._answering:
            self._expect_head()
        super().data_received(data)

    def handle_events(self) -> None:
        super().handle_events()
        if not self._answering:
            return
        self._got_head()
        ahead, _ = self.conn.trailing_data
        if len(ahead) > MOST_AHEAD:
            self.abort()
        elif ahead:
            self.flow.resume_reading()

    def send_400_response(self, msg: str) -> None:
        """What came is no HTTP: told as every other error is, where nothing was answered yet, and the end.

        uvicorn would answer a second time, which is an exception and its traceback, made by whoever likes to.
        """
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = no_http().body()
            headers = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"}
            for event in (
                h11.Response(status_code=400, headers=[*headers.items()], reason=b"Bad Request"),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def abort(self) -> None:
        """Drop the connection, with whatever is still to be sent, also by the system: it would go on for minutes."""
        with contextlib.suppress(OSError):  # it is closed
            self._plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    @property
    def _plain(self) -> socket.socket:
        return cast(socket.socket, self.transport.get_extra_info("socket"))

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect_head(self) -> None:
        if self._head_deadline is None:
            self._head_deadline = self.loop.call_later(self._patience, self.abort)

    def _got_head(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None
