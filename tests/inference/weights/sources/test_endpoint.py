"""What STORAGE_EMULATOR_HOST may say, and what is said of anything else before anything is asked."""

from __future__ import annotations

import pytest

from inference.errors import ServingError
from inference.weights.sources.endpoint import EMULATOR, emulator


@pytest.mark.parametrize(
    ("said", "address"),
    [
        (None, None),
        ("", None),
        ("localhost:4443", "http://localhost:4443"),
        ("http://127.0.0.1:9000/", "http://127.0.0.1:9000"),
        ("https://gcs.example.com", "https://gcs.example.com"),
        ("HTTP://fake_gcs:4443", "HTTP://fake_gcs:4443"),
        ("http://[::1]:4443", "http://[::1]:4443"),
        ("[::1]:4443", "http://[::1]:4443"),
    ],
)
def test_an_address(said: str | None, address: str | None) -> None:
    assert emulator({} if said is None else {EMULATOR: said}) == address


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ("ftp://files", "is of ftp, and what is spoken is HTTP"),
        ("://files", "is of no scheme"),
        ("http://", "names no host"),
        ("http://:4443", "names no host"),
        ("http://a..b:1", "names no host"),
        ("http://-:1", "names no host"),
        ("localhost:70000", "[Pp]ort"),
        ("localhost:0", "port is not 1 to 65535"),
        ("localhost:", "port is not 1 to 65535"),
        ("localhost:http", "[Pp]ort"),
        ("http://[::1", "Invalid IPv6 URL"),
        ("http://local host", "a character that no address has"),
        ("http://local\nhost", "a character that no address has|no host"),
        ("http://bücher:1", "a character that no address has"),
        ("http://localhost:4443/storage/v1/", "more than a host and a port"),
        ("http://localhost:4443?a=b", "more than a host and a port"),
        ("http://localhost:4443#a", "more than a host and a port"),
    ],
)
def test_what_is_no_address_is_refused_with_variable_value_rule_and_way_out(said: str, rule: str) -> None:
    with pytest.raises(ServingError, match=rf"STORAGE_EMULATOR_HOST is '.*': .*({rule}).*; give .*HOST.*or unset it"):
        emulator({EMULATOR: said})


def test_a_password_is_not_repeated() -> None:
    with pytest.raises(ServingError, match="is an address with a password: it has more than a host") as caught:
        emulator({EMULATOR: "http://me:hunter2@localhost:1"})
    assert "hunter2" not in str(caught.value)
