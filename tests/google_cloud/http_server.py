"""The HTTP half: Compute and Storage as JSON, webhooks, and the loopback's own pages under `/loopback/`."""

from __future__ import annotations

import http.server
import json
import re
import socket
import threading
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeAlias, final

from tests.google_cloud.errors import Refusal
from tests.google_cloud.faults import Call, FaultKind
from tests.google_cloud.world import World

Answer: TypeAlias = "dict[str, Any] | bytes"


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
    text: str
    call: Call

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


def route(id_: str, verb: str, path: str, answer: Callable[[World, Request], Answer]) -> Route:
    """A route from a path such as `/b/{bucket}/o/{object+}`; what has a `+` may hold `/`."""
    pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", re.sub(r"\{(\w+)\+\}", r"(?P<\1>.+)", path))
    return Route(id=id_, verb=verb, pattern=re.compile(pattern), answer=answer)


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
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        try:
            found, parts = self.server.find(self.command, url.path)
        except Refusal as refusal:
            self._send(refusal.code, refusal.body())
            return
        call = self.server.world.calls.enter(found.id, urllib.parse.unquote(self.path))
        request = Request(
            path=url.path,
            parts=parts,
            query={name: values[-1] for name, values in lists.items()},
            lists=lists,
            headers=dict(self.headers.items()),
            text=text,
            call=call,
        )
        if (slow := call.struck(FaultKind.SLOW)) is not None:
            self.server.stopping.wait(slow.seconds)
        try:
            answer, code = self._called(found, request), 200
        except Refusal as refusal:
            answer, code = refusal.body(), refusal.code
        self._send(code, answer, call)

    def _called(self, found: Route, request: Request) -> Answer:
        for refusal in filter(None, (fault.refusal() for fault in request.call.faults)):
            raise refusal
        world = self.server.world
        with world.lock:
            world.operations.tick(world.stamp())
            return found.answer(world, request)

    def _send(self, code: int, answer: Answer, call: Call | None = None) -> None:
        is_json = not isinstance(answer, bytes)
        data = json.dumps(answer, allow_nan=False).encode() if not isinstance(answer, bytes) else answer
        if call is not None and call.struck(FaultKind.LOST):
            self.close_connection = True
            return
        if call is not None and call.struck(FaultKind.TRUNCATED):
            data = data[: len(data) * 2 // 3]
        self.send_response(HTTPStatus(code))
        self.send_header("Content-Type", "application/json; charset=UTF-8" if is_json else "application/octet-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if call is not None and call.struck(FaultKind.CUT):
            data = data[: len(data) // 2]
            self.close_connection = True
        self.wfile.write(data)


def own_routes() -> tuple[Route, ...]:
    """Webhooks, and what a test in another process asks of the world."""
    return (
        route("webhook", "POST", "/webhook{path+}", _webhook),
        route("webhook", "POST", "/webhook", _webhook),
        route("loopback.calls", "GET", "/loopback/calls", lambda world, _: dict(world.counts())),
        route("loopback.posted", "GET", "/loopback/posted", lambda world, _: {"items": world.posted}),
        route("loopback.published", "GET", "/loopback/published", lambda world, _: {"items": world.published}),
        route("loopback.written", "GET", "/loopback/written", lambda world, _: {"items": world.written}),
    )


def _webhook(world: World, request: Request) -> Answer:
    world.posted.append({"path": request.path, "headers": request.headers, "body": request.text})
    return {}


def page_size(query: Mapping[str, str], name: str, most: int) -> int:
    """`maxResults` of a request. Raises Refusal (400) beyond the most."""
    text = query.get(name, str(most))
    if not text.isdecimal() or not 0 <= int(text) <= most:
        message = f"Invalid value for field '{name}': '{text}'. Must be less than or equal to {most}"
        raise Refusal(400, "invalid", message)
    return int(text) or most
