"""Clients that leave, at every moment, and clients that stay and take nothing: no slot is kept for them."""

from __future__ import annotations

import json
import random
import socket
import struct
import threading
from collections.abc import Iterator

import httpx
import pytest

from inference.testing import Call
from tests.inference.http.serving import (
    NAME,
    Served,
    completion,
    engine_for,
    events_in,
    raw,
    request,
    said_in,
    serving,
    settings,
    sums,
    text_of,
    until,
)

STEP = 0.002


@pytest.fixture(scope="module")
def two() -> Iterator[Served]:
    """Two slots, and a millisecond or two for every step; prompts of a thousand tokens are read in sixteen pieces."""
    said = settings(slots=2, grid=64, prefill_tokens=64, queue=64, context=1 << 16, cache_memory=0)
    engine = engine_for(said, delays={Call.DECODE: STEP, Call.PREFILL: STEP})
    with serving(said, engine=engine) as server:
        yield server


def body(stream: bool, prompt: str = "abc", tokens: int = 60_000) -> bytes:
    return json.dumps(completion(prompt, stream=stream, max_tokens=tokens, ignore_eos=True)).encode()


def leave(plain: socket.socket, *, reset: bool) -> None:
    """Close, or break off as a process does that is killed with data unread."""
    if reset:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    plain.close()


def idle(served: Served) -> bool:
    service = served.running.front.service
    assert service is not None
    said = service.scheduler.statistics()
    return said.running == said.waiting == 0


def generated(served: Served) -> int:
    service = served.running.front.service
    assert service is not None
    return service.scheduler.statistics().generated_tokens


def gone(served: Served) -> float:
    """Requests that the server has counted as left by their clients."""
    samples = [sample for family in served.running.metrics.responses.collect() for sample in family.samples]
    return sum(each.value for each in samples if each.name.endswith("_total") and each.labels["status"] == "499")


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize(
    ("when", "stream", "prompt"),
    [
        ("head only", True, "abc"),  # before the body has come
        ("sent", True, "abc"),  # before the stream has begun: what never starts has no `finally` of its own
        ("sent", False, "abc"),
        ("reading", True, "a" * 20_000),  # in the middle of a long prompt
        ("reading", False, "a" * 20_000),
        ("first", True, "abc"),  # behind the first bytes of the answer
        ("some", True, "abc"),
        ("answering", False, "abc"),  # while the engine works, and nothing has been sent
    ],
)
def test_a_client_leaves(two: Served, when: str, stream: bool, prompt: str, reset: bool) -> None:
    sent = request("/v1/completions", body(stream, prompt))
    before, left = generated(two), gone(two)
    plain = raw(two)
    plain.sendall(sent[:-10] if when == "head only" else sent)
    if when in ("first", "some"):
        for _ in range(1 if when == "first" else 4):
            assert plain.recv(256)
    elif when == "reading":
        until(lambda: not idle(two))
    elif when == "answering":
        until(lambda: generated(two) > before + 3)
    leave(plain, reset=reset)
    until(lambda: gone(two) > left)  # a server may be idle since it has not heard of the request yet
    until(lambda: idle(two))
    stopped = generated(two)
    threading.Event().wait(10 * STEP)
    assert generated(two) == stopped
    assert two.metric("vllm:kv_cache_usage_perc") == 0


def test_many_leave_and_another_is_answered_as_if_alone(two: Served) -> None:
    """Two hundred clients that leave at any moment; a stream beside them has the tokens that it has alone."""
    moments = random.Random(7)
    beside: list[str] = []

    def stay() -> None:
        with two.client() as http:
            asked = completion("stay", stream=True, max_tokens=150, ignore_eos=True)
            with http.stream("POST", "/v1/completions", json=asked) as answer:
                beside.append(said_in(events_in(answer.read())))

    thread = threading.Thread(target=stay)
    thread.start()
    for number in range(200):
        plain, stream = raw(two), moments.random() < 0.7
        plain.sendall(request("/v1/completions", body(stream, f"prompt {number}" * 20)))
        for _ in range(moments.choice((0, 0, 1, 2)) if stream else 0):
            assert plain.recv(100)
        leave(plain, reset=moments.random() < 0.5)
    thread.join(60)
    until(lambda: idle(two))
    with two.client() as http:
        answer = http.post("/v1/completions", json=completion("then", max_tokens=20)).json()
    assert answer["choices"][0]["text"] == text_of(sums("then", 20))
    assert beside == [text_of(sums("stay", 150, ends=()))]
    assert two.metric("spotrail_state_slots_used") == 0


