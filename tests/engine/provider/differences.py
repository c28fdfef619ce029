"""Diff: what of two sets of inputs differs, and whether the resource can be changed to it or has to be replaced."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

from pulumi.provider.experimental.provider import DiffResponse, PropertyDiff, PropertyDiffKind

from infra.engine.wire import Wire
from tests.engine.provider.kinds import kind_of
from tests.engine.provider.values import DEFAULTS, OLD_INPUTS, revealed

_EVERYWHERE: Final = frozenset({"deletionPolicy"})
_KINDS: Final = {
    ("add", False): PropertyDiffKind.ADD,
    ("add", True): PropertyDiffKind.ADD_REPLACE,
    ("delete", False): PropertyDiffKind.DELETE,
    ("delete", True): PropertyDiffKind.DELETE_REPLACE,
    ("update", False): PropertyDiffKind.UPDATE,
    ("update", True): PropertyDiffKind.UPDATE_REPLACE,
}


@final
@dataclass(frozen=True, kw_only=True)
class Change:
    """One difference."""

    path: str
    """As the engine shows it: `bootDisk.initializeParams.size`, `versions[0].instanceTemplate`."""
    kind: str
    """add, delete or update."""
    replaces: bool

    @property
    def key(self) -> str:
        """The input that it is in."""
        return re.split(r"[.\[]", self.path, maxsplit=1)[0]


def changes(token: str, old: Mapping[str, Wire], new: Mapping[str, Wire]) -> list[Change]:
    """What differs between old inputs and new ones; links are the same however they are written."""
    found = []
    for key in sorted((old.keys() | new.keys()) - {DEFAULTS, OLD_INPUTS}):
        for path, kind in _differences(key, revealed(old.get(key)), revealed(new.get(key))):
            found.append(Change(path=path, kind=kind, replaces=_replaces(token, path, old, new)))
    return found


def answer(token: str, old: Mapping[str, Wire], new: Mapping[str, Wire]) -> DiffResponse:
    """The answer to the engine. What has a fixed name goes before its replacement comes, as the bridge has it."""
    found = changes(token, old, new)
    replaces = sorted({change.key for change in found if change.replaces})
    made_up = new.get(DEFAULTS)
    fixed = bool(new.get("name")) and new.get("name") == old.get("name")
    fixed = fixed and not (isinstance(made_up, list) and "name" in made_up) and kind_of(token).named
    return DiffResponse(
        changes=bool(found),
        replaces=replaces,
        delete_before_replace=bool(replaces) and fixed,
        diffs=sorted({change.key for change in found}),
        detailed_diff={change.path: PropertyDiff(_KINDS[change.kind, change.replaces], True) for change in found},
    )


def same(one: Wire, other: Wire) -> bool:
    """Whether two values are the same to the provider."""
    return not list(_differences("", revealed(one), revealed(other)))


def _differences(path: str, old: Wire, new: Wire) -> Iterator[tuple[str, str]]:
    if old is None or new is None:
        if old is not None or new is not None:
            yield path, "add" if old is None else "delete"
    elif isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            shown = f"{path}.{key}" if re.fullmatch(r"\w+", key) else f'{path}["{key}"]'
            yield from _differences(shown, old.get(key), new.get(key))
    elif isinstance(old, list) and isinstance(new, list):
        for place in range(max(len(old), len(new))):
            pair = [side[place] if place < len(side) else None for side in (old, new)]
            yield from _differences(f"{path}[{place}]", *pair)
    elif _written(old) != _written(new):
        yield path, "update"


def _written(value: Wire) -> Wire:
    """A link without its host and version."""
    return re.sub(r"^https://[^/]+/compute/[^/]+/(?=projects/)", "", value) if isinstance(value, str) else value


def _replaces(token: str, path: str, old: Mapping[str, Wire], new: Mapping[str, Wire]) -> bool:
    bare = re.sub(r"\[\d+\]", "", path)
    in_place = kind_of(token).in_place | _EVERYWHERE
    if not any(bare == each or bare.startswith((f"{each}.", f"{each}[")) for each in in_place):
        return True
    if token == "gcp:compute/disk:Disk":
        return _replaces_disk(bare, old, new)
    return False


def _replaces_disk(key: str, old: Mapping[str, Wire], new: Mapping[str, Wire]) -> bool:
    """A disk that would shrink is replaced, and one whose IOPS are not provisioned."""
    if key == "size":
        before, after = revealed(old.get("size")), revealed(new.get("size"))
        return isinstance(before, int | float) and isinstance(after, int | float) and after < before
    type_ = revealed(new.get("type"))
    return key == "provisionedIops" and not (isinstance(type_, str) and "hyperdisk-" in type_)
