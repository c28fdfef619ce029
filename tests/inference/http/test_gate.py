"""What every request passes: ids, keys, sizes, paths, and bodies that are no bodies."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
from collections.abc import Iterator

import pytest

from inference.http.authentication import read_keys
from inference.testing import Call
from tests.inference.http.serving import (
    NAME,
    Served,
    completion,
    engine_for,
    raw,
    request,
    serving,
    settings,
    sums,
    text_of,
    until,
)

PATH = "/v1/completions"
KEY = "alice-0123456789abcdef"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    file = tmp_path_factory.mktemp("keys") / "keys"
    file.write_text(f"alice {KEY}\nbob bob-0123456789abcdef\n")
    with serving(settings(most_body=1 << 20, grid=64, prefill_tokens=64), keys=read_keys(file)) as server:
        yield server


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/sums", "/nothing"])
@pytest.mark.parametrize("header", [None, "Bearer wrong", f"Basic {KEY}", KEY])
def test_nothing_is_told_without_a_key(guarded: Served, path: str, header: str | None) -> None:
    with guarded.client() as http:
        refused = http.get(path, headers={"authorization": header} if header else {})
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert refused.json()["error"] == {
        "message": "No valid API key: send one of this server's keys as `Authorization: Bearer KEY`",
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_api_key",
    }


def test_what_is_no_http_behind_an_answer_ends_the_connection_and_nothing_else(
    guarded: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """The rest of a body that was refused unread."""
    with raw(guarded) as plain:
        plain.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert plain.recv(1 << 16).startswith(b"HTTP/1.1 401 Unauthorized\r\n")
        plain.sendall(b"no length of a chunk\r\n")
        assert b"HTTP/1.1" not in _all(plain)
    assert [record for record in caplog.records if record.name == "asyncio"] == []


@pytest.mark.parametrize("path", [PATH, "/livez"])
def test_a_body_of_two_lengths_is_no_request_and_ends_the_connection(guarded: Served, path: str) -> None:
    """A proxy that believes the other one would take the rest for the next request."""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    with raw(guarded) as plain:
        plain.sendall(head.encode() + b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        heard = _all(plain)
    assert heard.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"connection: close" in heard
    assert b'"code":"invalid_http"' in heard
    assert heard.count(b"HTTP/1.1 ") == 1


def _all(plain: socket.socket) -> bytes:
    """What comes until the server closes."""
    heard = b""
    while part := plain.recv(1 << 16):
        heard += part
    return heard


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/health", "/startupz", "/version", "/metrics"])
def test_probes_and_metrics_need_none(guarded: Served, path: str) -> None:
    with guarded.client() as http:
        assert http.get(path).status_code == 200
        assert http.head(path).status_code == 200


def test_a_body_is_not_read_for_nobody(guarded: Served) -> None:
    """The refusal comes before a body of a gigabyte, of which nothing is sent."""
    with raw(guarded) as plain:
        plain.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n")
        assert plain.recv(4096).startswith(b"HTTP/1.1 401 ")


def test_tenants_share_no_kept_state(guarded: Served) -> None:
    """The same prompt of another tenant is read anew, and so nobody learns what another has asked."""
    asked = completion(list(range(5, 205)), max_tokens=2)

    def cached(key: str) -> int:
        with guarded.client(headers={"authorization": f"Bearer {key}"}) as http:
            return int(
                http.post("/v1/completions", json=asked).json()["usage"]["prompt_tokens_details"]["cached_tokens"]
            )

    assert [cached(key) for key in (KEY, KEY, "bob-0123456789abcdef", "bob-0123456789abcdef")] == [0, 192, 0, 192]


class TestIds:
    """x-request-id."""

    def test_one_that_is_sent_comes_back(self, served: Served) -> None:
        with served.client() as http:
            for path, code in (("/livez", 200), ("/v1/models", 200), ("/nothing", 404)):
                answer = http.get(path, headers={"x-request-id": "abc-123"})
                assert (answer.status_code, answer.headers["x-request-id"]) == (code, "abc-123")

    @pytest.mark.parametrize("sent", ["", "a b", "x" * 129])
    def test_a_bad_one_is_replaced(self, served: Served, sent: str) -> None:
        with served.client() as http:
            got = http.get("/v1/models", headers={"x-request-id": sent}).headers["x-request-id"]
        assert got != sent
        assert len(got) == 32

    def test_of_a_stream_it_is_in_the_head(self, served: Served) -> None:
        with served.client() as http:
            answer = http.post(
                "/v1/completions", json=completion("x", stream=True), headers={"x-request-id": "stream-1"}
            )
        assert answer.headers["x-request-id"] == "stream-1"
        assert answer.headers["content-type"] == "text/event-stream"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "unknown_url"),
        ("GET", "/v1/nothing", 404, "unknown_url"),
        ("GET", "/v1/completions", 405, "method_not_allowed"),
        ("DELETE", "/v1/models/sums", 405, "method_not_allowed"),
        ("GET", "/v1/models/other", 404, "model_not_found"),
        ("GET", "/v1/models/a/b", 404, "model_not_found"),
        ("POST", "/livez", 405, "method_not_allowed"),
    ],
)
def test_paths_and_methods(served: Served, method: str, path: str, status: int, code: str) -> None:
    with served.client() as http:
        answer = http.request(method, path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


class TestSizes:
    """Bodies that are too large, and those that are not."""

    def test_one_that_says_so_is_not_read(self, guarded: Served) -> None:
        with raw(guarded) as plain:
            plain.sendall(
                request("/v1/completions", b"", more=f"Authorization: Bearer {KEY}\r\n")[:-2].replace(
                    b"Content-Length: 0", b"Content-Length: 52428800"
                )
                + b"\r\n"
            )
            heard = b""
            while b"}" not in heard:
                heard += plain.recv(4096)
        assert heard.startswith(b"HTTP/1.1 413 ")
        assert b'"code":"body_too_large"' in heard

    def test_fifty_megabytes_are_refused_and_the_connection_goes_on(self, served: Served) -> None:
        """Whole, as a client sends them that does not listen before it has sent all."""
        said = settings(most_body=1 << 20)
        with serving(said) as server, server.client() as http:
            answer = http.post(
                "/v1/completions", content=b" " * 50_000_000, headers={"content-type": "application/json"}
            )
            assert answer.status_code == 413
            assert http.post("/v1/completions", json=completion("x", max_tokens=3)).status_code == 200

    def test_chunks_are_counted(self, guarded: Served) -> None:
        def chunks() -> Iterator[bytes]:
            for _ in range(40):
                yield b" " * 50_000

        headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
        with guarded.client(headers=headers) as http:
            assert http.post("/v1/completions", content=chunks()).status_code == 413

    def test_many_at_once_are_not_all_kept(self) -> None:
        """Sixteen of the largest size may be on their way; what comes beside them is told to come again."""
        limit = 64 << 10
        with serving(settings(most_body=limit)) as server:
            waiting = [raw(server) for _ in range(17)]
            for plain in waiting:
                plain.sendall(request(PATH, b" " * limit)[:-1])
            heard = b""
            while not heard:
                for plain in waiting:
                    plain.settimeout(0.02)
                    with contextlib.suppress(TimeoutError):
                        heard += plain.recv(4096)
            assert heard.startswith(b"HTTP/1.1 429 ")
            for plain in waiting:
                plain.close()
            with server.client() as http:
                until(lambda: http.post(PATH, json=completion("x", max_tokens=1)).status_code == 200)

    def test_a_long_one_that_fits_is_answered(self, guarded: Served) -> None:
        """Read beside the event loop: some hundred kilobytes of spaces."""
        said = json.dumps(completion("hello", max_tokens=9)).encode()
        headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
        with guarded.client(headers=headers) as http:
            answer = http.post("/v1/completions", content=said + b" " * 500_000)
        assert answer.json()["choices"][0]["text"] == text_of(sums("hello", 9))

    def test_a_client_that_asks_first_is_told_to_go_on_or_not(self, served: Served) -> None:
        said = json.dumps(completion("hello", max_tokens=3)).encode()
        sent = request("/v1/completions", said, more="Expect: 100-continue\r\n")
        with raw(served) as plain:
            plain.sendall(sent[: -len(said)])
            assert plain.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
            plain.sendall(said)
            assert plain.recv(4096).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize"])
@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"null", b"{", b'{"model":', b"\xff\xfe", b'{"a":NaN}', b"[" * 100_000, gzip.compress(b"{}"), b"{}x"],
    ids=["empty", "list", "null", "open", "cut", "no text", "nan", "deep", "packed", "behind"],
)
def test_what_is_no_body_is_400(served: Served, path: str, body: bytes) -> None:
    with served.client() as http:
        answer = http.post(path, content=body, headers={"content-type": "application/json"})
    error = answer.json()["error"]
    assert answer.status_code == 400
    assert set(error) == {"message", "type", "param", "code"}
    assert len(answer.content) < 1000


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_other_content_types_are_400(served: Served, kind: str) -> None:
    with served.client() as http:
        answer = http.post("/v1/completions", content=json.dumps(completion("x")), headers={"content-type": kind})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unsupported_content_type")


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",  # no host
        b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",  # TLS
    ],
    ids=["words", "no host", "negative", "two lengths", "bad chunk", "tls"],
)
def test_what_is_no_http_is_told_so(served: Served, sent: bytes) -> None:
    with raw(served) as plain:
        plain.sendall(sent)
        head, _, body = _all(plain).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert json.loads(body)["error"]["code"] == "invalid_http"
    with served.client() as http:
        assert http.get("/livez").status_code == 200


def test_a_long_address_is_refused(served: Served) -> None:
    with raw(served) as plain:
        plain.sendall(b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        assert plain.recv(4096)[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 404")
    with served.client() as http:
        assert http.get("/livez").status_code == 200


def test_a_full_queue_says_when_to_come_again() -> None:
    said = settings(slots=1, queue=1)
    # Slow enough that the first is still answered when the last asks, on a machine that is busy too.
    with serving(said, engine=engine_for(said, delays={Call.DECODE: 0.01})) as server:
        service = server.running.front.service
        assert service is not None
        streams = []
        for _ in range(2):
            plain = raw(server)
            asked = completion("abc", stream=True, max_tokens=4000, ignore_eos=True, n=1)
            plain.sendall(request("/v1/completions", json.dumps(asked).encode()))
            streams.append(plain)
            plain.recv(10) if len(streams) == 1 else None
        with server.client() as http:
            answer = http.post("/v1/completions", json=completion("x", n=2, seed=1, max_tokens=1))
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) >= 1
        assert answer.json()["error"]["code"] == "rate_limit_exceeded"
        assert server.metric("spotrail_answers_refused_total") >= 1
        for plain in streams:
            plain.close()


def test_another_name_of_the_model(served: Served) -> None:
    with served.client() as http:
        answer = http.post("/v1/completions", json={**completion("x"), "model": NAME + "2"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (404, "model")
