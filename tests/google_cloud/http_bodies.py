"""The bodies of requests and answers as they pass over a connection, with what can go wrong on the way."""

from __future__ import annotations

import io
import socket
import struct
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

from tests.google_cloud.faults import Call, FaultKind

_STEP: Final = 1 << 18
"""The most bytes that move at once."""
_RESET: Final = struct.pack("ii", 1, 0)


@final
@dataclass(frozen=True, kw_only=True)
class Body:
    """What came of a request's body."""

    data: memoryview
    complete: bool
    """Whether all of it came before the connection ended."""


def received(stream: io.BufferedReader, headers: Mapping[str, str], call: Call, stopping: threading.Event) -> Body:
    """Read the body of a request, by its Content-Length or in chunks; a fault may end it too early."""
    reset = call.struck(FaultKind.UPLOAD_RESET)
    if "chunked" in headers.get("Transfer-Encoding", "").lower():
        return _chunked(stream, call, stopping)
    length = int(headers.get("Content-Length") or 0)
    wanted = length if reset is None else min(length, reset.bytes)
    data = bytearray(wanted)
    filled = 0
    while filled < wanted:
        count = _read_into(stream, memoryview(data)[filled : filled + _STEP])
        if not count:
            break
        filled += count
        _pause(count, call, stopping)
    return Body(data=memoryview(data)[:filled].toreadonly(), complete=filled == length and reset is None)


def _read_into(stream: io.BufferedReader, view: memoryview) -> int:
    """So many bytes came; 0 where the connection has ended."""
    try:
        return stream.readinto1(view)
    except OSError:
        return 0


def _chunked(stream: io.BufferedReader, call: Call, stopping: threading.Event) -> Body:
    reset = call.struck(FaultKind.UPLOAD_RESET)
    data = bytearray()
    complete = False
    for chunk in _chunks(stream):
        complete = chunk == b""
        data += chunk
        _pause(len(chunk), call, stopping)
        if reset is not None and len(data) >= reset.bytes:
            return Body(data=memoryview(data)[: reset.bytes].toreadonly(), complete=False)
    return Body(data=memoryview(data).toreadonly(), complete=complete and reset is None)


def _chunks(stream: io.BufferedReader) -> Iterator[bytes]:
    """The chunks of a body; the last is empty, unless the connection ended before it."""
    while line := stream.readline(256):
        size = int(line.split(b";")[0], 16)
        chunk = stream.read(size)
        stream.readline(256)
        if len(chunk) < size:
            return
        yield chunk
        if size == 0:
            return


def shaped(data: memoryview, call: Call) -> memoryview:
    """The body of an answer as the faults of a call leave it, before its length is told."""
    if call.struck(FaultKind.TRUNCATED):
        data = data[: len(data) * 2 // 3]
    flip = call.struck(FaultKind.FLIPPED_SERVED)
    return data if flip is None else flipped(data, flip.bit)


def flipped(data: memoryview, bit: int) -> memoryview:
    """A copy with one bit the other way round; nothing has none to turn."""
    copy = bytearray(data)
    if copy:
        index, place = divmod(bit % (8 * len(copy)), 8)
        copy[index] ^= 1 << place
    return memoryview(copy).toreadonly()


def send(connection: socket.socket, data: memoryview, call: Call, stopping: threading.Event) -> bool:
    """Send the body of an answer; False where the connection is to end now."""
    whole = True
    if call.struck(FaultKind.CUT):
        data, whole = data[: len(data) // 2], False
    if (reset := call.struck(FaultKind.RESET)) is not None:
        data, whole = data[: reset.bytes], False
    for start in range(0, len(data), _STEP):
        _pause(len(data[start : start + _STEP]), call, stopping)
        connection.sendall(data[start : start + _STEP])
    if reset is not None:
        end_abruptly(connection)
    return whole


def end_abruptly(connection: socket.socket) -> None:
    """Let the end of the connection be a reset, for the client to see as an error."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def _pause(count: int, call: Call, stopping: threading.Event) -> None:
    if (slow := call.struck(FaultKind.BANDWIDTH)) is not None:
        stopping.wait(count / slow.rate)
