"""The shortest way from a document to its reading."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from policies.changes import Reading
from policies.readers.source import read_source


@pytest.fixture(scope="session")
def read() -> Callable[[Any], Reading]:
    """Reads a document, a text or bytes."""

    def reading(document: Any) -> Reading:
        if not isinstance(document, str | bytes):
            document = json.dumps(document)
        content = document.encode() if isinstance(document, str) else document
        return read_source("reef.json", io.BytesIO(content))

    return reading