def test_of_several_answers_all_are_cancelled(two: Served) -> None:
    plain = raw(two)
    said = completion(["a", "b"], n=3, seed=1, stream=True, max_tokens=50_000, ignore_eos=True)
    plain.sendall(request("/v1/completions", json.dumps(said).encode()))
    assert plain.recv(256)
    assert two.metric("vllm:num_requests_running") + two.metric("vllm:num_requests_waiting") == 6
    plain.close()
    until(lambda: idle(two))


def test_a_client_that_sends_the_next_request_early_is_seen_to_leave(two: Served) -> None:
    sent = request("/v1/completions", body(stream=False))
    plain = raw(two)
    plain.sendall(sent + sent)
    until(lambda: not idle(two))
    leave(plain, reset=False)
    until(lambda: idle(two))


def test_requests_sent_ahead_are_answered_in_order(two: Served) -> None:
    with raw(two) as plain:
        asked = [request("/v1/completions", body(False, prompt, 5)) for prompt in ("one", "two")]
        plain.sendall(b"".join(asked))
        heard = b""
        while heard.count(b'"usage"') < 2:
            heard += plain.recv(4096)
    bodies = [json.loads(part[part.index(b"{") :]) for part in heard.split(b"HTTP/1.1 200 OK\r\n")[1:]]
    assert [found["choices"][0]["text"] for found in bodies] == [text_of(sums(prompt, 5)) for prompt in ("one", "two")]


class TestTakingNothing:
    """A client that reads nothing."""

    def test_it_is_dropped_and_holds_up_nobody(self) -> None:
        said = settings(slots=2, context=1 << 20, stall_timeout=0.5, grid=64, prefill_tokens=64)
        with serving(said, engine=engine_for(said)) as server:
            plain = raw(server, receive_buffer=4096)
            # Of 20 alternatives each, so that the buffers of the system are soon full.
            asked = completion("abc", stream=True, max_tokens=900_000, ignore_eos=True, logprobs=5)
            plain.sendall(request("/v1/completions", json.dumps(asked).encode()))
            until(lambda: not idle(server))
            with server.client() as http:
                for _ in range(5):
                    answer = http.post("/v1/completions", json=completion("hello", max_tokens=20)).json()
                    assert answer["choices"][0]["text"] == text_of(sums("hello", 20))
            until(lambda: idle(server))
            assert server.metric("spotrail_clients_stalled_total") == 1
            until(lambda: not server.running.front.gate.inside)
            plain.close()

    def test_one_that_is_slow_gets_all_of_it_in_fewer_pieces(self) -> None:
        said = settings(slots=2, context=1 << 16, grid=64, prefill_tokens=64)
        with serving(said) as server, raw(server, receive_buffer=4096) as plain:
            asked = completion("abc", stream=True, max_tokens=12_000, ignore_eos=True)
            plain.sendall(request("/v1/completions", json.dumps(asked).encode()))
            until(lambda: not idle(server))
            until(lambda: idle(server))  # its slot is free before it has begun to read
            heard = b""
            while b"data: [DONE]" not in heard[-40:]:
                heard += plain.recv(1 << 16)
        events = events_in(heard)
        assert said_in(events) == text_of(sums("abc", 12_000, ends=()))
        assert len(events) < 6_000

    def test_one_that_sends_no_more_is_told(self) -> None:
        with serving(settings(stall_timeout=0.2)) as server, raw(server) as plain:
            plain.sendall(request("/v1/completions", b"x" * 100)[:-50])
            heard = b""
            while part := plain.recv(4096):
                heard += part
        assert heard.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in heard.lower()

    @pytest.mark.parametrize("sent", [b"", b"POST /v1/comp"])
    def test_one_that_never_asks_is_left(self, sent: bytes) -> None:
        with serving(settings(stall_timeout=0.2)) as server, raw(server) as plain:
            plain.sendall(sent)
            with pytest.raises(ConnectionResetError):
                assert plain.recv(10)


def test_httpx_leaves_a_stream(two: Served) -> None:
    """As users of Python do: break out of the loop."""
    with httpx.Client(base_url=two.url, timeout=60, trust_env=False) as http:
        said = {"model": NAME, "messages": [{"role": "user", "content": "x"}], "stream": True, "ignore_eos": True}
        with http.stream("POST", "/v1/chat/completions", json={**said, "max_tokens": 50_000}) as answer:
            for line in answer.iter_lines():
                if line:
                    break
    until(lambda: idle(two))
