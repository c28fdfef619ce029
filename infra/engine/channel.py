"""The line between the engine and the language host beside gRPC: one JSON object a line, over a socket pair.

The language host gets its orders over it and tells over it how the program ended: exactly one of the two is waiting
at any time, and the end of the one is the end of the line for the other.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, final

Message: TypeAlias = Mapping[str, Any]

INPUTS_KEY: Final = "spotrail-inputs"
"""gRPC metadata of a registration: which inputs its type has, of those that the engine asks about."""
_CHUNK: Final = 1 << 16


@final
class Channel:
    """One end of the line."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._buffer = bytearray()

    def fileno(self) -> int:
        """The file descriptor of this end."""
        return self._end.fileno()

    def close(self) -> None:
        """Hang up."""
        self._end.close()

    def send(self, message: Message) -> None:
        """Send one message. Raises OSError where the other end is gone."""
        self._end.settimeout(None)
        self._end.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, seconds: float | None = None) -> Message | None:
        """The next message; None where the other end hung up.

        Raises TimeoutError after `seconds` without one, ValueError for what is no message.
        """
        self._end.settimeout(seconds)
        while b"\n" not in self._buffer:
            try:
                chunk = self._end.recv(_CHUNK)
            except ConnectionError:
                return None
            if not chunk:
                return None
            self._buffer += chunk
        line, _, rest = self._buffer.partition(b"\n")
        self._buffer = bytearray(rest)
        message = json.loads(line)
        if not isinstance(message, dict):
            raise ValueError(f"{message!r} is not a mapping")
        return message


def pair() -> tuple[Channel, Channel]:
    """Two ends of a new line."""
    ours, theirs = socket.socketpair()
    return Channel(ours), Channel(theirs)
