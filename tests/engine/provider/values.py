"""Property values of the SDK as plain JSON (`Wire`) and back; what is unknown or secret keeps its signature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pulumi.provider.experimental.property_value import PropertyValue

from infra.engine.wire import SECRET_SIGNATURE, SIGNATURE, UNKNOWN_TEXT, Wire, from_struct, is_unknown, to_struct

DEFAULTS: Final = "__defaults"
"""The key in which Pulumi's bridge to Terraform notes what Check has filled in."""
OLD_INPUTS: Final = "__inputs"
"""The key under which the server passes on the old inputs, which the SDK's own requests lack."""


def plain(values: Mapping[str, PropertyValue]) -> dict[str, Wire]:
    """What came over the wire; whole numbers are int, and entries without a value are left out."""
    found = from_struct(PropertyValue.marshal_map(dict(values)))
    return {key: _whole(value) for key, value in found.items() if value is not None}


def properties(values: Mapping[str, Wire]) -> dict[str, PropertyValue]:
    """What goes over the wire."""
    return PropertyValue.unmarshal_map(to_struct(values))


def revealed(value: Wire) -> Wire:
    """`value` as Google gets it: secrets in clear text, the notes of the bridge left out."""
    if isinstance(value, dict):
        if value.get(SIGNATURE) == SECRET_SIGNATURE:
            return revealed(value.get("value"))
        return {key: revealed(inner) for key, inner in value.items() if key != DEFAULTS}
    return [revealed(inner) for inner in value] if isinstance(value, list) else value


def holds_unknown(value: Wire) -> bool:
    """Whether something in `value` is not known yet."""
    if isinstance(value, dict):
        return any(holds_unknown(inner) for inner in value.values())
    if isinstance(value, list):
        return any(holds_unknown(inner) for inner in value)
    return isinstance(value, str) and (is_unknown(value) or UNKNOWN_TEXT in value)


def text(values: Mapping[str, Wire], key: str) -> str:
    """The text under `key`; empty where there is none."""
    found = revealed(values.get(key))
    return found if isinstance(found, str) else ""


def mapping(value: Wire) -> dict[str, Wire]:
    """`value` where it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Wire) -> list[dict[str, Wire]]:
    """The mappings in a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _whole(value: Wire) -> Wire:
    if isinstance(value, float) and not isinstance(value, bool) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list) else value
