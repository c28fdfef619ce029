"""From the first probe to the exit code: starting, a signal at any moment, and what those hear who are answered."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from inference.errors import ServingError
from inference.exit_codes import ExitCode
from inference.http.lifecycle import Event, Phase
from inference.http.service import Assembled, AssemblyError
from inference.testing import Call, Fault
from tests.inference.http.serving import (
    Served,
    assembled,
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

TOKENS = 100


class Stream(threading.Thread):
    """A client that is answered, on a thread of its own."""

    def __init__(self, served: Served, prompt: str, tokens: int = TOKENS) -> None:
        super().__init__(name=f"client {prompt}")
        self._served, self._asked = served, completion(prompt, stream=True, max_tokens=tokens, ignore_eos=True)
        self.begun = threading.Event()
        self.heard = ""
        self.start()

    def run(self) -> None:
        with self._served.client() as http, http.stream("POST", "/v1/completions", json=self._asked) as answer:
            for part in answer.iter_text():
                self.heard += part
                self.begun.set()

    def all(self) -> str:
        """What it has heard, when it is over."""
        self.join(60)
        return self.heard


@contextmanager
def streaming(drain_timeout: float, tokens: int = TOKENS) -> Iterator[tuple[Served, list[Stream]]]:
    """A server in the middle of two streams; a step takes 5 ms."""
    said = settings(slots=2, drain_timeout=drain_timeout)
    engine = engine_for(said, delays={Call.DECODE: 0.005})
    with serving(said, engine=engine) as served:
        streams = [Stream(served, prompt, tokens) for prompt in ("one", "two")]
        for stream in streams:
            assert stream.begun.wait(60)
        yield served, streams


def test_a_signal_lets_answers_end_and_nobody_in() -> None:
    with streaming(drain_timeout=1000) as (served, streams):
        served.signal()
        until(lambda: served.running.life.phase is Phase.DRAINING)
        with served.client() as http:
            ready, health, alive = (http.get(path) for path in ("/readyz", "/health", "/livez"))
            refused = http.post("/v1/completions", json=completion("x"))
        assert (ready.status_code, health.status_code, alive.status_code) == (503, 503, 200)
        assert ready.json() == {"phase": "draining"}
        assert refused.status_code == 503
        assert refused.headers["retry-after"] == "1"
        assert refused.headers["connection"] == "close"
        assert refused.json()["error"]["code"] == "draining"
        for stream, prompt in zip(streams, ("one", "two"), strict=True):
            heard = stream.all()
            assert said_in(events_in(heard)) == text_of(sums(prompt, TOKENS, ends=()))
            assert events_in(heard)[-1]["choices"][0]["finish_reason"] == "length"
            assert heard.endswith("data: [DONE]\n\n")
        assert served.wait() is ExitCode.FINE


def test_when_the_grace_is_over_streams_end_with_an_error() -> None:
    with streaming(drain_timeout=0.2, tokens=4000) as (served, streams):
        served.signal()
        for stream in streams:
            last = events_in(stream.all())[-1]
            assert last["error"]["code"] == "cut_off"
            assert "[DONE]" not in stream.heard
        assert served.wait() is ExitCode.CUT_OFF
        assert served.said[-1] == f"stopped: {ExitCode.CUT_OFF.meaning}"


def test_a_second_signal_does_not_wait() -> None:
    with streaming(drain_timeout=1000, tokens=4000) as (served, streams):
        served.signal()
        until(lambda: served.running.life.phase is Phase.DRAINING)
        served.signal()
        assert [events_in(stream.all())[-1]["error"]["code"] for stream in streams] == ["cut_off", "cut_off"]
        assert served.wait() is ExitCode.CUT_OFF


def test_who_waits_for_a_whole_answer_hears_503() -> None:
    said = settings(slots=1, drain_timeout=0.1)
    heard = []
    with serving(said, engine=engine_for(said, delays={Call.DECODE: 0.005})) as served:

        def ask() -> None:
            with served.client() as http:
                heard.append(http.post("/v1/completions", json=completion("x", max_tokens=4000, ignore_eos=True)))

        threads = [threading.Thread(target=ask) for _ in range(2)]  # one in the slot, one in the queue
        for thread in threads:
            thread.start()
        until(lambda: served.running.front.gate.inside == 2)
        served.signal()
        assert served.wait() is ExitCode.CUT_OFF
        for thread in threads:
            thread.join(60)
    assert [answer.status_code for answer in heard] == [503, 503]
    assert {answer.json()["error"]["code"] for answer in heard} == {"cut_off"}
    assert {answer.headers["retry-after"] for answer in heard} == {"1"}


def test_a_server_without_answers_leaves_at_once() -> None:
    with serving(settings(drain_timeout=1000)) as served:
        served.signal()
        assert served.wait() is ExitCode.FINE


def test_who_takes_the_last_of_it_late_is_waited_for_but_not_behind_a_second_signal() -> None:
    """All is answered, and a client has not taken it yet: the buffers of the system hold less than the answer."""
    said = settings(slots=1, context=1 << 16, drain_timeout=1000)
    with serving(said) as served, raw(served, receive_buffer=4096) as plain:
        asked = completion("x", max_tokens=6000, ignore_eos=True, logprobs=5)
        plain.sendall(request("/v1/completions", json.dumps(asked).encode()))
        until(lambda: served.metric("vllm:request_generation_tokens_count") == 1)
        served.signal()
        until(lambda: served.running.life.phase is Phase.STOPPED)
        assert served.thread.is_alive()
        served.signal()
        assert served.wait() is ExitCode.FINE


class TestStarting:
    """A server that is not ready."""

    @pytest.mark.parametrize(("events", "phase"), [((), "starting"), ((Event.WEIGHTS,), "loading")])
    @pytest.mark.parametrize("signals", [0, 1])
    def test_it_answers_probes_and_leaves_on_a_signal(
        self, events: tuple[Event, ...], phase: str, signals: int
    ) -> None:
        going = threading.Event()
        said = settings()

        def assemble(tell: Callable[[Event], None]) -> Assembled:
            for event in events:
                tell(event)
            assert going.wait(60)
            tell(Event.WEIGHTS)
            tell(Event.COMPILE)
            return assembled(engine_for(said))

        with serving(said, assemble=assemble, wait=False) as served:
            with served.client() as http:
                until(lambda: http.get("/readyz").json() == {"phase": phase})
                probes = [http.get(path) for path in ("/livez", "/readyz", "/startupz", "/health", "/metrics")]
                assert [probe.status_code for probe in probes] == [200, 503, 503, 503, 200]
                refused = http.post("/v1/completions", json=completion("x"))
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
                assert refused.json()["error"]["code"] == "not_ready"
            assert served.metric("spotrail_server_phase", phase=phase) == 1
            if signals:
                served.signal()
                assert served.wait() is ExitCode.FINE
                going.set()
                return
            going.set()
            until(lambda: served.running.life.ready)
            with served.client() as http:
                assert http.get("/startupz").status_code == 200
                assert http.post("/v1/completions", json=completion("x")).status_code == 200

    @pytest.mark.parametrize(
        ("error", "code", "says"),
        [
            (ServingError("model.safetensors: is 3 bytes short"), ExitCode.BAD_INPUT, "model.safetensors: is 3 bytes"),
            (AssemblyError("gs://b: 403", Event.CLOUD_FAILED), ExitCode.CLOUD_FAILED, "gs://b: 403"),
        ],
    )
    def test_it_is_never_ready_with_weights_that_are_wrong(self, error: Exception, code: ExitCode, says: str) -> None:
        def assemble(tell: Callable[[Event], None]) -> Assembled:
            tell(Event.WEIGHTS)
            raise error

        with serving(assemble=assemble, wait=False) as served:
            assert served.wait() is code
            assert "ready" not in served.said
            assert any(line.startswith(f"error: {says}") for line in served.said)

    def test_a_bug_is_one(self, caplog: pytest.LogCaptureFixture) -> None:
        def assemble(tell: Callable[[Event], None]) -> Assembled:
            raise ZeroDivisionError

        with serving(assemble=assemble, wait=False) as served:
            assert served.wait() is ExitCode.BUG
        assert "ZeroDivisionError" in caplog.text


class TestAFailingEngine:
    """What is heard when the engine raises."""

    def test_one_failure_fails_what_is_in_it_and_no_more(self) -> None:
        said = settings(slots=2)
        with serving(said, engine=engine_for(said, faults=[Fault(call=Call.DECODE, turn=3)])) as served:
            with served.client() as http:
                failed = http.post("/v1/completions", json=completion("x", max_tokens=10, ignore_eos=True))
                then = http.post("/v1/completions", json=completion("x", max_tokens=10))
            assert failed.status_code == 500
            assert failed.json()["error"]["code"] == "engine_failed"
            assert then.json()["choices"][0]["text"] == text_of(sums("x", 10))
            assert served.metric("vllm:request_success_total", finished_reason="error") == 1

    def test_a_stream_that_has_begun_ends_with_an_error(self) -> None:
        said = settings(slots=2)
        faults = [Fault(call=Call.DECODE, turn=40)]
        with serving(said, engine=engine_for(said, faults=faults, delays={Call.DECODE: 0.005})) as served:
            stream = Stream(served, "x")
            assert events_in(stream.all())[-1]["error"]["code"] == "engine_failed"
            assert "[DONE]" not in stream.heard

    def test_a_dead_one_ends_the_server(self) -> None:
        said = settings(slots=2)
        faults = [Fault(call=Call.PREFILL), Fault(call=Call.RELEASE)]
        with serving(said, engine=engine_for(said, faults=faults)) as served:
            with served.client() as http:
                assert http.post("/v1/completions", json=completion("x")).status_code == 500
            assert served.wait() is ExitCode.BUG
            assert any("the engine is dead" in line for line in served.said)

    def test_one_that_hangs_fails_the_liveness_probe(self) -> None:
        said = settings(slots=1, heartbeat_timeout=0.3)
        going = threading.Event()

        def hang(call: Call, _slots: tuple[int, ...]) -> None:
            if call is Call.DECODE:
                going.wait(60)

        engine = engine_for(said, watch=hang)
        with serving(said, engine=engine) as served, served.client() as http:
            assert http.get("/livez").status_code == 200
            stream = Stream(served, "x", tokens=2)
            until(lambda: http.get("/livez").status_code == 503)
            assert http.get("/livez").json()["engine"] == "stuck"
            going.set()
            stream.join(60)
            assert http.get("/livez").status_code == 200
