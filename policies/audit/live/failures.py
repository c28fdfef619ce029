"""What can go wrong with an API, told in one line: what was asked, what came back, what to do."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Final, final

from policies.errors import InputError

INSTALL: Final = "pip install 'spotrail[live]'"
_LOGIN: Final = "run `gcloud auth application-default login`, or run as a service account"
_BUSY: Final = ("rateLimitExceeded", "userRateLimitExceeded")
"""Reasons of a 403 that is a 429 in all but number."""
_ACCOUNT: Final = re.compile(r"[\w.+%-]+@[\w-]+(?:\.[\w-]+)+")
_TOKEN: Final = re.compile(r"\bya29\.\S+|\bBearer\s+\S+|\beyJ[\w-]+\.\S+|\bAIza[\w-]{20,}", re.IGNORECASE)
_LONGEST: Final = 400
"""Characters of a reason."""


class CloudError(RuntimeError):
    """An API could not be read or changed: what was asked, what came back, and what to do."""


@final
class CredentialsError(CloudError):
    """Nobody is logged in, or the login is no longer valid: no API will answer."""


@contextlib.contextmanager
def told(what: str) -> Iterator[None]:
    """Turns every failure of a client in the block into a CloudError that begins with `what`."""
    with installed():
        from google.api_core.exceptions import GoogleAPIError, Unauthenticated, Unauthorized
        from google.auth.exceptions import GoogleAuthError, TransportError
        from google.protobuf.json_format import Error as JsonFormatError
        from google.protobuf.message import DecodeError
        from requests.exceptions import InvalidJSONError, RequestException
    try:
        yield
    except (Unauthenticated, Unauthorized) as error:
        raise CredentialsError(f"{what}: {reason(error)}; {_LOGIN}") from error
    except TransportError as error:
        raise CloudError(f"{what}: {reason(error)}") from error
    except GoogleAuthError as error:
        raise CredentialsError(f"{what}: no credentials: {reason(error)}; {_LOGIN}") from error
    except (JsonFormatError, DecodeError, InvalidJSONError, UnicodeDecodeError) as error:
        raise CloudError(f"{what}: the answer is cut or broken: {reason(error)}") from error
    except (GoogleAPIError, RequestException, OSError) as error:
        raise CloudError(f"{what}: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """What an error says, in one line without control characters, account names or tokens."""
    beneath = getattr(error, "cause", None)
    text = f"{error}" or type(error).__name__
    if beneath is not None and str(beneath) not in text:
        text = f"{text}: {beneath}"
    return plain(text)


def plain(text: str) -> str:
    """A text of an API as one short printable line, without the names of accounts and without tokens."""
    line = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    clean = _TOKEN.sub("(a token)", _ACCOUNT.sub("(an account)", line))
    return clean if len(clean) <= _LONGEST else f"{clean[: _LONGEST - 1]}…"


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Says how to install a client that cannot be imported in the block. Raises InputError."""
    try:
        yield
    except ImportError as error:
        raise InputError(f"a Google client is not installed ({error}); install it with: {INSTALL}") from None


def passes(error: Exception) -> bool:
    """Whether a failure may pass by itself: 429, 503, or a 403 that means 429."""
    from google.api_core.exceptions import Forbidden, ServiceUnavailable, TooManyRequests

    if isinstance(error, TooManyRequests | ServiceUnavailable):
        return True
    errors = error.errors if isinstance(error, Forbidden) else []
    return any(isinstance(entry, Mapping) and entry.get("reason") in _BUSY for entry in errors)
