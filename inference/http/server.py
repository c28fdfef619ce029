"""What the server answers, by path: the API of OpenAI, tokens, probes, metrics.

POST /v1/completions, /v1/chat/completions     answers, whole or as a stream
GET  /v1/models, /v1/models/NAME               what is served
POST /tokenize, /detokenize                    as vLLM has them
GET  /livez      200 unless the engine has work and gives no sign of life
GET  /readyz     200 while requests are answered; 503 while loading, and as soon as the server drains
GET  /health     the same, by the name that users of vLLM probe
GET  /startupz   200 once the server has been ready
GET  /metrics, /version
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import MappingProxyType
from typing import Final, final

import orjson
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from inference.http.answering import LONG_BODY, Answering, Parse
from inference.http.authentication import Keys
from inference.http.gate import Gate
from inference.http.lifecycle import Lifecycle
from inference.http.metrics import CONTENT_TYPE, Metrics
from inference.http.request_body import Bodies
from inference.http.service import Service
from inference.protocol.bodies import RETRY_AFTER
from inference.protocol.chat import parse_chat
from inference.protocol.completions import parse_completion
from inference.protocol.errors import method_not_allowed, no_such_route
from inference.protocol.json_body import check_content_type
from inference.protocol.models import model_body, models_body
from inference.protocol.served_model import ServedModel
from inference.protocol.texts import detokenize, tokenize
from inference.settings import Settings
from inference.version import version

BESIDE: Final = 4
"""Threads for bodies that take long to read."""
AT_ONCE: Final = 16
"""Bodies of the largest size that may come at once; more of them are refused with 429."""
MODELS: Final = "/v1/models/"


@final
class Front:
    """The application. It answers probes before there is a model, and all else once `service` is set."""

    def __init__(
        self,
        settings: Settings,
        *,
        keys: Keys,
        metrics: Metrics,
        life: Callable[[], Lifecycle],
        say: Callable[[str], None],
    ) -> None:
        self._settings: Final = settings
        self._metrics: Final = metrics
        self._life: Final = life
        self._beside: Final = ThreadPoolExecutor(BESIDE, thread_name_prefix="spotrail request")
        self._bodies: Final = Bodies(
            most=settings.body_limit, together=AT_ONCE * settings.body_limit, patience=settings.stall_timeout
        )
        self.service: Service | None = None
        """What answers; None until it is ready."""
        self._routes: Final[Mapping[str, Mapping[str, ASGIApp]]] = MappingProxyType(
            {
                "/v1/completions": {"POST": self._answering(parse_completion)},
                "/v1/chat/completions": {"POST": self._answering(parse_chat)},
                "/v1/models": _get(self._models),
                "/tokenize": {"POST": partial(self._text, tokenize)},
                "/detokenize": {"POST": partial(self._text, detokenize)},
                "/livez": _get(self._alive),
                "/readyz": _get(self._ready),
                "/health": _get(self._ready),
                "/startupz": _get(self._started),
                "/version": _get(self._version),
                "/metrics": _get(self._exposed),
            }
        )
        log = say if settings.access_log else None
        self.gate: Final = Gate(self._dispatch, keys=keys, metrics=metrics, phase=lambda: life().phase, log=log)
        self.app: Final = _for_browsers(self.gate, settings.allowed_origins)
        """What connections are answered by."""

    def close(self) -> None:
        """Let the threads of requests go."""
        self._beside.shutdown(wait=False, cancel_futures=True)

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        by_method = self._routes.get(path)
        if by_method is None and path.startswith(MODELS):
            by_method = _get(partial(self._model, path.removeprefix(MODELS)))
        if by_method is None:
            raise no_such_route(method, path)
        app = by_method.get(method)
        if app is None:
            raise method_not_allowed(method, path, " or ".join(by_method))
        await app(scope, receive, send)

    def _serving(self) -> Service:
        assert self.service is not None, "the gate lets nobody pass before"
        return self.service

    def _answering(self, parse: Parse) -> Answering:
        return Answering(
            parse,
            service=self._serving,
            settings=self._settings,
            metrics=self._metrics,
            bodies=self._bodies,
            beside=self._beside,
        )

    async def _text(
        self, work: Callable[[bytes, ServedModel], bytes], scope: Scope, receive: Receive, send: Send
    ) -> None:
        headers = Headers(scope=scope)
        check_content_type(headers.get("content-type"))
        body = await self._bodies.read(receive, headers)
        done = partial(work, body, self._serving().model)
        if len(body) < LONG_BODY:
            content = done()
        else:
            content = await asyncio.get_running_loop().run_in_executor(self._beside, done)
        await Response(content, media_type="application/json")(scope, receive, send)

    def _models(self) -> Response:
        return Response(models_body(self._serving().model), media_type="application/json")

    def _model(self, name: str) -> Response:
        return Response(model_body(name, self._serving().model), media_type="application/json")

    def _alive(self) -> Response:
        stuck = self.service is not None and self.service.stuck(self._settings.heartbeat_timeout)
        return self._probe(not stuck, engine="stuck" if stuck else "in order")

    def _ready(self) -> Response:
        return self._probe(self._life().ready)

    def _started(self) -> Response:
        return self._probe(self._life().started)

    def _probe(self, good: bool, **more: str) -> Response:
        content = orjson.dumps({"phase": self._life().phase.value, **more})
        headers = {} if good else {"retry-after": str(RETRY_AFTER)}
        return Response(content, 200 if good else 503, headers, "application/json")

    def _version(self) -> Response:
        return Response(orjson.dumps({"version": version()}), media_type="application/json")

    def _exposed(self) -> Response:
        return Response(self._metrics.exposed(), headers={"content-type": CONTENT_TYPE})


def _for_browsers(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """`app`, and leave for pages of these origins to ask it, also of what it refuses. Without any, `app` itself."""
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=("GET", "POST"),
        allow_headers=("*",),
        expose_headers=("x-request-id", "retry-after"),
    )


def _get(answer: Callable[[], Response]) -> Mapping[str, ASGIApp]:
    """A route that is only read."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await answer()(scope, receive, send)

    return MappingProxyType({"GET": app, "HEAD": app})
