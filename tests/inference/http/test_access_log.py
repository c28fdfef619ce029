"""The access log: one line a request, with who, what and how it ended, and nothing that was asked or answered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from inference.http import access_log
from inference.http.authentication import read_keys
from inference.testing import Call
from tests.inference.http.serving import Served, completion, engine_for, raw, request, serving, settings, until

KEY = "alice-0123456789abcdef"
LINE = re.compile(
    r'(?P<client>[\d.]+:\d+) - "(?P<request>[^"]*)" (?P<status>\d+) (?P<seconds>\d+\.\d{3})s (?P<size>\d+)B '
    r"tenant=(?P<tenant>\S+) id=(?P<id>\S+)"
)
"""Up to the status as uvicorn has it."""


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    file = tmp_path_factory.mktemp("keys") / "keys"
    file.write_text(f"alice {KEY}\n")
    said = settings(access_log=True, grid=64, prefill_tokens=64)
    with serving(said, engine=engine_for(said, delays={Call.DECODE: 0.002}), keys=read_keys(file)) as server:
        yield server


def lines(served: Served) -> list[re.Match[str]]:
    return [match for line in served.said if (match := LINE.fullmatch(line))]


def last(served: Served, request_id: str) -> re.Match[str]:
    """The one line of a request."""
    until(lambda: any(each["id"] == request_id for each in lines(served)))
    (found,) = [each for each in lines(served) if each["id"] == request_id]
    return found


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer(logged: Served, stream: bool) -> None:
    headers = {"authorization": f"Bearer {KEY}", "x-request-id": f"mine-{stream}"}
    with logged.client(headers=headers) as http:
        answer = http.post("/v1/completions?key=secret", json=completion("a prompt", max_tokens=3, stream=stream))
    found = last(logged, f"mine-{stream}")
    assert found["request"] == "POST /v1/completions HTTP/1.1"
    assert (found["status"], found["tenant"]) == ("200", "alice")
    assert int(found["size"]) == len(answer.content)
    assert 0 < float(found["seconds"]) < 60
    for secret in ("prompt", KEY, "secret", json.dumps(answer.text)[1:20]):
        assert secret not in "".join(logged.said)


@pytest.mark.parametrize(
    ("path", "key", "status", "tenant"),
    [("/v1/models", "wrong", 401, "-"), ("/nothing/here", KEY, 404, "alice"), ("/v1/completions", KEY, 405, "alice")],
)
def test_a_refusal(logged: Served, path: str, key: str, status: int, tenant: str) -> None:
    with logged.client(headers={"authorization": f"Bearer {key}", "x-request-id": f"refused-{status}"}) as http:
        assert http.get(path).status_code == status
    found = last(logged, f"refused-{status}")
    assert (found["request"], found["status"], found["tenant"]) == (f"GET {path} HTTP/1.1", str(status), tenant)


def test_a_client_that_leaves(logged: Served) -> None:
    body = json.dumps(completion("x", stream=True, max_tokens=4000, ignore_eos=True)).encode()
    with raw(logged) as plain:
        plain.sendall(request("/v1/completions", body, more=f"Authorization: Bearer {KEY}\r\nX-Request-Id: gone\r\n"))
        plain.recv(100)
    assert last(logged, "gone")["status"] == "499"
    with raw(logged) as plain:
        plain.sendall(
            request("/v1/completions", body, more=f"Authorization: Bearer {KEY}\r\nX-Request-Id: early\r\n")[:-5]
        )
    assert last(logged, "early")["status"] == "499"


def test_no_client_makes_a_line_of_its_own(logged: Served) -> None:
    head = (
        b"GET /a%0a12:00:00%20error:%20lies%22/" + b"x" * 500 + b" HTTP/1.1\r\nHost: x\r\nX-Request-Id: forged\r\n\r\n"
    )
    with raw(logged) as plain:
        plain.sendall(head)
        plain.recv(1000)
    found = last(logged, "forged")
    assert found["request"].startswith("GET /a%0a12:00:00%20error:%20lies%22/xxx")
    assert len(found["request"]) == len("GET  HTTP/1.1") + access_log.LONGEST_PATH


def test_probes_are_there_where_they_fail() -> None:
    with serving(settings(access_log=True)) as served, served.client() as http:
        for path in ("/livez", "/readyz", "/metrics"):
            assert http.get(path).status_code == 200
        assert http.post("/readyz").status_code == 405
        until(lambda: bool(lines(served)))
        assert [each["request"] for each in lines(served)] == ["POST /readyz HTTP/1.1"]


def test_without_the_option_there_is_none() -> None:
    with serving() as served, served.client() as http:
        http.post("/v1/completions", json=completion("x", max_tokens=1))
        http.get("/nothing")
        assert lines(served) == []


def test_an_address_of_ipv4_is_shown_as_one() -> None:
    scope = {"client": ("::ffff:10.0.0.7", 5), "raw_path": b"/x", "method": "GET", "http_version": "1.1"}
    said = access_log.line(scope, 200, seconds=0.5, size=3, request_id="r", tenant="")
    assert said == '10.0.0.7:5 - "GET /x HTTP/1.1" 200 0.500s 3B tenant=- id=r'
