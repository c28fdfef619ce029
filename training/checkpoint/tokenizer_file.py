"""The tokenizer beside the checkpoints of a run: one object for all of them, named in what each says of its model."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from training.checkpoint.documents import DamagedError, sha256
from training.checkpoint.errors import ChangedError
from training.checkpoint.store import AbstractStore

_KEY: Final = re.compile(r"tokenizer-([0-9a-f]{16})\.json")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_REMEDY: Final = "its run writes it anew when it is started, or copy the tokenizer.json of its data there"


@final
@dataclass(frozen=True, kw_only=True)
class TokenizerFile:
    """Where the tokenizer is, and what its bytes have to be."""

    key: str
    """`tokenizer-` with the first 16 digits of its sha256, in the root."""
    sha256: str | None = None
    """All 64; None where a checkpoint says no more than the key."""

    def __post_init__(self) -> None:
        match = _KEY.fullmatch(self.key)
        whole = self.sha256
        if match is None or (whole is not None and not (_SHA256.fullmatch(whole) and whole.startswith(match[1]))):
            raise DamagedError(f"the tokenizer is called {self.key!r} with the sha256 {whole!r}; no run writes that")

    def read(self, store: AbstractStore) -> bytes:
        """Its bytes. Raises DamagedError where they are missing or others, StoreError."""
        found = store.read(self.key)
        if found is None:
            raise DamagedError(f"{store.url}/{self.key} is missing; {_REMEDY}")
        if not sha256(found.content).startswith(
            self.sha256 or self.key.removeprefix("tokenizer-").removesuffix(".json")
        ):
            raise DamagedError(f"{store.url}/{self.key} is damaged: its sha256 is another; {_REMEDY}")
        return found.content


def publish(store: AbstractStore, content: bytes) -> TokenizerFile:
    """Put a tokenizer into a root where it is not there yet, or is damaged. Raises StoreError."""
    digest = sha256(content)
    file = TokenizerFile(key=f"tokenizer-{digest[:16]}.json", sha256=digest)
    found = store.read(file.key)
    if found is None or found.content != content:
        with contextlib.suppress(ChangedError):  # by another attempt, which writes the same
            store.replace(file.key, content, found.generation if found else None)
    return file


def problem_of(store: AbstractStore, meta: Mapping[str, Any]) -> str | None:
    """What is wrong with the tokenizer that a checkpoint names in its meta; None too where it names none."""
    serving = meta.get("serving")
    if not isinstance(serving, dict) or not isinstance(serving.get("tokenizer"), str):
        return None
    digest = serving.get("tokenizer_sha256")
    try:
        TokenizerFile(key=serving["tokenizer"], sha256=None if digest is None else str(digest)).read(store)
    except DamagedError as error:
        return str(error)
    return None
