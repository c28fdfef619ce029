"""The body of a request: counted while it comes, and refused before it is all in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, final

from starlette.types import Receive

from inference.protocol.bodies import RETRY_AFTER
from inference.protocol.errors import ApiError, body_too_large, queue_full


class ClientGoneError(Exception):
    """The client left before it was answered."""


@final
class Bodies:
    """Reads bodies of at most `most` bytes, and of at most `together` bytes while they come.

    Each part of one comes within `patience` seconds.
    """

    def __init__(self, *, most: int, together: int, patience: float) -> None:
        self._most: Final = most
        self._together: Final = together
        self._patience: Final = patience
        self._held = 0

    async def read(self, receive: Receive, headers: Mapping[str, str]) -> bytes:
        """All of one. One that says that it is too large is not read at all.

        Raises ApiError (408, 413, 429) and ClientGoneError.
        """
        self._check_length(headers.get("content-length"))
        parts: list[bytes] = []
        length = 0
        try:
            while True:
                part, more = await self._part(receive)
                length += len(part)
                self._held += len(part)
                if length > self._most:
                    raise body_too_large(self._most)
                if self._held > self._together:
                    raise queue_full(RETRY_AFTER)
                parts.append(part)
                if not more:
                    return b"".join(parts)
        finally:
            self._held -= length

    async def _part(self, receive: Receive) -> tuple[bytes, bool]:
        try:
            async with asyncio.timeout(self._patience):
                message = await receive()
        except TimeoutError:
            raise _too_slow(self._patience) from None
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        return message.get("body", b""), message.get("more_body", False)

    def _check_length(self, said: str | None) -> None:
        if said is not None and said.isascii() and said.isdigit() and int(said[:20]) > self._most:
            raise body_too_large(self._most)


_SLOW: Final = "The body did not come: nothing of it within {:g} s"


def _too_slow(patience: float) -> ApiError:
    return ApiError(408, _SLOW.format(patience), code="request_timeout")
