"""A webhook: one POST of JSON over https, tried again where that may help. Its URL is a secret and is never shown.

The body has `text` for people, as Slack, Mattermost and Google Chat show it, beside the run's `spotrail.guard/1`.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, final
from urllib.parse import urlsplit

from policies.errors import InputError
from policies.report.audit_json import Json

TRIES: Final = 3
FIRST_WAIT_S: Final = 1.0
"""Before the second try; twice as long before each further one."""
TIMEOUT_S: Final = 10.0
"""Of one try."""
AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Answers after which another try may help."""
MOST_BYTES: Final = 512 * 1024
"""Of a body: receivers refuse more."""


class WebhookError(RuntimeError):
    """The webhook could not be told: what came back, never where."""


@final
@dataclass(frozen=True, kw_only=True)
class Webhook:
    """Where to post. Raises InputError for what is no such URL, without showing it."""

    name: str
    """What it is called in messages: the variable that holds it."""
    url: str = field(repr=False)

    def __post_init__(self) -> None:
        if broken := _broken(self.url):
            raise InputError(f"{self.name}: {broken}; its value is secret and not shown")


def post(
    webhook: Webhook, body: Mapping[str, Json], *, sleep: Callable[[float], None] = time.sleep, tries: int = TRIES
) -> None:
    """Post `body`. Raises WebhookError when it was not taken."""
    data = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    if len(data) > MOST_BYTES:
        raise WebhookError(f"the message has {len(data):,} bytes; a webhook takes {MOST_BYTES:,}")
    for attempt in range(1, tries + 1):
        code, failure = _try(webhook.url, data)
        if 200 <= code < 300:
            return
        if attempt == tries or (code and code not in AGAIN):
            raise WebhookError(f"{webhook.name}: {failure} (tried {attempt} times)")
        sleep(FIRST_WAIT_S * 2 ** (attempt - 1))


def _try(url: str, data: bytes) -> tuple[int, str]:
    """The status and what to say of it; status 0 where there was no answer. Redirections are not followed: the URL
    is a secret, and would be handed on."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    connection = (
        http.client.HTTPSConnection(host, parts.port, timeout=TIMEOUT_S, context=ssl.create_default_context())
        if parts.scheme == "https"
        else http.client.HTTPConnection(host, parts.port, timeout=TIMEOUT_S)
    )
    path = parts.path or "/"
    try:
        connection.request(
            "POST",
            f"{path}?{parts.query}" if parts.query else path,
            body=data,
            headers={"Content-Type": "application/json; charset=utf-8", "User-Agent": "spotrail-guard"},
        )
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        # What it says may hold the name of the host.
        return 0, f"no answer: {type(error).__name__}"
    finally:
        connection.close()
    return status, f"it answered {status}"


def _broken(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return "it is no URL"
    if not url.isascii() or not url.isprintable() or " " in url:
        return "it has signs that no URL has"
    if not host or parts.username is not None or parts.fragment:
        return "it must be https://host/path, without a name, a password and a fragment"
    if parts.scheme == "https" or (parts.scheme == "http" and _here(host)):
        return ""
    return "it must start with https://"


def _here(host: str) -> bool:
    """Whether it is this machine, to which nothing is encrypted."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
