"""Where two views of one stack differ: the offline preview, and what the official engine wrote.

What the offline preview does not know yet may be anything in a state; what it knows has to be there as it says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from policies.resources import UNKNOWN, Resource, ResourceSet, Value, has_opaque

KEPT: Final = (
    "parent",
    "protect",
    "retain_on_delete",
    "ignore_changes",
    "replace_on_changes",
    "deleted_with",
    "custom_timeouts",
    "import_id",
)
"""Options that preview files and states keep as they are; neither aliases nor deleteBeforeReplace are among them."""
UNORDERED: Final = ("dependencies", "additional_secret_outputs")
BOOKKEEPING: Final = "__"
"""Keys of the engine (`__internal`) and of the provider (`__defaults`) among the inputs, which no program gave."""
DEFAULTS: Final = "__defaults"
"""The inputs that the provider filled in itself, which the offline preview leaves to it."""


def missing(offline: ResourceSet, engine: ResourceSet) -> set[str]:
    """URNs that only one of the two has."""
    return {one.urn for one in offline} ^ {one.urn for one in engine}


def differences(offline: ResourceSet, engine: ResourceSet, *, before: bool) -> list[str]:
    """Each difference in words; `before` says that nothing exists yet, so that the engine knows no more than we do.

    Inputs whose changes are ignored count before it exists only: afterwards a state has what they were at first.
    """
    return [
        f"{one.urn.split('::', 2)[2]}: {words}"
        for one in offline
        if (other := engine.get(one.urn))
        for words in _differences(one, other, before=before)
    ]


def _differences(one: Resource, other: Resource, *, before: bool) -> Iterator[str]:
    if (one.type, one.name, one.custom) != (other.type, other.name, other.custom):
        yield f"type, name, custom are {one.type, one.name, one.custom} and {other.type, other.name, other.custom}"
    yield from _options(one, other)
    ours, theirs = (compared(each.inputs, () if before else one.options.ignore_changes) for each in (one, other))
    for key in sorted(ours.keys() | (theirs.keys() - _filled_in(other))):
        if not key.startswith(BOOKKEEPING) and not fits(ours.get(key), theirs.get(key), before=before):
            yield f"input {key} is {ours.get(key)} offline and {theirs.get(key)} under the engine"
    if not one.custom and not before:
        yield from outputs(one.outputs, other.outputs)


def compared(inputs: Mapping[str, Value], ignored: Iterable[str]) -> Mapping[str, Value]:
    """`inputs` without what is at the paths `ignored`: `labels`, `disks[0].labels`."""
    found: Value = inputs
    for path in ignored:
        found = _without(found, [int(step) if step.isdecimal() else step for step in re.findall(r"[^.\[\]]+", path)])
    return found if isinstance(found, Mapping) else {}


def _without(value: Value, path: Sequence[str | int]) -> Value:
    first, *rest = path
    if isinstance(value, Mapping):
        below = {key: _without(inner, rest) if rest and key == first else inner for key, inner in value.items()}
        return below if rest else {key: inner for key, inner in below.items() if key != first}
    if isinstance(value, tuple) and rest:
        return tuple(_without(inner, rest) if place == first else inner for place, inner in enumerate(value))
    return value


def _filled_in(one: Resource) -> set[str]:
    filled = one.inputs.get(DEFAULTS)
    return {key for key in filled if isinstance(key, str)} if isinstance(filled, tuple) else set()


def _options(one: Resource, other: Resource) -> Iterator[str]:
    pairs = {key: (getattr(one.options, key), getattr(other.options, key)) for key in KEPT}
    pairs |= {key: (set(getattr(one.options, key)), set(getattr(other.options, key))) for key in UNORDERED}
    pairs["property_dependencies"] = (_sets(one), _sets(other))
    pairs["provider"] = (_provider(one), _provider(other))
    for key, (ours, theirs) in pairs.items():
        if ours != theirs:
            yield f"{key} is {ours} offline and {theirs} under the engine"


def _sets(one: Resource) -> Mapping[str, set[str]]:
    return {key: set(urns) for key, urns in one.options.property_dependencies.items()}


def _provider(one: Resource) -> str:
    """The URN of the provider: its id is not known before it exists."""
    return one.options.provider.rpartition("::")[0]


def outputs(ours: Mapping[str, Value], theirs: Mapping[str, Value]) -> Iterator[str]:
    """Where the outputs of a component or stack differ, once everything exists."""
    for key in sorted(ours.keys() | theirs.keys()):
        if not fits(ours.get(key), theirs.get(key), before=False):
            yield f"output {key} is {ours.get(key)} offline and {theirs.get(key)} under the engine"


def fits(ours: Value, theirs: Value, *, before: bool) -> bool:
    """Whether the engine's value is one that the offline preview allows."""
    if ours is UNKNOWN and not before:
        return theirs is not None and not has_opaque(theirs)
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        return ours.keys() == theirs.keys() and all(fits(ours[key], theirs[key], before=before) for key in ours)
    if isinstance(ours, tuple) and isinstance(theirs, tuple):
        return len(ours) == len(theirs) and all(
            fits(one, other, before=before) for one, other in zip(ours, theirs, strict=True)
        )
    return ours == theirs and isinstance(ours, bool) == isinstance(theirs, bool)
