"""Resumable uploads that have begun: what has come of each, and what became of it."""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from tests.google_cloud.errors import Refusal
from tests.google_cloud.object_store import crc32c
from tests.google_cloud.shapes import Item

UNIT: Final = 256 * 1024
"""What is sent of an upload, but for its end, is kept in whole multiples of this."""


@final
@dataclass(kw_only=True, eq=False)
class Session:
    """One upload."""

    id: str
    bucket: str
    name: str
    query: Mapping[str, str]
    """Of the request that began it, with its preconditions."""
    fields: Mapping[str, Any]
    """The metadata of the object to be."""
    announced: int | None = None
    """The size that the client has told."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Of what follows; whoever needs the lock of the world too takes it after this one."""
    data: bytearray = field(default_factory=bytearray)
    crc32c: int = 0
    md5: Any = field(default_factory=lambda: hashlib.md5(usedforsecurity=False))
    made: Item | None = None
    """The object, once it is there; every further request is answered with it."""
    refusal: Refusal | None = None
    """Why there will be none, where the end of the upload was refused."""

    def keep(self, chunk: memoryview) -> None:
        """Bytes that have come to stay."""
        self.data += chunk
        self.crc32c = crc32c(chunk, self.crc32c)
        self.md5.update(chunk)


@final
class Uploads:
    """All of them. Which there are changes under the lock of the world."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._cancelled: set[str] = set()

    def begin(self, **fields: Any) -> Session:
        """A session under a new id."""
        session = Session(id=uuid.uuid4().hex, **fields)
        self._sessions[session.id] = session
        return session

    def get(self, id_: str) -> Session:
        """A session by its id. Raises Refusal: 410 where it was cancelled, 404 where it never was."""
        if id_ in self._cancelled:
            raise Refusal(410, "gone", "The upload session no longer exists.")
        if id_ not in self._sessions:
            raise Refusal(404, "notFound", f"Upload session {id_} not found.")
        return self._sessions[id_]

    def named(self, id_: str) -> str:
        """The object that a session makes; empty where there is no such session."""
        session = self._sessions.get(id_)
        return "" if session is None else session.name

    def cancel(self, id_: str) -> None:
        """End a session and forget its bytes. Raises Refusal as `get` does."""
        del self._sessions[self.get(id_).id]
        self._cancelled.add(id_)
