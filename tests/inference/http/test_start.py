"""What a start says of an address and of folders that cannot be had, before anything is loaded."""

from __future__ import annotations

import contextlib
import io
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from inference.assembly import assemble
from inference.errors import ServingError
from inference.http.running import listen, say
from inference.settings import Settings

NOBODY = Path("~no-such-user/folder")
"""A home that there is not, as for a user of a container that no file knows."""


def test_a_port_that_is_taken() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServingError) as refused:
            listen("127.0.0.1", port)
    assert str(refused.value) == f"--host 127.0.0.1 --port {port}: Address already in use; is another server there?"


@pytest.mark.parametrize(
    ("host", "reached"), [("::", {"127.0.0.1", "::1"}), ("0.0.0.0", {"127.0.0.1"}), ("::1", {"::1"})]
)
def test_who_reaches_an_address(host: str, reached: set[str]) -> None:
    with listen(host, 0) as listening:
        port = listening.getsockname()[1]
        found = set()
        for address in ("127.0.0.1", "::1"):
            with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=5):
                found.add(address)
    assert found == reached


@pytest.mark.parametrize("host", ["192.0.2.1", "fe80::1"])  # of nobody (RFC 5737); of no interface
def test_an_address_of_another_machine(host: str) -> None:
    with pytest.raises(ServingError) as refused:
        listen(host, 0)
    told = str(refused.value)
    assert told.startswith(f"--host {host} --port 0: ")
    assert told.endswith("; name an address of this machine, as 127.0.0.1, 0.0.0.0 or ::1")
    assert "another server" not in told


@pytest.mark.parametrize(
    ("said", "match"),
    [
        ({"compile_cache": NOBODY}, r"--compile-cache ~no-such-user/folder: this user has no home"),
        ({"weights": "gs://bucket/model", "weights_cache": NOBODY}, r"~no-such-user/folder: this user has no home"),
        # What is not downloaded needs no folder for it.
        ({"weights_cache": NOBODY}, r"--weights no-such-export: No such file"),
    ],
)
def test_a_user_without_a_home(said: dict[str, Any], match: str) -> None:
    with pytest.raises(ServingError, match=match):
        assemble(Settings(**{"weights": "no-such-export", **said}), lambda _: None, lambda _: None)


def test_a_line_of_progress_is_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    class Recording(io.StringIO):
        def write(self, text: str) -> int:
            written.append(text)
            return len(text)

    monkeypatch.setattr("sys.stderr", Recording())
    say("loading")
    (line,) = written
    assert re.fullmatch(r"\d\d:\d\d:\d\d loading\n", line)
