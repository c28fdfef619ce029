"""How the APIs are reached: the endpoint, the clients, the patience, and the words for every failure."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.api_core.exceptions import (
    Forbidden,
    GatewayTimeout,
    NotFound,
    ResourceExhausted,
    RetryError,
    ServiceUnavailable,
    TooManyRequests,
    Unauthenticated,
)
from google.auth.exceptions import DefaultCredentialsError, RefreshError, TransportError
from google.protobuf.json_format import ParseError

from policies.audit.live.access import Access, Calls, Clients
from policies.audit.live.failures import CloudError, CredentialsError, passes, plain, reason, told
from policies.errors import InputError


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        ("http://127.0.0.1:8080", "127.0.0.1:8080"),
        ("http://127.0.0.1:8080/", "127.0.0.1:8080"),
        ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("localhost:1", "localhost:1"),
        ("http://[::1]:8080", "[::1]:8080"),
        ("http://127.9.9.9:65535", "127.9.9.9:65535"),
    ],
)
def test_an_endpoint_is_a_server_on_this_machine(endpoint: str, address: str) -> None:
    assert Access(endpoint=endpoint).address == address


@pytest.mark.parametrize(
    "endpoint",
    [
        "",
        "127.0.0.1",
        "http://127.0.0.1",
        "https://127.0.0.1:8080",
        "http://10.0.0.7:8080",
        "http://example.com:80",
        "http://127.0.0.1.example.com:80",
        "http://127.0.0.1:80@example.com:80",
        "http://127.0.0.1:8080/compute",
        "http://127.0.0.1:8080?x=y",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:0",
        "http://localhost\n:80",
        "http://[::1:80",
    ],
)
def test_no_other_endpoint_is_taken(endpoint: str) -> None:
    with pytest.raises(InputError, match=r"--endpoint is .*because nothing on the way is encrypted"):
        Access(endpoint=endpoint)


@pytest.mark.parametrize("name", ["first_wait_s", "deadline_s", "call_s", "part_s"])
def test_patience_is_a_length_of_time(name: str) -> None:
    for seconds in (0, -1, float("nan")):
        with pytest.raises(InputError, match=f"{name} is .* s; it must be more than 0"):
            Access(**{name: seconds})


def test_a_port_where_nothing_answers_is_told_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"http://127.0.0.1:{server.getsockname()[1]}"
        Clients(Access(endpoint=endpoint))
    with pytest.raises(CloudError, match=rf"--endpoint {endpoint}: nothing answers there: Connection refused"):
        Clients(Access(endpoint=endpoint))


def test_a_client_is_made_when_it_is_first_asked_for_and_then_kept() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        clients = Clients(Access(endpoint=f"http://127.0.0.1:{server.getsockname()[1]}"))
        assert clients.compute("Disks") is clients.compute("Disks")
        assert type(clients.compute("Instances")).__name__ == "InstancesClient"
        assert clients.tpu is clients.tpu
        assert clients.monitoring is clients.monitoring
        assert clients.storage is clients.storage
        assert clients.publisher is clients.publisher


def test_without_an_endpoint_google_is_reached_with_the_login_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    account = {
        "type": "service_account",
        "project_id": "p1",
        "private_key": key.decode(),
        "client_email": "guard@p1.iam.gserviceaccount.com",
        "token_uri": "https://oauth2.googleapis.com/token",
    }
    (tmp_path / "key.json").write_text(json.dumps(account))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    clients = Clients(Access())
    hosts = [client.transport.host for client in (clients.compute("Disks"), clients.tpu, clients.monitoring)]
    assert hosts == ["https://compute.googleapis.com", "tpu.googleapis.com:443", "monitoring.googleapis.com:443"]
    assert clients.compute("Disks").transport._session.params == {}
    assert clients.compute_lists("Disks").transport._session.params == {"returnPartialSuccess": "true"}
    assert clients.storage._connection.API_BASE_URL == "https://storage.googleapis.com"
    assert clients.publisher.transport.host == "pubsub.googleapis.com:443"


def test_no_client_is_loaded_by_the_module() -> None:
    loads = "import sys, policies.audit.live.storage_inventory"
    subprocess.run(
        [sys.executable, "-c", f"{loads}; sys.exit(any(m.startswith('google') for m in sys.modules))"], check=True
    )


def test_a_client_that_is_not_installed_is_asked_for() -> None:
    code = """
