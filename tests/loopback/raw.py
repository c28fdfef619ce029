"""Plain HTTP to a loopback, without a client that repeats or repairs anything."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final
from urllib.parse import quote, urlencode

OBJECTS = "/storage/v1/b/runs/o"
UPLOADS = "/upload/storage/v1/b/runs/o"


@final
@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back."""

    code: int
    headers: Mapping[str, str]
    """By their names in lower case."""
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def reason(self) -> str:
        """Google's word for what is wrong; empty of an answer without a body."""
        return str(self.json["error"]["errors"][0]["reason"]) if self.body else ""


def ask(
    url: str,
    verb: str,
    path: str,
    query: Mapping[str, Any] | None = None,
    body: bytes | str = b"",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=20)
    try:
        connection.request(verb, f"{path}?{urlencode(query or {})}", body=body or None, headers=dict(headers or {}))
        answer = connection.getresponse()
        names = {name.lower(): text for name, text in answer.getheaders()}
        return Answer(code=answer.status, headers=names, body=answer.read())
    finally:
        connection.close()


def put(url: str, name: str, content: bytes = b"", **query: Any) -> Answer:
    """An upload of the bytes alone into `runs`."""
    return ask(url, "POST", UPLOADS, {"uploadType": "media", "name": name, **query}, content)


def get(url: str, name: str, bytes_range: str = "", **query: Any) -> Answer:
    """The bytes of an object of `runs`."""
    headers = {"Range": bytes_range} if bytes_range else {}
    return ask(url, "GET", f"{OBJECTS}/{quote(name, safe='')}", {"alt": "media", **query}, headers=headers)


def multipart(url: str, fields: Mapping[str, Any], content: bytes, **query: Any) -> Answer:
    """An upload of metadata and bytes into `runs`."""
    head = f"--sep\r\nContent-Type: application/json\r\n\r\n{json.dumps(fields)}\r\n--sep\r\nContent-Type: x/y\r\n\r\n"
    headers = {"Content-Type": 'multipart/related; boundary="sep"'}
    body = head.encode() + content + b"\r\n--sep--\r\n"
    return ask(url, "POST", UPLOADS, {"uploadType": "multipart", **query}, body, headers)


def begin(url: str, name: str, headers: Mapping[str, str] | None = None, **query: Any) -> Answer:
    """The start of a resumable upload into `runs`."""
    return ask(url, "POST", UPLOADS, {"uploadType": "resumable", "name": name, **query}, headers=headers)


def send(url: str, session: str, content: bytes, content_range: str = "", **headers: str) -> Answer:
    """A chunk of a resumable upload, or a question about it."""
    told = {"Content-Range": content_range} if content_range else {}
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return ask(url, "PUT", UPLOADS, {"uploadType": "resumable", "upload_id": session}, content, {**told, **named})


def session_of(answer: Answer) -> str:
    """The id of a session that has begun."""
    return answer.headers["x-guploader-uploadid"]
