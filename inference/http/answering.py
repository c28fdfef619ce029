"""From a body to an answer: what `/v1/completions` and `/v1/chat/completions` do.

From the moment that its answers are handed in until they are over, a request is one coroutine, so that however it ends
(the client leaves, takes nothing, the server is cut off, a bug) its `finally` gives the slots back.

A stream begins with its first piece, not before, so that what goes wrong until then has a status; where that takes
long, with a comment. A client that is slow gets what has come meanwhile as one piece, and holds up nobody: its answer
is made at the speed of the engine, and its slot is free when that is done. One that takes nothing for `stall_timeout`
seconds is dropped, and so is one that is `MOST_BEHIND` pieces behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar, final

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from inference.http.connections import Connection
from inference.http.deliveries import Inbox
from inference.http.disconnects import Client
from inference.http.event_stream import EventStream
from inference.http.metrics import Metrics
from inference.http.request_body import Bodies, ClientGoneError
from inference.http.service import Service
from inference.protocol.bodies import Gathering, error_of
from inference.protocol.json_body import check_content_type
from inference.protocol.order import Arrival, Order
from inference.protocol.served_model import ServedModel
from inference.protocol.stream import closing, events, opening
from inference.scheduling.ticket import Ticket
from inference.settings import Settings
from inference.text.answer import Delta, End

MOST_BEHIND: Final = 1 << 16
"""Pieces that wait for one client."""
LONG_BODY: Final = 32 << 10
"""Bytes from which on a body is read and handed in beside the event loop, which would stand still for milliseconds."""
BYTES_A_TOKEN: Final = 64
"""Of a body that is written, at least, where it is measured by its tokens."""
ResultT = TypeVar("ResultT")
Parse = Callable[[bytes, ServedModel, Arrival], Order]


@final
class Answering:
    """One of the two endpoints, as an ASGI application behind the gate."""

    def __init__(
        self,
        parse: Parse,
        *,
        service: Callable[[], Service],
        settings: Settings,
        metrics: Metrics,
        bodies: Bodies,
        beside: Executor,
    ) -> None:
        self._parse: Final = parse
        self._service: Final = service
        self._settings: Final = settings
        self._metrics: Final = metrics
        self._bodies: Final = bodies
        self._beside: Final = beside

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        check_content_type(headers.get("content-type"))
        body = await self._bodies.read(receive, headers)
        service = self._service()
        tickets: list[Ticket] = []

        def left() -> None:
            service.cancel(tickets)
            inbox.wake()

        connection: Connection = scope["state"]["connection"]
        client = Client(receive, send, left=left, cut=connection.abort, patience=self._settings.stall_timeout)
        inbox: Inbox[Delta | None] = Inbox(most=MOST_BEHIND, full=client.drop)
        arrival = Arrival.now(request_id=scope["state"]["request_id"], tenant=scope["state"]["tenant"])
        async with client:
            try:
                order = await self._by_size(len(body), partial(self._parse, body, service.model, arrival))
                answer = self._stream if order.stream else self._whole
                await answer(_Request(order, len(body), service, client, inbox, tickets))
            finally:
                service.cancel(tickets)
        if client.stalled:
            self._metrics.clients_stalled.inc()
        if not client.here:
            self._metrics.clients_left.inc()
            raise ClientGoneError

    async def _whole(self, request: _Request) -> None:
        gathering, client = Gathering(request.order), request.client
        submit = partial(request.service.submit_whole, request.order, request.inbox, gathering)
        request.tickets += await self._by_size(request.length, submit)
        while client.here and not gathering.complete:
            await request.inbox.take()
        if not client.here:
            return
        if gathering.error is not None:
            raise gathering.error
        tokens = sum(end.generated_tokens for end in gathering.ends)
        body = await self._by_size(tokens * BYTES_A_TOKEN, gathering.body)
        head = ((b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()))
        await client.send({"type": "http.response.start", "status": 200, "headers": head})
        await client.send({"type": "http.response.body", "body": body})

    async def _stream(self, request: _Request) -> None:
        order, client, inbox = request.order, request.client, request.inbox
        submit = partial(request.service.submit_stream, order, inbox)
        request.tickets += await self._by_size(request.length, submit)
        ends: dict[int, End] = {}
        stream = EventStream(client, opening(order), alive=inbox.wake, keep_alive=self._settings.keep_alive)
        try:
            while client.here and len(ends) < len(order.generations):
                pieces = merged(await inbox.take())
                ended = {piece.index: piece.end for piece in pieces if piece.end is not None}
                error = next((error for end in ended.values() if (error := error_of(end)) is not None), None)
                if error is not None and not stream.begun:
                    raise error
                await stream.send(b"".join(_until_error(order, pieces)))
                if error is not None:
                    await stream.end(b"")
                    return
                ends |= ended
            if client.here:
                await stream.end(closing(order, ends))
        finally:
            stream.close()

    async def _by_size(self, size: int, work: Callable[[], ResultT]) -> ResultT:
        """Do it here, or on another thread where it takes long."""
        if size < LONG_BODY:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._beside, work)


@final
@dataclass
class _Request:
    """What an answer is made with."""

    order: Order
    length: int
    """Bytes of its body."""
    service: Service
    client: Client
    inbox: Inbox[Delta | None]
    tickets: list[Ticket]
    """Of its answers, once they are handed in."""


def merged(deltas: Sequence[Delta | None]) -> list[Delta]:
    """What has come for a client that was not there to take it: one piece an answer."""
    if len(deltas) == 1 and deltas[0] is not None:
        return [deltas[0]]
    found: dict[int, Delta] = {}
    for delta in deltas:
        if delta is None:
            continue
        before = found.get(delta.index)
        found[delta.index] = delta if before is None else _joined(before, delta)
    return list(found.values())


def _joined(first: Delta, second: Delta) -> Delta:
    return Delta(
        index=first.index,
        text=first.text + second.text,
        tokens=first.tokens + second.tokens,
        ids=first.ids + second.ids,
        generated=second.generated,
        end=second.end,
    )


def _until_error(order: Order, pieces: Iterable[Delta]) -> Iterator[bytes]:
    """The events of these, up to the first that is an error: nothing comes behind it."""
    for piece in pieces:
        yield events(order, piece)
        if piece.end is not None and error_of(piece.end) is not None:
            return
