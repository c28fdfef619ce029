"""Which managed group made a machine: its metadata says so, and its name begins with that of the group."""

from __future__ import annotations

import re
from typing import Final

from policies.audit.reading import linked, objects, said
from policies.audit.record import Item

_CREATOR: Final = "created-by"
_SUFFIX: Final = re.compile(r"-[a-z0-9]{4}")
"""What a managed group puts behind its base name."""


def creator_of(instance: Item) -> str:
    """Link of the group that made an instance; empty where none did."""
    entries = objects(instance, "metadata", "items")
    made = next((said(entry, "value") for entry in entries if said(entry, "key") == _CREATOR), "")
    return linked(made) if "/instanceGroupManagers/" in made else ""


def base_of(name: str) -> str:
    """The base name that a group gave a machine of that name; empty where it has not the form of one."""
    return name[:-5] if _SUFFIX.fullmatch(name[-5:]) else ""
