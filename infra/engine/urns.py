"""URNs as Pulumi's engine builds them: the types of all parents, the stack left out, then the logical name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from pulumi.runtime.proto import alias_pb2

from policies.resources import STACK_TYPE

_SEPARATOR: Final = "::"


@final
@dataclass(frozen=True, kw_only=True)
class Namer:
    """Builds the URNs of one stack."""

    stack: str
    project: str

    @property
    def stack_urn(self) -> str:
        """The URN of the stack itself, the parent of what has no other."""
        return self.urn(STACK_TYPE, f"{self.project}-{self.stack}", "")

    def urn(self, token: str, name: str, parent: str) -> str:
        """The URN of a resource; `parent` is a URN or empty."""
        return self._build(self.stack, self.project, token, name, parent)

    def alias(self, alias: alias_pb2.Alias, token: str, name: str, parent: str) -> str:
        """The URN that an alias of the resource (`token`, `name`, `parent`) stands for."""
        if alias.HasField("urn"):
            return alias.urn
        spec = alias.spec
        return self._build(
            spec.stack or self.stack,
            spec.project or self.project,
            spec.type or token,
            spec.name or name,
            "" if spec.noParent else spec.parentUrn or parent,
        )

    def _build(self, stack: str, project: str, token: str, name: str, parent: str) -> str:
        chain = parent_types(parent)
        qualified = f"{chain}${token}" if chain else token
        return _SEPARATOR.join((f"urn:pulumi:{stack}", project, qualified, name))


def parent_types(parent: str) -> str:
    """What a parent puts before the type of its children: its own qualified type; nothing for the stack."""
    if not parent:
        return ""
    qualified = parent.split(_SEPARATOR)[2]
    return "" if qualified == STACK_TYPE else qualified


def name_of(urn: str) -> str:
    """The logical name: all after the third `::`, which a name may hold itself."""
    return urn.split(_SEPARATOR, 3)[3]


def split_reference(reference: str) -> tuple[str, str]:
    """URN and id of a provider reference, `URN::id`."""
    urn, _, identity = reference.rpartition(_SEPARATOR)
    return urn, identity


def package_of(token: str) -> str:
    """`gcp` of `gcp:compute/disk:Disk`; that of a provider resource is the package that it provides."""
    parts = token.split(":")
    return parts[2] if parts[:2] == ["pulumi", "providers"] and len(parts) == 3 else parts[0]