import sys
sys.modules["google.auth"] = None
from policies.audit.live.access import Access, Clients
from policies.errors import InputError
try:
    Clients(Access())
except InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "a Google client is not installed" in done.stdout
    assert "pip install 'spotrail[live]'" in done.stdout


def test_who_is_not_logged_in_is_told_how(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(CredentialsError, match=r"tpu: no credentials: .*gcloud auth application-default login"):
        _ = Clients(Access()).tpu


@pytest.mark.parametrize(
    "error",
    [Unauthenticated("token expired"), RefreshError("invalid_grant"), DefaultCredentialsError("none")],
)
def test_failures_of_the_login_are_told_apart(error: Exception) -> None:
    with (
        pytest.raises(CredentialsError, match=r"tpu.nodes.list: .*gcloud auth application-default login"),
        told("tpu.nodes.list"),
    ):
        raise error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Forbidden("no permission"), "no permission"),
        (RetryError("gave up after 120 s", ServiceUnavailable("busy")), "gave up after 120 s.*busy"),
        (GatewayTimeout("late"), "late"),
        (TransportError("no route"), "no route"),
        (requests.ConnectionError("reset"), "reset"),
        (requests.ReadTimeout("no byte in 60 s"), "no byte in 60 s"),
        (requests.JSONDecodeError("Expecting value", "", 0), "the answer is cut or broken: Expecting value"),
        (ParseError("Failed to load JSON"), "the answer is cut or broken: Failed to load JSON"),
        (BrokenPipeError(32, "Broken pipe"), "Broken pipe"),
    ],
)
def test_every_other_failure_is_one_of_the_api(error: Exception, words: str) -> None:
    with pytest.raises(CloudError, match=f"compute.disks.list: .*{words}") as caught, told("compute.disks.list"):
        raise error
    assert not isinstance(caught.value, CredentialsError)


def test_a_bug_stays_one() -> None:
    with pytest.raises(KeyError), told("compute.disks.list"):
        raise KeyError("name")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("alice@example.com lacks a permission", "(an account) lacks a permission"),
        ("spotrail-guard@p1.iam.gserviceaccount.com: 403", "(an account): 403"),
        ("bad token ya29.a0AfH6SM-x_y and Bearer abc.def", "bad token (a token) and (a token)"),
        ("red \x1b[31m alarm\n\tof two lines\x00", "red [31m alarm of two lines"),
        ("z" * 500, "z" * 399 + "…"),
    ],
)
def test_the_words_of_an_api_are_cleaned(text: str, line: str) -> None:
    assert plain(text) == line
    assert reason(ValueError(text)) == line


def test_an_error_without_words_has_its_name() -> None:
    assert reason(TimeoutError()) == "TimeoutError"


def test_what_may_pass_by_itself() -> None:
    busy = [{"reason": "rateLimitExceeded", "domain": "usageLimits"}]
    assert passes(TooManyRequests("x"))
    assert passes(ResourceExhausted("x"))
    assert passes(ServiceUnavailable("x"))
    assert passes(Forbidden("x", errors=busy))
    assert not passes(Forbidden("x", errors=[{"reason": "forbidden"}, "odd"]))
    assert not passes(NotFound("x", errors=busy))
    assert not passes(requests.ConnectionError("x"))


def test_calls_are_counted_by_method() -> None:
    calls = Calls()
    for method in ("b", "a", "b"):
        calls.add(method)
    assert json.dumps(calls.counts()) == '{"a": 1, "b": 2}'
