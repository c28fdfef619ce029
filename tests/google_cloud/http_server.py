"""The HTTP half: Compute and Storage as JSON, webhooks, and the loopback's own pages under `/loopback/`."""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import socket
import threading
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, TypeAlias, final

from tests.google_cloud.errors import Refusal
from tests.google_cloud.faults import Call, FaultKind, fault
from tests.google_cloud.http_bodies import end_abruptly, received, send, shaped
from tests.google_cloud.world import World

Answer: TypeAlias = "dict[str, Any] | bytes | Reply"
_PEEKED: Final = 1 << 13
"""How much of a body may be looked at before it is read."""


@final
@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer that is more than JSON with a 200."""

    code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | memoryview = b""


@final
@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked."""

    path: str
    parts: Mapping[str, str]
    """The named parts of the path."""
    query: Mapping[str, str]
    lists: Mapping[str, list[str]]
    """The same with all values of a name."""
    headers: Mapping[str, str]
    data: memoryview
    """The body."""
    complete: bool
    """Whether the whole body came; an answer to half of one reaches nobody."""
    call: Call

    def header(self, name: str) -> str:
        """A header by its name in lower case; empty where it was not sent."""
        return next((text for given, text in self.headers.items() if given.lower() == name), "")

    @property
    def text(self) -> str:
        """The body as text."""
        return str(self.data, "utf-8")

    @property
    def body(self) -> dict[str, Any]:
        """The JSON object that came with it; empty for none."""
        try:
            given = json.loads(self.text or "{}")
        except json.JSONDecodeError:
            given = None
        if not isinstance(given, dict):
            raise Refusal(400, "parseError", "Invalid JSON payload received.")
        return given


@final
@dataclass(frozen=True, kw_only=True)
class Route:
    """A method of an API: where it is, and who answers."""

    id: str
    """As in `Call.method`."""
    verb: str
    pattern: re.Pattern[str]
    answer: Callable[[World, Request], Answer]
    locks: bool = True
    """Whether the world is locked around the answer; one that moves many bytes locks it itself, where it must."""
    takes_parts: bool = False
    """Whether it wants to see a body that did not come whole."""
    about: Callable[[World, Mapping[str, str], Mapping[str, str], bytes], str] | None = None
    """The name of the object that a call is about, by parts of its path, its query and how its body begins."""


def route(id_: str, verb: str, path: str, answer: Callable[[World, Request], Answer], **more: Any) -> Route:
    """A route from a path such as `/b/{bucket}/o/{object+}`; what has a `+` may hold `/`."""
    pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", re.sub(r"\{(\w+)\+\}", r"(?P<\1>.+)", path))
    return Route(id=id_, verb=verb, pattern=re.compile(pattern), answer=answer, **more)


@final
class HttpServer:
    """Answers connections that the front has accepted."""

    def __init__(self, world: World, routes: tuple[Route, ...], stopping: threading.Event) -> None:
        self.world = world
        self.routes = routes
        self.stopping = stopping

    def serve(self, connection: socket.socket) -> None:
        """One connection, with as many requests as the client likes."""
        _Handler(connection, connection.getpeername(), self)  # type: ignore[arg-type] # it asks nothing of its server

    def find(self, verb: str, path: str) -> tuple[Route, Mapping[str, str]]:
        """Who answers. Raises Refusal (404)."""
        for candidate in self.routes:
            match = candidate.pattern.fullmatch(path) if candidate.verb == verb else None
            if match is not None:
                return candidate, {name: urllib.parse.unquote(text) for name, text in match.groupdict().items()}
        raise Refusal(404, "notFound", f"the loopback Google Cloud has no {verb} {path}")


