"""What every request passes, whatever it asks: an id, the phase of the server, who asks, and how a refusal looks.

The order is: probes and metrics are always answered; a server that is not ready refuses with 503, and says when to come
again; then the key is asked for; then the body is read. Nobody without a key makes the server read or work.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from inference.http import access_log
from inference.http.authentication import Keys
from inference.http.lifecycle import Phase
from inference.http.metrics import Metrics
from inference.http.request_body import ClientGoneError
from inference.protocol.bodies import RETRY_AFTER
from inference.protocol.errors import ApiError, draining, invalid_api_key, no_http, not_ready

OPEN: Final = frozenset({"/health", "/livez", "/readyz", "/startupz", "/version", "/metrics"})
"""Paths that are answered in every phase, without a key."""
GUARDED: Final = frozenset({"/v1/models", "/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize"})
"""The others that there are, and what is below `/v1/models/`."""
LOADING: Final = 10
"""Seconds after which to ask a server again that is loading."""
CLIENT_GONE: Final = 499
"""What is counted where the client left: nobody hears it."""
_REQUEST_ID: Final = re.compile(r"[!-~]{1,128}")
_LOG: Final = logging.getLogger("inference")


@final
class Gate:
    """Around the app. What passes has `request_id` and `tenant` in its state."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        keys: Keys,
        metrics: Metrics,
        phase: Callable[[], Phase],
        log: Callable[[str], None] | None = None,
    ) -> None:
        """`log` takes a line a request, but for probes that are well."""
        self._app: Final = app
        self._log: Final = log
        self._keys: Final = keys
        self._metrics: Final = metrics
        self._phase: Final = phase
        self.inside = 0
        """Requests that have passed and are not over."""
        self.emptied: Callable[[], None] = lambda: None
        """Called when the last of them is over."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        answer = _Answer(send, request_id(headers))
        try:
            if "transfer-encoding" in headers and "content-length" in headers:
                raise no_http()  # of two lengths a proxy may believe the other, and take the rest for a request
            if scope["path"] in OPEN:
                await self._app(scope, receive, answer.send)
            else:
                await self._pass(scope, receive, answer)
        except ApiError as error:
            await answer.refuse(error)
        except ClientGoneError:
            answer.status = CLIENT_GONE
        except Exception:  # noqa: BLE001 (whatever it is, the client gets an answer, and the server goes on)
            _LOG.exception("request %s: a bug", answer.request_id)
            await answer.refuse(_bug(answer.request_id))
        finally:
            status = answer.status or CLIENT_GONE
            self._metrics.responses.labels(path=_route(scope["path"]), status=str(status)).inc()
            if self._log is not None and (scope["path"] not in OPEN or status >= HTTPStatus.BAD_REQUEST):
                self._log(answer.line(scope, status))

    async def _pass(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        self._refuse_by_phase()
        tenant = self._keys.tenant(Headers(scope=scope).get("authorization"))
        if tenant is None:
            raise invalid_api_key()
        answer.tenant = tenant
        scope["state"] = {**scope.get("state", {}), "request_id": answer.request_id, "tenant": tenant}
        self.inside += 1
        try:
            await self._app(scope, receive, answer.send)
        finally:
            self.inside -= 1
            if not self.inside:
                self.emptied()

    def _refuse_by_phase(self) -> None:
        phase = self._phase()
        if phase in (Phase.DRAINING, Phase.STOPPED):
            raise draining(RETRY_AFTER)
        if phase is not Phase.READY:
            raise not_ready(LOADING)


@final
class _Answer:
    """The response to one request, on its way out."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send: Final = send
        self.request_id: Final = request_id
        self.status: int | None = None
        """None until its head is sent."""
        self.tenant = ""
        """Who asked, once that is known."""
        self._began: Final = time.monotonic()
        self._size = 0

    def line(self, scope: Scope, status: int) -> str:
        """Of the access log, at its end."""
        seconds = time.monotonic() - self._began
        return access_log.line(
            scope, status, seconds=seconds, size=self._size, request_id=self.request_id, tenant=self.tenant
        )

    async def send(self, message: Message) -> None:
        """Send a part of it; the head gets the id."""
        self._size += len(message.get("body", b""))
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message)["x-request-id"] = self.request_id
        await self._send(message)

    async def refuse(self, error: ApiError) -> None:
        """Say why there is no answer; nothing where one has begun: then the connection is cut."""
        if self.status is not None:
            raise error
        body = error.body()
        headers = {"content-type": "application/json", "content-length": str(len(body)), **_headers(error)}
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": error.status, "headers": raw})
        await self.send({"type": "http.response.body", "body": body})


def request_id(headers: Headers) -> str:
    """The one that the client gave, where it is up to 128 ASCII characters without a space; else a new one."""
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


def _route(path: str) -> str:
    """What a path is counted as: there are few of them, whatever clients ask for."""
    if path in OPEN or path in GUARDED:
        return path
    return "/v1/models/*" if path.startswith("/v1/models/") else "other"


def _headers(error: ApiError) -> Mapping[str, str]:
    if error.status == 401:
        return {**error.headers, "www-authenticate": "Bearer"}
    # Come again, but not by this connection: behind a balancer another one leads to a server that is ready.
    closing = error.status in (408, 503) or error.code == no_http().code
    return {**error.headers, "connection": "close"} if closing else error.headers


def _bug(request_id: str) -> ApiError:
    return ApiError(
        500, f"A bug in the server; its log names request {request_id}", type="server_error", code="internal_error"
    )
