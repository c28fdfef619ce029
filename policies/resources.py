"""The one model of a resource: what the offline preview, the preview file and the state file all become.

Prices and rules see nothing else, so the same stack gives the same number from each of the three.

The module is called `resources`, not `resource`: a pack folder is put first on `sys.path` by Pulumi's
policy host, and `resource` is a module of the standard library.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import chain
from typing import Final, TypeAlias, final

from policies.errors import InputError

STACK_TYPE: Final = "pulumi:pulumi:Stack"
PROVIDER_PREFIX: Final = "pulumi:providers:"
_WHOLE: Final = re.compile(r"\s*-?[0-9]{1,30}\s*")
"""Text that counts as a number: whole, in ASCII digits, no longer than any quantity of a cloud."""


@final
class Opaque(enum.Enum):
    """A value that exists and that nobody may look at. It is never text, never zero, never printed."""

    UNKNOWN = "known after the apply"
    SECRET = "secret"


UNKNOWN: Final = Opaque.UNKNOWN
SECRET: Final = Opaque.SECRET

Value: TypeAlias = "bool | int | Decimal | str | Opaque | tuple[Value, ...] | Mapping[str, Value] | None"

# Tuples, since a union is built anew each time that it is written in a function, and these are asked by the million.
_TEXT: Final = (str, Opaque)
_NUMBER: Final = (int, Decimal, Opaque)
_FLAG: Final = (bool, Opaque)
_LIST: Final = (tuple, Opaque)


class ResourceError(InputError):
    """An input that cannot be what it says: the message names the resource, the input, the value and the rule."""


@final
@dataclass(frozen=True, kw_only=True)
class ResourceOptions:
    """What the program said about a resource beside its inputs."""

    parent: str | None = None
    """URN of the parent; the stack itself has none."""
    provider: str = ""
    """`URN::id` of the provider; empty for components."""
    dependencies: tuple[str, ...] = ()
    """URNs that must exist first."""
    property_dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each top-level input, the URNs that its value came from: the join when the value itself is unknown."""
    protect: bool = False
    """Pulumi refuses to delete it."""
    retain_on_delete: bool = False
    """Pulumi forgets it on delete and leaves it in the cloud, where it goes on billing."""
    delete_before_replace: bool = False
    """A replacement deletes first; needed where the name is fixed."""
    ignore_changes: tuple[str, ...] = ()
    """Input paths whose change is not applied."""
    replace_on_changes: tuple[str, ...] = ()
    """Input paths whose change replaces the resource."""
    deleted_with: str = ""
    """URN whose deletion takes this one along."""
    additional_secret_outputs: tuple[str, ...] = ()
    """Outputs that are secrets."""
    aliases: tuple[str, ...] = ()
    """Former URNs."""
    custom_timeouts: Mapping[str, str] = field(default_factory=dict)
    """`create`, `update`, `delete` as Go durations."""
    import_id: str = ""
    """The cloud id that it was adopted from."""


