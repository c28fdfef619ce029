"""The body of a request: counted while it comes, and refused before it is all in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from starlette.types import Receive

from inference.protocol.errors import ApiError, body_too_large


class ClientGoneError(Exception):
    """The client left before it was answered."""


async def read_body(receive: Receive, headers: Mapping[str, str], *, most: int, patience: float) -> bytes:
    """All of it, at most `most` bytes; each part of it comes within `patience` seconds.

    A body that says that it is larger is not read at all. Raises ApiError (400, 408, 413) and ClientGoneError.
    """
    _check_length(headers.get("content-length"), most)
    parts: list[bytes] = []
    length = 0
    while True:
        try:
            async with asyncio.timeout(patience):
                message = await receive()
        except TimeoutError:
            raise _too_slow(patience) from None
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        part: bytes = message.get("body", b"")
        length += len(part)
        if length > most:
            raise body_too_large(most)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _check_length(said: str | None, most: int) -> None:
    if said is not None and said.isascii() and said.isdigit() and int(said[:20]) > most:
        raise body_too_large(most)


_SLOW: Final = "The body did not come: nothing of it within {:g} s"


def _too_slow(patience: float) -> ApiError:
    return ApiError(408, _SLOW.format(patience), code="request_timeout")
