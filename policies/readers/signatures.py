"""The texts by which Pulumi marks values in JSON: what is not known yet, a secret, an object of its own.

The offline engine and the readers of files share this table.
"""

from __future__ import annotations

import re
from typing import Final

SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
"""The member of a mapping that says what the mapping stands for."""
SECRET_SIGNATURE: Final = "1b47061264138c4ac30d75fd1eb44270"
OUTPUT_SIGNATURE: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
RESOURCE_SIGNATURE: Final = "5cf8f73096256a8f31e491e813e4eb8e"

SECRET_TEXT: Final = "[secret]"
"""What `pulumi preview --json` writes in place of a secret."""

UNKNOWN_TEXT: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""The one sentinel that the Python SDK itself knows."""
UNFORESEEN_TEXT: Final = "dd056dcd-154b-4c76-9bd3-c8f88648b5ff"
"""A sentinel that the Python SDK passes on as text: the answer of an invoke that only Google could give.

A program may build text with it; whatever contains it is unknown.
"""
UNKNOWN_TEXTS: Final = (
    UNKNOWN_TEXT,
    "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
    "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
    "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
    "030794c1-ac77-496b-92df-f27374a8bd58",
    "e48ece36-62e2-4504-bad9-02848725956a",
    UNFORESEEN_TEXT,
)
"""Unknown text, truth value, number, list, asset, archive, mapping. Source: Pulumi's sdk/go/common/resource/plugin."""
_VERSION: Final = "-4"
"""In each of them, as UUIDs of version 4, and in few other texts."""
_ANY_UNKNOWN: Final = re.compile("|".join(UNKNOWN_TEXTS))


def is_unknown(text: str) -> bool:
    """Whether `text` is a sentinel, or was built from one."""
    return len(text) >= len(UNKNOWN_TEXT) and _VERSION in text and _ANY_UNKNOWN.search(text) is not None
