"""Sizes of inputs that the provider or Google refuses: numbers, lengths of texts and lists.

Source: the documentation of pulumi-gcp 10.2, and of Cloud Storage for soft delete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

from infra.engine.wire import Wire, is_opaque


@final
@dataclass(frozen=True, kw_only=True)
class Limit:
    """The least and the most of an input: of a number its value, of a text or a list its length."""

    least: int
    most: int
    also: frozenset[int] = frozenset()
    """What is right too."""

    def said(self) -> str:
        """As a message says it."""
        return " or ".join([f"{self.least} to {self.most}", *map(str, sorted(self.also))])


LIMITS: Final[Mapping[str, Limit]] = {
    "gcp:billing/budget:Budget.allUpdatesRule.monitoringNotificationChannels": Limit(least=0, most=5),
    "gcp:billing/budget:Budget.displayName": Limit(least=0, most=60),
    "gcp:compute/network:Network.mtu": Limit(least=1300, most=8896),
    "gcp:monitoring/alertPolicy:AlertPolicy.conditions": Limit(least=1, most=6),
    "gcp:monitoring/alertPolicy:AlertPolicy.documentation.links": Limit(least=0, most=3),
    "gcp:storage/bucket:Bucket.softDeletePolicy.retentionDurationSeconds": Limit(
        least=604_800, most=7_776_000, also=frozenset({0})
    ),
}


def beyond(path: str, value: Wire) -> Iterator[str]:
    """What in the inputs of a resource is too small or too large; `path` begins with its type."""
    limit = LIMITS.get(path)
    if is_opaque(value):
        return
    if limit is not None and (size := _size(value)) is not None:
        if not limit.least <= size <= limit.most and size not in limit.also:
            length = "" if size == value else "the length of "
            yield f"expected {length}{path.partition('.')[2]} to be {limit.said()}, got {size:g}"
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from beyond(f"{path}.{key}", inner)


def _size(value: Wire) -> float | None:
    if isinstance(value, bool):
        return None
    return len(value) if isinstance(value, str | list) else value if isinstance(value, int | float) else None
