"""What a resource is called: the last of the four parts of its URN."""

from __future__ import annotations

from typing import Final

_PARTS: Final = 4


def name_of(urn: str) -> str:
    """`head` of `urn:pulumi:dev::acme::gcp:compute/instance:Instance::head`; a name may hold `::` itself."""
    return urn.split("::", _PARTS - 1)[-1]
