"""The webhook, against a real server on this machine."""

from __future__ import annotations

import http.server
import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from policies.errors import InputError
from policies.guard import webhook
from policies.guard.webhook import Webhook, WebhookError, post
from tests.google_cloud.faults import Fault, FaultKind
from tests.google_cloud.world import World

SECRET = "/webhook/T0/hunter2?token=s3cr3t"


def hook(endpoint: str) -> Webhook:
    return Webhook(name="HOOK", url=endpoint + SECRET)


def test_it_posts_json(world: World, endpoint: str) -> None:
    post(hook(endpoint), {"text": "idle: 1,440.00 · größer"})
    (got,) = world.posted
    assert json.loads(got["body"]) == {"text": "idle: 1,440.00 · größer"}
    assert got["path"] == "/webhook/T0/hunter2"
    assert got["headers"]["Content-Type"] == "application/json; charset=utf-8"


@pytest.mark.parametrize("kind", [FaultKind.UNAVAILABLE, FaultKind.RATE_LIMITED])
def test_it_tries_again_and_waits_longer_each_time(world: World, endpoint: str, kind: FaultKind) -> None:
    world.fail(Fault(kind=kind, method="webhook", times=2))
    waited: list[float] = []
    post(hook(endpoint), {"text": "x"}, sleep=waited.append)
    assert (len(world.posted), waited) == (1, [1.0, 2.0])


def test_it_gives_up(world: World, endpoint: str) -> None:
    world.fail(Fault(kind=FaultKind.UNAVAILABLE, method="webhook"))
    with pytest.raises(WebhookError, match=r"^HOOK: it answered 503 \(tried 3 times\)$"):
        post(hook(endpoint), {"text": "x"}, sleep=lambda seconds: None)
    assert world.counts()["webhook"] == 3


def test_a_refusal_is_final(world: World, endpoint: str) -> None:
    world.fail(Fault(kind=FaultKind.FORBIDDEN, method="webhook"))
    with pytest.raises(WebhookError, match=r"it answered 403 \(tried 1 times\)"):
        post(hook(endpoint), {"text": "x"}, sleep=lambda seconds: None)
    assert world.counts()["webhook"] == 1


def test_nobody_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(WebhookError) as told:
        post(hook(f"http://127.0.0.1:{port}"), {"text": "x"}, sleep=lambda seconds: None)
    assert str(told.value) == "HOOK: no answer: ConnectionRefusedError (tried 3 times)"


def test_one_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        with pytest.raises(WebhookError, match=r"no answer: TimeoutError \(tried 1 times\)"):
            post(hook(address), {"text": "x"}, tries=1)


def test_a_redirection_is_not_followed(world: World, endpoint: str) -> None:
    """Whoever is behind it would get the findings, and the token of the path."""

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(307)
            self.send_header("Location", endpoint + SECRET)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        with pytest.raises(WebhookError, match="it answered 307"):
            post(hook(f"http://127.0.0.1:{server.server_port}"), {"text": "x"})
    assert world.posted == []


@pytest.fixture
def impostor(tmp_path: Path) -> Iterator[str]:
    """An https server whose certificate nobody vouches for."""
    line = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -keyout key.pem -out cert.pem"
    subprocess.run(line.split(), cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(5)

        def serve() -> None:
            accepted, _ = listening.accept()
            try:
                context.wrap_socket(accepted, server_side=True).close()
            except OSError:
                accepted.close()

        threading.Thread(target=serve, daemon=True).start()
        yield f"https://localhost:{listening.getsockname()[1]}"


def test_a_certificate_that_nobody_vouches_for_is_refused(impostor: str) -> None:
    with pytest.raises(WebhookError, match="no answer: SSLCertVerificationError"):
        post(hook(impostor), {"text": "x"}, tries=1)


def test_a_body_that_no_receiver_takes_is_not_sent(world: World, endpoint: str) -> None:
    with pytest.raises(WebhookError, match="a webhook takes 524,288"):
        post(hook(endpoint), {"text": "x" * 600_000})
    assert world.posted == []


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("http://hooks.example/hunter2", "it must start with https://"),
        ("ftp://hooks.example/hunter2", "it must start with https://"),
        ("hooks.example/hunter2", "it must be https://host/path"),
        ("https:///hunter2", "it must be https://host/path"),
        ("https://me:hunter2@hooks.example/", "it must be https://host/path"),
        ("https://hooks.example/#hunter2", "it must be https://host/path"),
        ("https://hooks.example:99999/hunter2", "it is no URL"),
        ("https://hooks.example/hunter2\n", "it has signs that no URL has"),
        ("https://hooks.example/hun ter2", "it has signs that no URL has"),
        ("http://169.254.169.254/hunter2", "it must start with https://"),
    ],
)
def test_what_is_no_such_url_is_refused_without_showing_it(url: str, rule: str) -> None:
    with pytest.raises(InputError, match=f"^HOOK: {rule}") as refused:
        Webhook(name="HOOK", url=url)
    assert "hunter2" not in str(refused.value)


def test_the_url_is_in_no_representation() -> None:
    assert repr(Webhook(name="HOOK", url="https://hooks.example/hunter2")) == "Webhook(name='HOOK')"
