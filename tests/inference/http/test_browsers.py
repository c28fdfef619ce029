"""Pages in a browser: which may ask (CORS), and what they are told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from inference.http.authentication import read_keys
from tests.inference.http.serving import Served, completion, serving, settings

PAGE = "https://chat.example.com"
KEY = "alice-0123456789abcdef"
PREFLIGHT = {
    "origin": PAGE,
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type,x-stainless-lang",
}
"""What a browser asks before it lets the client of OpenAI send a key and JSON."""


@pytest.fixture(scope="module")
def open_to_one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    file = tmp_path_factory.mktemp("keys") / "keys"
    file.write_text(f"{KEY}\n")
    with serving(settings(allowed_origins=(PAGE,)), keys=read_keys(file)) as server:
        yield server


def test_a_page_that_is_named_may_ask(open_to_one: Served) -> None:
    with open_to_one.client() as http:
        before = http.options("/v1/chat/completions", headers=PREFLIGHT)  # by a browser, which sends no key with it
        answer = http.post(
            "/v1/completions",
            json=completion("x", max_tokens=2),
            headers={"origin": PAGE, "authorization": f"Bearer {KEY}"},
        )
    assert before.status_code == 200
    assert before.headers["access-control-allow-origin"] == PAGE
    assert "POST" in before.headers["access-control-allow-methods"]
    allowed = before.headers["access-control-allow-headers"].lower().replace(" ", "").split(",")
    assert set(PREFLIGHT["access-control-request-headers"].split(",")) <= set(allowed)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "x-request-id" in answer.headers["access-control-expose-headers"]


def test_it_can_read_why_it_was_refused(open_to_one: Served) -> None:
    with open_to_one.client() as http:
        refused = http.get("/v1/models", headers={"origin": PAGE})
    assert refused.status_code == 401
    assert refused.headers["access-control-allow-origin"] == PAGE
    assert "access-control-allow-credentials" not in refused.headers


def test_another_page_may_not(open_to_one: Served) -> None:
    with open_to_one.client() as http:
        before = http.options("/v1/chat/completions", headers={**PREFLIGHT, "origin": "https://evil.example.com"})
        answer = http.get("/livez", headers={"origin": "https://evil.example.com"})
    assert before.status_code == 400
    for each in (before, answer):
        assert "access-control-allow-origin" not in each.headers


def test_all_may_where_all_are_named() -> None:
    with serving(settings(allowed_origins=("*",))) as served, served.client() as http:
        before = http.options("/v1/completions", headers=PREFLIGHT)
        with http.stream(
            "POST", "/v1/completions", json=completion("x", stream=True, max_tokens=2), headers={"origin": PAGE}
        ) as answer:
            heard = answer.read()
        assert before.headers["access-control-allow-origin"] == answer.headers["access-control-allow-origin"] == "*"
        assert heard.endswith(b"data: [DONE]\n\n")


def test_without_the_option_no_page_may() -> None:
    with serving() as served, served.client() as http:
        assert http.options("/v1/completions", headers=PREFLIGHT).status_code == 405
        assert "access-control-allow-origin" not in http.get("/v1/models", headers={"origin": PAGE}).headers
