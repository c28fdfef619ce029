"""Labels: what Google takes, and what this project wants on everything that bills.

Source: `URL`.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from policies.estimate.node_counts import CLUSTER, NODE_POOL
from policies.resources import Opaque, Resource, ResourceSet, Value
from policies.rules.model import Severity, Violation

REQUIRED: Final = ("owner", "env", "ttl", "managed-by")
"""On everything that bills: who to ask, which stack, when the guard may act, which tool."""
URL: Final = "https://docs.cloud.google.com/compute/docs/labeling-resources#requirements"
REMEDIATION: Final = (
    "Set spotrail:owner and spotrail:ttl; env and managed-by follow (labels of the resource). A value has lower-case "
    "letters, digits, _ and -, 63 characters at most."
)
"""Of every rule about labels."""
LENGTH: Final = 63
_JUDGED: Final = (str, Opaque, type(None))
_TTL: Final = re.compile(r"[1-9][0-9]*[hd]")
_PLACES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {CLUSTER: ("resourceLabels",), NODE_POOL: ("nodeConfig", "resourceLabels")}
)
"""Where a type has its labels, if not in `labels`."""
_LETTERS: Final = ("Ll", "Lo")
"""Unicode categories of lower-case letters and of letters without case."""
_RESERVED: Final = "goog-"
_SYNTAX: Final = f"Google takes at most {LENGTH} letters that are not upper case, digits, _ and -"


def judge_labels(resource: Resource, resources: ResourceSet) -> Iterator[Violation]:
    """What is wrong with the labels of `resource`: syntax first, then what is missing, then what nobody can see."""
    found = labels_of(resource, resources)
    if isinstance(found, Opaque):
        return iter((Violation.hidden("labels", found),))
    # Of a value that is no text only that it is there matters; it may have no hash.
    return iter(_judge_labels(*((key, value if isinstance(value, _JUDGED) else True) for key, value in found.items())))


def labels_of(resource: Resource, resources: ResourceSet) -> Mapping[str, Value] | Opaque:
    """The labels of a resource, over the default labels of its provider."""
    provider = resources.provider_of(resource)
    own = resource.value(*_PLACES.get(resource.type, ("labels",)))
    layers = [provider.value("defaultLabels") if provider else None, own]
    merged: dict[str, Value] = {}
    for layer in layers:
        if isinstance(layer, Opaque):
            return layer
        if isinstance(layer, Mapping):
            merged |= layer
    return merged


def label(resource: Resource, key: str, resources: ResourceSet) -> str | Opaque | None:
    """One label of a resource; Opaque where it or the labels as a whole are."""
    found = labels_of(resource, resources)
    value = found if isinstance(found, Opaque) else found.get(key)
    return value if isinstance(value, str | Opaque) else None


def valid_key(key: str) -> bool:
    """Whether Google takes a label key: as a value, and the first character is a letter."""
    return valid_value(key) and unicodedata.category(key[:1] or "_") in _LETTERS


@functools.lru_cache(maxsize=4096)
def valid_value(value: str) -> bool:
    """Whether Google takes a label value: at most 63 letters of any script, none upper case, digits, `_` and `-`."""
    return len(value) <= LENGTH and all(_legal(character) for character in value)


def valid_ttl(value: str) -> bool:
    """Whether the guard understands a `ttl` label: hours or days, as in `12h` and `7d`."""
    return _TTL.fullmatch(value) is not None


def _legal(character: str) -> bool:
    category = unicodedata.category(character)
    return character in "_-" or category in _LETTERS or category.startswith("N")


@functools.lru_cache(maxsize=4096)
def _judge_labels(*labels: tuple[str, Value]) -> tuple[Violation, ...]:
    """What is wrong with these labels; the same few stand on every resource of a stack."""
    faults = [fault for key, value in labels for fault in _judge_label(key, value)]
    return (*faults, *_judge_missing(dict(labels)))


def _judge_missing(found: Mapping[str, Value]) -> Iterator[Violation]:
    missing = [key for key in REQUIRED if found.get(key) in (None, "")]
    if missing:
        has = ", ".join(sorted(found)) or "none"
        yield Violation(message=f"labels are missing: {', '.join(missing)} (it has: {has})", severity=Severity.WARNING)


def _judge_label(key: str, value: Value) -> Iterator[Violation]:
    yield from _judge_key(key)
    if isinstance(value, str | Opaque):
        yield from _judge_value(key, value)


def _judge_key(key: str) -> Iterator[Violation]:
    if not valid_key(key):
        yield Violation(message=f'label key "{key}": {_SYNTAX}, the first a letter')
    elif key.startswith(_RESERVED):
        yield Violation(
            message=f'label key "{key}": keys with {_RESERVED} are Google\'s own', severity=Severity.WARNING
        )


def _judge_value(key: str, value: str | Opaque) -> Iterator[Violation]:
    if isinstance(value, Opaque):
        yield Violation.hidden(f"label {key}", value)
    elif not valid_value(value):
        yield Violation(message=f'label {key} is "{value}": {_SYNTAX}')
    elif key == "ttl" and value and not valid_ttl(value):
        yield Violation(
            message=f'label ttl is "{value}": the guard understands hours and days, as in 12h or 7d',
            severity=Severity.WARNING,
        )
