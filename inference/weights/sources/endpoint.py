"""Where Cloud Storage is asked: Google's own address, or that of an emulator. No import of a client."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from inference.errors import ServingError

GOOGLE: Final = "https://storage.googleapis.com"
EMULATOR: Final = "STORAGE_EMULATOR_HOST"
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9.])?|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")


def emulator(environment: Mapping[str, str] = os.environ) -> str | None:
    """What STORAGE_EMULATOR_HOST names, with its scheme; None where it is empty or not there.

    Raises ServingError for what is no address: no number of tries would reach it.
    """
    said = environment.get(EMULATOR, "")
    if not said:
        return None
    whole = said if "://" in said else f"http://{said}"
    if fault := _fault(whole):
        shown = "is an address with a password" if "@" in said else f"is {said[:200]!r}"
        raise ServingError(
            f"{EMULATOR} {shown}: {fault}; give [http://|https://]HOST[:PORT] and no more, as in "
            f"http://localhost:4443, or unset it to ask {GOOGLE}"
        )
    return whole.rstrip("/")


def _fault(address: str) -> str | None:
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        return str(error)
    if not address.isascii() or not address.isprintable() or " " in address:
        return "it has a character that no address has"
    if parts.scheme not in ("http", "https"):
        return f"it is of {parts.scheme or 'no scheme'}, and what is spoken is HTTP"
    if not _HOST.fullmatch(parts.hostname or "") or ".." in (parts.hostname or ""):
        return "it names no host"
    if port == 0 or parts.netloc.endswith(":"):
        return "its port is not 1 to 65535"
    if parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc:
        return "it has more than a host and a port"
    return None
