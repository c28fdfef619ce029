"""A thousand requests, half of them in bad faith, and SIGTERM in the middle: no slot is lost, no token is wrong."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, final

import pytest

from inference.exit_codes import ExitCode
from inference.testing import Call, SummingEngine
from tests.inference.http.serving import (
    Served,
    completion,
    engine_for,
    events_in,
    request,
    said_in,
    serving,
    settings,
    sums,
    text_of,
    until,
)
from tests.inference.scheduling.answers import is_idle

REQUESTS: Final = 1000
AT_ONCE: Final = 48
SIGNAL_AT: Final = 850
"""So many have been begun when SIGTERM comes."""
MOST_BODY: Final = 64 << 10
PATH: Final = "/v1/completions"


@final
@dataclass
class Heard:
    """What all clients have heard."""

    statuses: Counter[int] = field(default_factory=Counter)
    """Of responses; 0 where there was none."""
    whole: int = 0
    """Answers that came whole, and were right."""
    cut: int = 0
    """Answers that ended with an error event."""


class Client:
    """Clients of one server, each with a connection of its own."""

    def __init__(self, port: int, chance: random.Random, heard: Heard) -> None:
        self._port, self._chance, self._heard = port, chance, heard

    async def honest(self) -> None:
        """Wants a whole answer, or a stream."""
        prompt, count, more = self._wish()
        answer = await self._exchange(self._asked(prompt, count, **more))
        self._judge(answer, prompt, count, more)

    async def slow(self) -> None:
        """Takes its answer a little at a time."""
        prompt, count, more = self._wish(stream=True)
        answer = await self._exchange(self._asked(prompt, count, **more), pause=0.002, receive=512)
        self._judge(answer, prompt, count, more)

    async def leaving(self) -> None:
        """Leaves in the middle: of its own words, before an answer, within it; in order, or by a reset."""
        prompt, count, more = self._wish(tokens=500)
        sent = self._asked(prompt, count, **more)
        reader, writer = await self._connect()
        cut = self._chance.choice((len(sent), len(sent), len(sent), self._chance.randrange(1, len(sent))))
        with contextlib.suppress(OSError):
            writer.write(sent[:cut])
            await writer.drain()
            if cut == len(sent) and self._chance.random() < 0.5:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._chance.random() / 20):
                        await reader.read(self._chance.choice((1, 200, 2000)))
            if self._chance.random() < 0.5:
                plain: socket.socket = writer.get_extra_info("socket")
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort() if self._chance.random() < 0.5 else writer.close()

    async def malformed(self) -> None:
        """Says what is no request."""
        good = json.dumps(completion("x", max_tokens=2)).encode()
        sent = self._chance.choice(
            (
                request(PATH, good[:-1], more="Connection: close\r\n"),
                request(PATH, b"[" * 5000, more="Connection: close\r\n"),
                request(PATH, b'{"model":"sums","prompt":[999999]}', more="Connection: close\r\n"),
                request(PATH, b'{"model":"sums","prompt":"x","n":1000}', more="Connection: close\r\n"),
                request(PATH, b'{"model":"sums","prompt":"x","temperature":1e400}', more="Connection: close\r\n"),
                request("/v1/chat/completions", good, more="Connection: close\r\n"),
                request("/nothing", good, more="Connection: close\r\n"),
                b"\x00\x01\x02\r\n\r\n",
                b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
            )
        )
        self._refused(await self._exchange(sent), (400, 404))

    async def oversized(self) -> None:
        """Sends more than is read, in one piece or by chunks without an end."""
        if self._chance.random() < 0.5:
            sent = request(PATH, b" " * (4 * MOST_BODY), more="Connection: close\r\n")
        else:
            head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            chunk = b"2000\r\n" + b" " * 0x2000 + b"\r\n"
            sent = head + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 20
        self._refused(await self._exchange(sent), (413,))

    def _wish(self, *, tokens: int = 40, stream: bool | None = None) -> tuple[Any, int, dict[str, Any]]:
        length = self._chance.choice((1, 5, 5, 70, 300))
        prompt = [self._chance.randrange(5, 261) for _ in range(length)]
        more: dict[str, Any] = {"stream": self._chance.random() < 0.6 if stream is None else stream}
        if self._chance.random() < 0.2:
            more |= {"n": 3, "seed": self._chance.randrange(1000), "temperature": 1}
        return prompt, self._chance.randrange(1, tokens), more

    def _asked(self, prompt: Any, count: int, **more: Any) -> bytes:
        body = {**completion(prompt, max_tokens=count, ignore_eos=True), **more}
        return request(PATH, json.dumps(body).encode(), more="Connection: close\r\n")

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 12)

    async def _exchange(self, sent: bytes, *, pause: float = 0.0, receive: int = 1 << 16) -> bytes:
        """All that comes back until the server closes; nothing where the connection is refused or broken."""
        heard = b""
        with contextlib.suppress(OSError):
            reader, writer = await self._connect()
            writer.write(sent)
            try:
                while part := await reader.read(receive):
                    heard += part
                    await asyncio.sleep(pause)
            finally:
                writer.close()
        self._heard.statuses[int(heard[9:12] or 0)] += 1
        return heard

    def _refused(self, answer: bytes, statuses: tuple[int, ...]) -> None:
        status = int(answer[9:12] or 0)
        assert status in (0, 503, *statuses), answer[:300]
        assert len(answer) < 2000

    def _judge(self, answer: bytes, prompt: Any, count: int, more: dict[str, Any]) -> None:
        if not answer.startswith(b"HTTP/1.1 200 "):
            return
        draws = range(more.get("n", 1))
        body = answer.partition(b"\r\n\r\n")[2]
        if more["stream"]:
            events = events_in(body)
            if "error" in events[-1]:
                self._heard.cut += 1
                return
            assert b"data: [DONE]\n\n" in body
            texts = [said_in(events, draw) for draw in draws]
        else:
            texts = [choice["text"] for choice in json.loads(body)["choices"]]
        sampling = {"seed": more["seed"], "temperature": 1.0} if "seed" in more else {}
        assert texts == [
            text_of(sums(prompt, count, ends=(), **({**sampling, "draw": draw} if sampling else {}))) for draw in draws
        ]
        self._heard.whole += 1


async def storm(client: Client, chance: random.Random, signal: Callable[[], None]) -> None:
    """All requests, so many at once; at one of them the server is told to stop."""
    kinds: tuple[tuple[Callable[[], Awaitable[None]], int], ...] = (
        (client.honest, 45),
        (client.leaving, 35),
        (client.slow, 4),
        (client.malformed, 10),
        (client.oversized, 6),
    )
    chosen = chance.choices([kind for kind, _ in kinds], [weight for _, weight in kinds], k=REQUESTS)
    room = asyncio.Semaphore(AT_ONCE)

    async def one(number: int, kind: Callable[[], Awaitable[None]]) -> None:
        async with room:
            if number == SIGNAL_AT:
                signal()
            with contextlib.suppress(ConnectionError):
                await kind()

    async with asyncio.TaskGroup() as group:
        for number, kind in enumerate(chosen):
            group.create_task(one(number, kind))


def assert_nothing_is_left(served: Served, engine: SummingEngine) -> None:
    """No slot, no request, no answer whose end was not told."""
    service = served.running.front.service
    assert service is not None
    until(lambda: is_idle(service.scheduler) and not served.running.front.gate.inside)
    said = service.scheduler.statistics()
    assert (said.running, said.waiting, said.engine_failures, said.listener_failures) == (0, 0, 0, 0)
    assert sorted(engine.free_slots()) == [1, 2, 3, 4, 5, 6]
    assert engine.calls[Call.ADMIT] == engine.calls[Call.RELEASE] > 100


@pytest.mark.parametrize(("seed", "devices"), [(1, 1), (2, 3)])
def test_a_thousand_requests(seed: int, devices: int, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(seed)
    said = settings(slots=6, queue=40, most_body=MOST_BODY, grid=64, prefill_tokens=64, drain_timeout=1000)
    engine = engine_for(said, devices=devices)
    heard = Heard()
    with serving(said, engine=engine) as served:
        asyncio.run(storm(Client(served.port, chance, heard), chance, served.signal))
        assert served.wait() is ExitCode.FINE
        assert_nothing_is_left(served, engine)
    assert heard.whole > 250
    assert heard.cut == 0  # the grace was long enough
    assert set(heard.statuses) <= {0, 200, 400, 404, 413, 429, 503}
    assert heard.statuses[503] + heard.statuses[0] > 50  # behind the signal
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")], caplog.text
