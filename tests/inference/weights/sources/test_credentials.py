"""Credentials: found, renewed by a server on loopback, and what is said where they are not."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from inference.weights.sources.attempts import Patience
from inference.weights.sources.errors import CloudError
from inference.weights.sources.transfer import Limits
from tests.inference.weights.sources.stored import download

BRIEF = Limits(patience=Patience(retry_seconds=0.3))


class _Tokens(http.server.BaseHTTPRequestHandler):
    """Gives nobody a token."""

    asked = 0
    code, answer = 400, {"error": "invalid_grant", "error_description": "account not found"}

    def do_POST(self) -> None:
        type(self).asked += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps(self.answer).encode()
        self.send_response(self.code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Tokens]]:
    """A service account whose tokens come from loopback; Google itself is never asked, for want of one."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Tokens)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    account = {
        "type": "service_account",
        "project_id": "none",
        "private_key_id": "1",
        "private_key": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
        "client_email": "reader@none.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": f"http://127.0.0.1:{server.server_address[1]}/token",
    }
    (tmp_path / "account.json").write_text(json.dumps(account))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setattr(_Tokens, "asked", 0)
    yield _Tokens
    server.shutdown()
    server.server_close()
    thread.join()


def test_credentials_that_are_not_renewed(tokens: type[_Tokens], cache: Path) -> None:
    with pytest.raises(CloudError, match=r"not renewed: invalid_grant.*application-default login"):
        download(cache, limits=BRIEF)
    assert tokens.asked == 1


def test_credentials_that_are_not_renewed_now(
    tokens: type[_Tokens], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "code", 503)
    monkeypatch.setattr(tokens, "answer", {"error": "temporarily_unavailable"})
    with pytest.raises(CloudError, match=r"gs://models: the credentials were not renewed.*nothing came in 0.3 s"):
        download(cache, limits=BRIEF)
    assert tokens.asked > 1


def test_without_any_it_says_how_to_get_some(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "no-such-key.json"))
    with pytest.raises(CloudError, match=r"without credentials: .*no-such-key.json.*application-default login"):
        download(cache)
