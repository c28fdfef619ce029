"""A real server over loopback, with an engine whose tokens are sums, for the tests of this folder."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, final

import httpx
from prometheus_client.parser import text_string_to_metric_families

from inference.engine.sampling_parameters import SamplingParameters
from inference.exit_codes import ExitCode
from inference.http.authentication import Keys
from inference.http.lifecycle import Event
from inference.http.running import Assemble, Running, listen
from inference.http.service import Assembled
from inference.protocol.served_model import ServedModel
from inference.settings import Settings
from inference.testing import SummingEngine, answer
from training.model.tokenizer import Tokenizer, train_tokenizer

NAME: Final = "sums"
END_OF_TEXT: Final = 0
"""A trained tokenizer has its reserved tokens as 0 to 4."""


@lru_cache
def tokenizer() -> Tokenizer:
    """Bytes and the reserved tokens: every text is as many tokens as bytes."""
    return train_tokenizer([], 261)


def settings(**said: Any) -> Settings:
    """Those of tests: small, and nothing is waited for long."""
    usual: dict[str, Any] = {"slots": 4, "context": 4096, "cache_memory": 1 << 20, "model_name": NAME, "port": 0}
    return Settings(weights="none", **{**usual, **said})


def model(context: int) -> ServedModel:
    """What the engine is served as."""
    return ServedModel(
        name=NAME,
        tokenizer=tokenizer(),
        context=context,
        vocab_size=tokenizer().vocab_size,
        created=1_700_000_000,
        fingerprint="fp_sums",
        most_answers=64,
    )


def engine_for(said: Settings, **more: Any) -> SummingEngine:
    """An engine of these settings."""
    return SummingEngine(
        slots=said.slots, grid=said.grid, context=said.context, vocab_size=tokenizer().vocab_size, **more
    )


def assembled(engine: SummingEngine) -> Assembled:
    """It, ready to be served."""
    return Assembled(engine=engine, fingerprint=engine.fingerprint, model=model(engine.limits.context))


def at_once(engine: SummingEngine) -> Assemble:
    """The assembly of an engine that is there."""

    def assemble(tell: Callable[[Event], None]) -> Assembled:
        tell(Event.WEIGHTS)
        tell(Event.COMPILE)
        return assembled(engine)

    return assemble


@final
@dataclass(kw_only=True)
class Served:
    """A server that runs on a thread of this process."""

    running: Running
    said: list[str]
    """What it has said."""
    thread: threading.Thread
    ended: list[ExitCode] = field(default_factory=list)
    """Its exit code, when it is over."""

    @property
    def url(self) -> str:
        return self.running.url

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def signal(self) -> None:
        """As SIGTERM does."""
        self.running.tell(Event.SIGNAL)

    def wait(self, seconds: float = 60) -> ExitCode:
        """For its end."""
        self.thread.join(seconds)
        assert not self.thread.is_alive(), "the server does not end"
        return self.ended[0]

    def client(self, **more: Any) -> httpx.Client:
        """A client of its own; no proxies, no retries, no certificates to load."""
        return httpx.Client(base_url=self.url, timeout=60, trust_env=False, verify=False, **more)

    def metric(self, name: str, **labels: str) -> float:
        """A number of `/metrics`: the sum over the samples that have these labels."""
        with self.client() as client:
            text = client.get("/metrics").text
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        found = [
            sample.value for sample in samples if sample.name == name and labels.items() <= dict(sample.labels).items()
        ]
        assert found, f"no {name} with {labels}"
        return sum(found)


@contextmanager
def serving(
    said: Settings | None = None,
    *,
    engine: SummingEngine | None = None,
    assemble: Assemble | None = None,
    keys: Keys | None = None,
    wait: bool = True,
) -> Iterator[Served]:
    """A server until the block ends; then it is told to stop, twice."""
    said = said or settings()
    lines: list[str] = []
    listening = listen("127.0.0.1", 0)
    making = assemble or at_once(engine or engine_for(said))
    running = Running(said, making, listening=listening, keys=keys, say=lines.append)
    ended: list[ExitCode] = []
    others = set(threading.enumerate())
    thread = threading.Thread(target=lambda: ended.append(asyncio.run(running.run())), name="server")
    served = Served(running=running, said=lines, thread=thread, ended=ended)
    thread.start()
    try:
        if wait:
            until(lambda: running.life.ready)
        yield served
    finally:
        for _ in range(2):
            served.signal()
        thread.join(60)
        for left in set(threading.enumerate()) - others:
            if left.name == "spotrail assembly":
                left.join(60)
    assert not thread.is_alive(), "the server does not end"


def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for what will be so soon."""
    pause = threading.Event()
    for _ in range(int(seconds / 0.005)):
        if holds():
            return
        pause.wait(0.005)
    raise AssertionError(f"not so within {seconds:g} s")


def sums(
    prompt: str | Sequence[int], count: int, *, ends: Sequence[int] = (END_OF_TEXT,), **parameters: Any
) -> list[int]:
    """The tokens that the engine answers, by hand: up to one of `ends`, the first of which ends a completion."""
    ids = tokenizer().encode(prompt) if isinstance(prompt, str) else list(prompt)
    said = SamplingParameters(**{"temperature": 0.0, **parameters})
    return until_end(answer(ids, count, said, vocab_size=tokenizer().vocab_size), ends)


def until_end(tokens: Sequence[int], ends: Sequence[int]) -> list[int]:
    """Those before the first that ends an answer, and that one."""
    for place, token in enumerate(tokens):
        if token in ends:
            return list(tokens[: place + 1])
    return list(tokens)


def text_of(tokens: Sequence[int]) -> str:
    """As it is shown: reserved tokens are not."""
    pieces = model(64).vocabulary.pieces(skip_special=True)
    return b"".join(pieces[token] for token in tokens).decode("utf-8", "replace")


def completion(prompt: Any, **more: Any) -> Mapping[str, Any]:
    """A body, of temperature 0."""
    return {"model": NAME, "prompt": prompt, "temperature": 0, **more}


def events_in(heard: str | bytes) -> list[Any]:
    """The JSON events of a stream, whatever is between them."""
    text = heard.decode() if isinstance(heard, bytes) else heard
    found = [line.removeprefix("data: ") for line in text.split("\n") if line.startswith("data: {")]
    return [json.loads(line) for line in found]


def said_in(events: Sequence[Any], index: int = 0) -> str:
    """The text of one answer to a completion, of the events of its stream."""
    choices = [choice for event in events for choice in event["choices"]]
    return "".join(choice["text"] for choice in choices if choice["index"] == index)


def raw(served: Served, *, receive_buffer: int | None = None) -> socket.socket:
    """A plain connection."""
    plain = socket.socket()
    if receive_buffer is not None:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    plain.settimeout(60)
    plain.connect(("127.0.0.1", served.port))
    return plain


def request(path: str, body: bytes, *, more: str = "") -> bytes:
    """A POST as bytes."""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{more}"
    return head.encode() + b"\r\n" + body
