"""A request as a line of the access log: who asked what, and how it ended. Never what was asked or answered."""

from __future__ import annotations

from typing import Final

from starlette.types import Scope

LONGEST_PATH: Final = 200
"""Characters of a path that are shown."""
_MAPPED: Final = "::ffff:"
"""What stands before an address of IPv4 where both are listened to."""


def line(scope: Scope, status: int, *, seconds: float, size: int, request_id: str, tenant: str) -> str:
    """As uvicorn writes it, so that what reads its lines reads these, and then what it lacks.

    `size` is of the body that was sent, in bytes. The path is as it came, with its percent signs, so that no client
    makes a line of its own; what stands behind its `?` is left out.
    """
    host, port = scope.get("client") or ("-", 0)
    path = scope["raw_path"].decode("ascii", "replace")
    shown = path if len(path) <= LONGEST_PATH else path[: LONGEST_PATH - 3] + "..."
    request = f"{scope['method']} {shown} HTTP/{scope['http_version']}"
    who = f"tenant={tenant or '-'} id={request_id}"
    return f'{host.removeprefix(_MAPPED)}:{port} - "{request}" {status} {seconds:.3f}s {size}B {who}'
