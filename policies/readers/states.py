"""One record of a resource, as Pulumi keeps it in a state and shows it in a preview, and the resource that it is."""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, NamedTuple, final

from policies.readers.document import Json
from policies.readers.errors import ReadError
from policies.readers.values import KEPT, InvalidValueError, Values
from policies.resources import SECRET, Resource, ResourceOptions, Value

GOOGLE: Final = "gcp:"
_URN_PARTS: Final = 4
_OPTIONS: Final = (
    "parent",
    "provider",
    "dependencies",
    "propertyDependencies",
    "protect",
    "retainOnDelete",
    "ignoreChanges",
    "replaceOnChanges",
    "deletedWith",
    "additionalSecretOutputs",
    "aliases",
    "customTimeouts",
    "importID",
)
"""The members of a record that its options are made of."""
_PLAIN: Final = 2
"""The version of marshal's format that writes equal values alike, whichever of them are one object."""


@final
@dataclass(frozen=True, kw_only=True)
class Record:
    """A resource, and what only the engine needs to know of it."""

    resource: Resource
    external: bool = False
    """It is only read: somebody else's, who pays for it."""
    pending_delete: bool = False
    """It was replaced and still stands: its deletion has not happened yet."""
    pending_replacement: bool = False
    """It is deleted already, and its replacement is not made yet."""

    @property
    def stands(self) -> bool:
        """Whether it is the stack's own, and there."""
        return not self.external and not self.pending_replacement


@final
class Urn(NamedTuple):
    """The parts of a URN."""

    stack: str
    project: str
    name: str


def parts_of(urn: str) -> Urn | None:
    """The parts of `urn:pulumi:STACK::PROJECT::TYPES::NAME`; None for what is no URN. A name may hold `::`."""
    parts = urn.split("::", _URN_PARTS - 1)
    if len(parts) != _URN_PARTS or not parts[0].startswith("urn:pulumi:"):
        return None
    return Urn(stack=parts[0].removeprefix("urn:pulumi:"), project=parts[1], name=parts[3])


def record_of(found: Json, where: str, values: Values) -> Record:
    """The record at `where`, which is how a message names it. Raises ReadError."""
    if not isinstance(found, dict):
        raise ReadError(f"{where} is no object; it must be the record of a resource")
    urn, token = _text(found, "urn", where), _text(found, "type", where)
    parts = parts_of(urn)
    if parts is None:
        raise ReadError(f'{where}: urn is "{urn[:80]}"; a URN is urn:pulumi:STACK::PROJECT::TYPES::NAME')
    quantities = token.startswith(GOOGLE)
    secret = _texts(found, "additionalSecretOutputs", where)
    inputs = _values(found, "inputs", where, urn, values, quantities)
    outputs = _values(found, "outputs", where, urn, values, quantities)
    resource = Resource(
        urn=values.name(urn),
        type=values.name(token),
        name=values.name(parts.name),
        custom=_flag(found, "custom", where),
        inputs=inputs,
        outputs={**outputs, **dict.fromkeys(outputs.keys() & set(secret), SECRET)} if secret else outputs,
        options=_alike_options(found, where, secret, values),
    )
    return Record(
        resource=resource,
        external=_flag(found, "external", where),
        pending_delete=_flag(found, "delete", where),
        pending_replacement=_flag(found, "pendingReplacement", where),
    )


def _values(
    found: Mapping[str, Json], key: str, where: str, urn: str, values: Values, quantities: bool
) -> dict[str, Value]:
    members = found.get(key)
    if members is None:
        return {}
    if not isinstance(members, dict):
        raise ReadError(f"{where}: {key} of {urn} is no object")
    try:
        return values.mapping(members, quantities=quantities)
    except InvalidValueError as fault:
        raise ReadError(f"{where}: {urn}: {key}.{fault}") from None


def _alike_options(found: Mapping[str, Json], where: str, secret: tuple[str, ...], values: Values) -> ResourceOptions:
    """The options of a record. Most resources of a stack have the same ones, which are made and kept once."""
    try:
        key = marshal.dumps([found.get(name) for name in _OPTIONS], _PLAIN)
    except ValueError:  # nested too deep, which is refused, or not a whole number
        return _options(found, where, secret, values)
    kept = values.options.get(key)
    if kept is None:
        kept = _options(found, where, secret, values)
        if len(values.options) < KEPT:
            values.options[key] = kept
    return kept


def _options(found: Mapping[str, Json], where: str, secret: tuple[str, ...], values: Values) -> ResourceOptions:
    return ResourceOptions(
        parent=_optional(found, "parent", where, values) or None,
        provider=_optional(found, "provider", where, values),
        dependencies=_pooled(found, "dependencies", where, values),
        property_dependencies=_property_dependencies(found, where, values),
        protect=_flag(found, "protect", where),
        retain_on_delete=_flag(found, "retainOnDelete", where),
        ignore_changes=_texts(found, "ignoreChanges", where),
        replace_on_changes=_texts(found, "replaceOnChanges", where),
        deleted_with=_optional(found, "deletedWith", where, values),
        additional_secret_outputs=secret,
        aliases=_texts(found, "aliases", where),
        custom_timeouts=_timeouts(found, where),
        import_id=_optional(found, "importID", where, values),
    )


def _property_dependencies(found: Mapping[str, Json], where: str, values: Values) -> dict[str, tuple[str, ...]]:
    members = _object(found, "propertyDependencies", where)
    named = {key: _pooled(members, key, where, values) for key in members}
    return {key: urns for key, urns in named.items() if urns}


def _timeouts(found: Mapping[str, Json], where: str) -> dict[str, str]:
    """A state has seconds; the graph has Go durations."""
    members = _object(found, "customTimeouts", where)
    return {
        key: f"{seconds}s"
        for key, seconds in members.items()
        if isinstance(seconds, int | Decimal) and not isinstance(seconds, bool) and seconds
    }


def _object(found: Mapping[str, Json], key: str, where: str) -> dict[str, Json]:
    members = found.get(key)
    if members is None:
        return {}
    if not isinstance(members, dict):
        raise ReadError(f"{where}: {key} is no object")
    return members


def _text(found: Mapping[str, Json], key: str, where: str) -> str:
    value = found.get(key)
    if not isinstance(value, str) or not value:
        raise ReadError(f"{where}: {key} is no text; every record of a resource has one")
    return value


def _optional(found: Mapping[str, Json], key: str, where: str, values: Values) -> str:
    value = found.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ReadError(f"{where}: {key} is no text")
    return values.name(value)


def _flag(found: Mapping[str, Json], key: str, where: str) -> bool:
    value = found.get(key)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise ReadError(f"{where}: {key} must be true or false")


def _texts(found: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = found.get(key)
    if not value:
        return ()
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise ReadError(f"{where}: {key} must be a list of texts")


def _pooled(found: Mapping[str, Json], key: str, where: str, values: Values) -> tuple[str, ...]:
    return tuple(map(values.name, _texts(found, key, where)))
