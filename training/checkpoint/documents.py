"""The JSON documents of a checkpoint: one way to write each, so that every byte of it is held."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from training.checkpoint.errors import CheckpointError


class DamagedError(CheckpointError):
    """Bytes are not those that were written."""


def canonical(document: Mapping[str, Any]) -> bytes:
    """The one text of a document. Raises CheckpointError for what JSON cannot carry, NaN included."""
    try:
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"what is said about a checkpoint must be JSON with finite numbers: {error}") from error
    return text.encode() + b"\n"


def sealed(document: Mapping[str, Any]) -> bytes:
    """The text of a document with the sha256 of itself in it."""
    return canonical({**document, "sha256": sha256(canonical(document))})


def unsealed(content: bytes, where: str) -> dict[str, Any]:
    """A document whose every byte is as it was sealed. Raises DamagedError."""
    document = parsed_json(content, where)
    seal = document.pop("sha256", None)
    if seal != sha256(canonical(document)) or content != sealed(document):
        raise DamagedError(f"{where} is damaged: it is not the text that its own sha256 was made of")
    return document


def parsed_json(content: bytes, where: str) -> dict[str, Any]:
    """A JSON object. Raises DamagedError."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{where} is damaged: it is no JSON") from error
    if not isinstance(document, dict):
        raise DamagedError(f"{where} is damaged: it is no JSON object")
    return document


def sha256(content: bytes) -> str:
    """In hexadecimal."""
    return hashlib.sha256(content).hexdigest()
