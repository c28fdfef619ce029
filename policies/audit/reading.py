"""Fields of a resource as they should be: what is something else is refused in a sentence, or counts as not said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policies.audit.links import relative
from policies.audit.record import Item, Json
from policies.errors import InputError

_LONGEST: Final = 18
"""Digits of a number; an int64 has at most 19, and nothing here comes near."""


def link_of(item: Item) -> str:
    """The self link of a resource without host and version; its name or id where it has none. Empty for neither."""
    return next((linked(found) for key in ("selfLink", "name", "id") if (found := said(item, key))), "")


def linked(text: str) -> str:
    """A link without host and version; what is no link comes back as it is."""
    try:
        return relative(text)
    except ValueError:  # a URL with a bracket that does not close
        return text


def said(item: Json, *path: str) -> str:
    """The text at `path`; empty where there is none, or something else."""
    found = at(item, *path)
    return found if isinstance(found, str) else ""


def flag(item: Json, *path: str) -> bool:
    """Whether `path` is set and true."""
    return at(item, *path) is True


def at(item: Json, *path: str) -> Json:
    """What stands at `path` of an object; None where it ends."""
    found = item
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def objects(item: Json, *path: str) -> tuple[Item, ...]:
    """The objects in the list at `path`; what is no object in it, and what is no list, is left out."""
    found = at(item, *path)
    return tuple(each for each in found if isinstance(each, Mapping)) if isinstance(found, list) else ()


def names(item: Json, *path: str) -> tuple[str, ...]:
    """The texts in the list at `path`."""
    found = at(item, *path)
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()


def labels_of(item: Json) -> tuple[tuple[str, str], ...]:
    """The labels of a resource, by key."""
    found = at(item, "labels")
    if not isinstance(found, Mapping):
        return ()
    return tuple(sorted((str(key), value) for key, value in found.items() if isinstance(value, str)))


def word(item: Item, key: str) -> str:
    """The text of a field; empty where it is absent. Raises InputError for anything else."""
    found = item.get(key)
    if found is None or isinstance(found, str):
        return found or ""
    raise InputError(f"{key} is {shown(found)}; it must be text")


def text(item: Item, key: str) -> str:
    """The text of a field that must be there. Raises InputError otherwise."""
    found = item.get(key)
    if isinstance(found, str) and found:
        return found
    raise InputError(f"{key} is {shown(found)}; it must be text")


def whole(item: Item, key: str) -> int | None:
    """A number of at least 0, as a number or as text of digits (an int64); None where it is absent.

    Raises InputError for anything else.
    """
    found = item.get(key)
    if found is None:
        return None
    if isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 10**_LONGEST:
        return found
    if isinstance(found, str) and found.isascii() and found.isdecimal() and len(found) <= _LONGEST:
        return int(found)
    raise InputError(f"{key} is {shown(found)}; it must be a whole number of at least 0")


def shown(found: Json) -> str:
    """A value as a message shows it: short."""
    if found is None:
        return "missing"
    if isinstance(found, str):
        return f'"{found[:40]}"'
    if isinstance(found, bool):
        return str(found).lower()
    if isinstance(found, int | float):
        return str(found)[:40]
    return "an object" if isinstance(found, Mapping) else "a list"