@final
@dataclass(frozen=True, kw_only=True)
class Resource:
    """One resource of a stack. Keys of inputs and outputs are Pulumi's wire names (camelCase)."""

    urn: str
    """Its URN, unique in a stack."""
    type: str
    """The type token, such as `gcp:compute/disk:Disk`."""
    name: str
    """The logical name: the last part of the URN."""
    custom: bool = True
    """False for the stack and for components, which are nothing in the cloud and never bill."""
    inputs: Mapping[str, Value] = field(default_factory=dict)
    """What the program asked for. Integral numbers are int, others Decimal."""
    outputs: Mapping[str, Value] = field(default_factory=dict)
    """What the provider answered, as far as it is known."""
    options: ResourceOptions = ResourceOptions()
    """What the program said beside the inputs."""

    def value(self, *path: str | int) -> Value:
        """The input at `path`, else the output there; None where neither has it, Opaque below an opaque value."""
        if len(path) == 1 and isinstance(path[0], str):  # most of them
            found = self.inputs.get(path[0])
            return self.outputs.get(path[0]) if found is None else found
        found = _at(path, self.inputs)
        return _at(path, self.outputs) if found is None else found

    def text(self, *path: str | int) -> str | Opaque | None:
        """`value` that must be text. Raises ResourceError otherwise."""
        found = self.value(*path)
        if found is None or isinstance(found, _TEXT):
            return found
        raise self._refusal(path, found, "text")

    def number(self, *path: str | int) -> int | Decimal | Opaque | None:
        """`value` that must be a number; text of digits counts, as some providers write it. Raises ResourceError."""
        found = self.value(*path)
        if found is None or (isinstance(found, _NUMBER) and not isinstance(found, bool)):
            return found
        if isinstance(found, str) and _WHOLE.fullmatch(found):
            return int(found)
        raise self._refusal(path, found, "a number")

    def integer(self, *path: str | int) -> int | Opaque | None:
        """`number` that must be whole and not negative. Raises ResourceError otherwise."""
        found = self.number(*path)
        if found is None or isinstance(found, Opaque) or (isinstance(found, int) and found >= 0):
            return found
        raise self._refusal(path, found, "a whole number of at least 0")

    def flag(self, *path: str | int) -> bool | Opaque | None:
        """`value` that must be true or false. Raises ResourceError otherwise."""
        found = self.value(*path)
        if found is None or isinstance(found, _FLAG):
            return found
        raise self._refusal(path, found, "true or false")

    def items(self, *path: str | int) -> tuple[Value, ...] | Opaque:
        """`value` that must be a list; empty where it is absent. Raises ResourceError otherwise."""
        found = self.value(*path)
        if found is None:
            return ()
        if isinstance(found, _LIST):
            return found
        raise self._refusal(path, found, "a list")

    def _refusal(self, path: tuple[str | int, ...], found: Value, rule: str) -> ResourceError:
        return ResourceError(f"{self.urn}: {dotted(path)} is {shown(found)}; it must be {rule}")


@final
@dataclass(frozen=True)
class ResourceSet:
    """All resources of one stack, in the order of their registration, with the joins that prices and rules need."""

    resources: tuple[Resource, ...]
    """Unique by URN. Raises ResourceError on a duplicate."""

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for resource in self.resources:
            if resource.urn in seen:
                raise ResourceError(f"{resource.urn}: registered twice; a URN is unique in a stack")
            seen.add(resource.urn)

    def __iter__(self) -> Iterator[Resource]:
        return iter(self.resources)

    def __len__(self) -> int:
        return len(self.resources)

    @cached_property
    def _by_urn(self) -> Mapping[str, Resource]:
        return {resource.urn: resource for resource in self.resources}

    @cached_property
    def _place(self) -> Mapping[str, int]:
        return {resource.urn: place for place, resource in enumerate(self.resources)}

    @cached_property
    def _by_type(self) -> Mapping[str, tuple[Resource, ...]]:
        return _grouped((resource.type, resource) for resource in self.resources)

    @cached_property
    def _by_parent(self) -> Mapping[str, tuple[Resource, ...]]:
        return _grouped((parent, resource) for resource in self.resources if (parent := resource.options.parent))

    @cached_property
    def _by_cloud_name(self) -> Mapping[str, tuple[Resource, ...]]:
        return _grouped((name, resource) for resource in self.resources if (name := cloud_name(resource)))

    @cached_property
    def _by_dependency(self) -> Mapping[str, tuple[Resource, ...]]:
        return _grouped((urn, resource) for resource in self.resources for urn in _property_urns(resource))

    def get(self, urn: str) -> Resource | None:
        """The resource of that URN, or None."""
        return self._by_urn.get(urn)

    def of_type(self, *types: str) -> tuple[Resource, ...]:
        """Those of the given type tokens, in order."""
        groups = [group for token in set(types) if (group := self._by_type.get(token))]
        return groups[0] if len(groups) == 1 else self._in_order(chain.from_iterable(groups))

    def children(self, urn: str) -> tuple[Resource, ...]:
        """Those whose parent is `urn`, in order."""
        return self._by_parent.get(urn, ())

    def references(self, resource: Resource, prop: str, *types: str) -> tuple[Resource, ...]:
        """The resources of `types` that the top-level input `prop` refers to.

        By the dependencies that Pulumi recorded for the input; where there are none (a literal), by every text
        in the value whose last path segment is the cloud name of a resource of these types.
        """
        urns = resource.options.property_dependencies.get(prop, ())
        joined = tuple(found for urn in urns if (found := self.get(urn)) and found.type in types) if urns else ()
        value = resource.inputs.get(prop)
        if joined or value is None:
            return joined
        # A self link may carry a query, such as the unique id of a template.
        wanted = {text.partition("?")[0].rsplit("/", 1)[-1] for text in texts(value)}
        named = (other for name in wanted for other in self._by_cloud_name.get(name, ()))
        return self._in_order(other for other in named if other.type in types)

    def referrers(self, resource: Resource, prop: str, *types: str) -> tuple[Resource, ...]:
        """Those of `types` whose top-level input `prop` refers to `resource`, as `references` has it, in order."""
        key = (resource.type, prop, types)
        if key not in self._referrers:
            self._referrers[key] = _grouped(
                (found.urn, other)
                for other in self.of_type(*types)
                for found in self.references(other, prop, resource.type)
            )
        return self._referrers[key].get(resource.urn, ())

    @cached_property
    def _referrers(self) -> dict[tuple[str, str, tuple[str, ...]], Mapping[str, tuple[Resource, ...]]]:
        return {}

    def dependents(self, resource: Resource, *types: str) -> tuple[Resource, ...]:
        """Those of `types` of which an input came from `resource`, by the recorded dependencies, in order."""
        return tuple(other for other in self._by_dependency.get(resource.urn, ()) if other.type in types)

    def _in_order(self, found: Iterable[Resource]) -> tuple[Resource, ...]:
        return tuple(sorted(found, key=lambda resource: self._place[resource.urn]))

    def provider_of(self, resource: Resource) -> Resource | None:
        """The provider resource that `resource` was registered with, or None for the default provider."""
        return self._by_urn.get(resource.options.provider.rpartition("::")[0])