@final
class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "loopback"
    disable_nagle_algorithm = True
    server: HttpServer  # type: ignore[assignment]

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_PATCH = do_DELETE = do_PUT = do_GET  # noqa: N815 - the names that the base class looks for

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged: the world counts its calls."""

    def _answer(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        lists = urllib.parse.parse_qs(url.query, keep_blank_values=True)
        query = {name: values[-1] for name, values in lists.items()}
        try:
            found, parts = self.server.find(self.command, url.path)
        except Refusal as refusal:
            call = Call(method="", detail=self.path)
            received(self.rfile, self.headers, call, self.server.stopping)  # type: ignore[arg-type]
            self._send(refusal.code, refusal.body(), call)
            return
        name = found.about(self.server.world, parts, query, self._head()) if found.about else parts.get("object", "")
        call = self.server.world.calls.enter(found.id, urllib.parse.unquote(self.path), name)
        body = received(self.rfile, self.headers, call, self.server.stopping)  # type: ignore[arg-type] # it is buffered
        request = Request(
            path=url.path,
            parts=parts,
            query=query,
            lists=lists,
            headers=dict(self.headers.items()),
            data=body.data,
            complete=body.complete,
            call=call,
        )
        if (slow := call.struck(FaultKind.SLOW)) is not None:
            self.server.stopping.wait(slow.seconds)
        if not body.complete:
            self._broken(found, request)
            return
        code, answer = self._called(found, request)
        self._send(code, answer, call)

    def _head(self) -> bytes:
        """How the body begins, for a request that has one."""
        has_body = self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers
        return self.rfile.peek(_PEEKED) if has_body else b""  # type: ignore[attr-defined]

    def _broken(self, found: Route, request: Request) -> None:
        """The client went away in the middle, or is made to believe that the server did."""
        if found.takes_parts:
            self._called(found, request)
        end_abruptly(self.connection)
        self.close_connection = True

    def _called(self, found: Route, request: Request) -> tuple[int, Answer]:
        world = self.server.world
        try:
            for refusal in filter(None, (fault.refusal() for fault in request.call.faults)):
                raise refusal
            with world.lock if found.locks else contextlib.nullcontext():
                if found.locks:
                    world.operations.tick(world.stamp())
                answer = found.answer(world, request)
        except Refusal as refusal:
            return refusal.code, refusal.body()
        return (answer.code if isinstance(answer, Reply) else 200), answer

    def _send(self, code: int, answer: Answer, call: Call) -> None:
        if call.struck(FaultKind.LOST):
            self.close_connection = True
            return
        reply = _reply(code, answer)
        data = shaped(memoryview(reply.body), call)
        self.send_response(code)
        for name, text in reply.headers.items():
            self.send_header(name, text)
        if code not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.close_connection |= not send(self.connection, data, call, self.server.stopping)


def _reply(code: int, answer: Answer) -> Reply:
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, bytes):
        return Reply(headers={"Content-Type": "application/octet-stream"}, body=answer)
    body = b"" if code == HTTPStatus.NOT_MODIFIED else json.dumps(answer, allow_nan=False).encode()
    return Reply(code=code, headers={"Content-Type": "application/json; charset=UTF-8"}, body=body)


def own_routes() -> tuple[Route, ...]:
    """Webhooks, and what a test in another process asks of the world."""
    return (
        route("webhook", "POST", "/webhook{path+}", _webhook),
        route("webhook", "POST", "/webhook", _webhook),
        route("loopback.calls", "GET", "/loopback/calls", lambda world, _: dict(world.counts())),
        route("loopback.posted", "GET", "/loopback/posted", lambda world, _: {"items": world.posted}),
        route("loopback.published", "GET", "/loopback/published", lambda world, _: {"items": world.published}),
        route("loopback.faults", "POST", "/loopback/faults", _fail),
        route("loopback.faults", "DELETE", "/loopback/faults", _heal),
        route("loopback.written", "GET", "/loopback/written", lambda world, _: {"items": world.written}),
    )


def _webhook(world: World, request: Request) -> Answer:
    world.posted.append({"path": request.path, "headers": request.headers, "body": request.text})
    return {}


def _fail(world: World, request: Request) -> Answer:
    """`{"faults": [...]}`, each as in a world file. Raises Refusal (400)."""
    try:
        world.fail(*(fault(spec) for spec in request.body.get("faults", ())))
    except (KeyError, TypeError) as error:
        raise Refusal(400, "invalid", f"no such fault: {error}") from None
    return {}


def _heal(world: World, request: Request) -> Answer:
    world.calls.clear()
    return {}


def page_size(query: Mapping[str, str], name: str, most: int) -> int:
    """`maxResults` of a request. Raises Refusal (400) beyond the most."""
    text = query.get(name, str(most))
    if not text.isdecimal() or not 0 <= int(text) <= most:
        message = f"Invalid value for field '{name}': '{text}'. Must be less than or equal to {most}"
        raise Refusal(400, "invalid", message)
    return int(text) or most
