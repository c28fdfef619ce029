"""The preconditions of Cloud Storage: what a request says the object, or the bucket, must be or must not be.

A generation of 0 stands for "there is no live object": matched, the object must not exist; not matched, it must. Where
there is none, every other precondition fails but `ifMetagenerationNotMatch`. One that fails is 412; where a read says
what it has already (`ifGenerationNotMatch`), it is 304. Source: https://cloud.google.com/storage/docs/request-preconditions
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from tests.google_cloud.errors import Refusal
from tests.google_cloud.object_store import Version

NAMES: Final = ("GenerationMatch", "GenerationNotMatch", "MetagenerationMatch", "MetagenerationNotMatch")
"""What follows `if`, or `ifSource`."""
_MESSAGE: Final = "At least one of the pre-conditions you specified did not hold."


@final
@dataclass(frozen=True, kw_only=True)
class Preconditions:
    """Of one request, about one object. None is not asked for."""

    generation: int | None = None
    generation_not: int | None = None
    metageneration: int | None = None
    metageneration_not: int | None = None

    def check(self, version: Version | None, *, reads: bool = False) -> None:
        """Raises Refusal: 412, or 304 where a read names what there is. `version` is the one that is there."""
        generation = 0 if version is None else version.generation
        metageneration = None if version is None else version.metageneration
        if self.generation not in (None, generation) or self.metageneration not in (None, metageneration):
            raise refused()
        if version is None and self.generation_not is not None:
            raise refused()
        if self.generation_not == generation or (metageneration and self.metageneration_not == metageneration):
            raise Refusal(304, "notModified", "Not Modified") if reads else refused()


def refused() -> Refusal:
    """A precondition that does not hold."""
    return Refusal(412, "conditionNotMet", _MESSAGE, header="If-Match")


def asked(query: Mapping[str, Any], prefix: str = "if") -> Preconditions:
    """Those of a request; of the source of a copy with `ifSource`. Raises Refusal (400) for what is no number."""
    return Preconditions(
        generation=number(query, f"{prefix}GenerationMatch"),
        generation_not=number(query, f"{prefix}GenerationNotMatch"),
        metageneration=number(query, f"{prefix}MetagenerationMatch"),
        metageneration_not=number(query, f"{prefix}MetagenerationNotMatch"),
    )


def number(query: Mapping[str, Any], name: str) -> int | None:
    """A whole number of a request; None where it is not there. Raises Refusal (400)."""
    text = query.get(name)
    if text is None:
        return None
    if not str(text).isdecimal():
        raise Refusal(400, "invalid", f"Invalid value for field '{name}': '{text}'. It must be a whole number.")
    return int(text)