def shown(value: Value) -> str:
    """A value as a message shows it; of what has something unknown or secret inside, the kind alone."""
    if isinstance(value, Opaque):
        return value.value
    if isinstance(value, Decimal):
        return f"{value:f}"
    if has_opaque(value):
        return "a list" if isinstance(value, tuple) else "an object"
    return repr(value)


def cloud_name(resource: Resource) -> str | None:
    """The name that the resource has in the cloud, or None while it is not known."""
    name = resource.value("name")
    return name if isinstance(name, str) else None


def _property_urns(resource: Resource) -> set[str]:
    return {urn for urns in resource.options.property_dependencies.values() for urn in urns}


def _grouped(pairs: Iterable[tuple[str, Resource]]) -> Mapping[str, tuple[Resource, ...]]:
    groups: dict[str, list[Resource]] = {}
    for key, resource in pairs:
        groups.setdefault(key, []).append(resource)
    return {key: tuple(group) for key, group in groups.items()}


def dig(value: Value, *path: str | int) -> Value:
    """Follow `path` through mappings (text) and lists (int). None where it ends; Opaque below an opaque value."""
    return _at(path, value)


def _at(path: tuple[str | int, ...], value: Value) -> Value:
    for key in path:
        if isinstance(value, dict):  # nearly all of them, and an abstract class takes ten times as long to ask
            value = value.get(key)
        elif value is None or isinstance(value, Opaque):
            return value
        elif isinstance(value, Mapping) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, tuple) and isinstance(key, int) and -len(value) <= key < len(value):
            value = value[key]
        else:
            return None
    return value


def texts(value: Value) -> Iterator[str]:
    """Every text in `value`, depth first."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, tuple):
        for inner in value:
            yield from texts(inner)


def has_opaque(value: Value) -> bool:
    """Whether anything in `value` is unknown or secret."""
    if isinstance(value, Mapping):
        return any(has_opaque(inner) for inner in value.values())
    if isinstance(value, tuple):
        return any(has_opaque(inner) for inner in value)
    return isinstance(value, Opaque)


def dotted(path: Iterable[str | int]) -> str:
    """`("bootDisk", "disks", 0)` as `bootDisk.disks[0]`."""
    shown = ""
    for key in path:
        shown += f"[{key}]" if isinstance(key, int) else f".{key}" if shown else key
    return shown
