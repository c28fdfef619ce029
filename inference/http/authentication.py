"""Who asks: API keys from a file, compared in constant time. One tenant a key.

Tenants take turns and share no cached state, so that nobody learns from a fast answer what another has asked.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

from inference.errors import ServingError

SHORTEST: Final = 16
"""Characters of a key: of hexadecimal digits that is 64 bits, which nobody guesses over HTTP."""
_KEY: Final = re.compile(r"[!-~]+")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_BEARER: Final = re.compile(r"bearer +([!-~]+) *", re.IGNORECASE)


@final
@dataclass(frozen=True, kw_only=True)
class Key:
    """An API key."""

    tenant: str
    """Whose it is."""
    digest: bytes = field(repr=False)
    """sha256 of it: the key itself is not kept, and all that is compared has one length."""


@final
@dataclass(frozen=True, kw_only=True)
class Keys:
    """The keys of a server. Without any, everybody is let in, as one tenant without a name."""

    keys: tuple[Key, ...] = ()

    def tenant(self, authorization: str | None) -> str | None:
        """Who sent the header `Authorization: Bearer KEY`; None for nobody that is known."""
        if not self.keys:
            return ""
        sent = _BEARER.fullmatch(authorization or "")
        digest = _digest(sent[1] if sent else "")
        found = None
        for key in self.keys:  # all of them, whichever it is: the time says nothing
            if hmac.compare_digest(key.digest, digest):
                found = key.tenant
        return found


def read_keys(file: Path) -> Keys:
    """The keys of `file`: a line each, `KEY` or `TENANT KEY`; empty lines and those that begin with # are left out.

    A key without a tenant is one of its own. Raises ServingError, which never shows a key.
    """
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except UnicodeDecodeError:
        raise ServingError(
            f"{file}: has a character that is not ASCII; a key is of letters, digits and signs"
        ) from None
    except OSError as error:
        raise ServingError(f"{file}: the API keys cannot be read: {error.strerror or error}") from None
    keys = [
        _parsed(line.split(), f"{file}:{number}")
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    _refuse_twice(file, keys)
    return Keys(keys=tuple(keys))


def _parsed(words: Sequence[str], place: str) -> Key:
    if len(words) > 2:
        raise ServingError(f"{place}: has {len(words)} words; a line is KEY or TENANT KEY")
    key = words[-1]
    if not _KEY.fullmatch(key):
        raise ServingError(f"{place}: the key has a control character; it is of letters, digits and signs")
    if len(key) < SHORTEST:
        raise ServingError(
            f"{place}: the key has {len(key)} characters; it has at least {SHORTEST}. "
            'One is made by: python -c "import secrets; print(secrets.token_urlsafe(32))"'
        )
    digest = _digest(key)
    if len(words) == 1:
        return Key(tenant=f"key-{digest.hex()[:12]}", digest=digest)
    if not _NAME.fullmatch(words[0]):
        # What stands there is not shown: where the two are in the other order, it is the key.
        raise ServingError(
            f"{place}: the tenant, the first of the two words, is no name of up to 64 letters, digits, '.', '_' and '-'"
        )
    return Key(tenant=words[0], digest=digest)


def _refuse_twice(file: Path, keys: Sequence[Key]) -> None:
    if not keys:
        raise ServingError(f"{file}: has no key, and nobody could be let in; without --api-key-file everybody is")
    for what, said in (("key", [key.digest for key in keys]), ("tenant", [key.tenant for key in keys])):
        if len(set(said)) < len(said):
            raise ServingError(f"{file}: has a {what} twice; each tenant has one key, and each key one tenant")


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()
