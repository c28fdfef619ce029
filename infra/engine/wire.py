"""Property values on the wire of Pulumi's protocol, and what they are in the graph.

A value travels as a protobuf Struct, which is JSON: numbers are floats, what is not known yet is one of seven
sentinel texts, and secrets, outputs, resources, assets and archives are mappings with a signature. Here such JSON is
plain Python (`Wire`); `decode` makes the `Value` of a graph from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Final, TypeAlias

from google.protobuf import struct_pb2

from infra.engine.configuration import ENCRYPTED_PLACEHOLDER
from policies.resources import SECRET, UNKNOWN, Value

Wire: TypeAlias = "bool | float | str | list[Wire] | dict[str, Wire] | None"

SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
SECRET_SIGNATURE: Final = "1b47061264138c4ac30d75fd1eb44270"
OUTPUT_SIGNATURE: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
RESOURCE_SIGNATURE: Final = "5cf8f73096256a8f31e491e813e4eb8e"

UNKNOWN_TEXT: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""The one sentinel that the Python SDK itself knows."""
UNFORESEEN_TEXT: Final = "dd056dcd-154b-4c76-9bd3-c8f88648b5ff"
"""A sentinel that the Python SDK passes on as text: the answer of an invoke that only Google could give.

A program may build text with it; whatever contains it is UNKNOWN in the graph.
"""
UNKNOWN_TEXTS: Final = (
    UNKNOWN_TEXT,
    "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
    "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
    "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
    "030794c1-ac77-496b-92df-f27374a8bd58",
    "e48ece36-62e2-4504-bad9-02848725956a",
    UNFORESEEN_TEXT,
)
"""Unknown text, truth value, number, list, asset, archive, mapping. Source: Pulumi's sdk/go/common/resource/plugin."""


def from_struct(struct: struct_pb2.Struct) -> dict[str, Wire]:
    """The mapping that `struct` carries, its keys in alphabetical order: a Struct keeps none."""
    return {key: _from_value(struct.fields[key]) for key in sorted(struct.fields)}


def _from_value(value: struct_pb2.Value) -> Wire:
    match value.WhichOneof("kind"):
        case "string_value":
            return value.string_value
        case "number_value":
            return value.number_value
        case "bool_value":
            return value.bool_value
        case "struct_value":
            return from_struct(value.struct_value)
        case "list_value":
            return [_from_value(item) for item in value.list_value.values]
    return None


def to_struct(mapping: Mapping[str, Wire]) -> struct_pb2.Struct:
    """`mapping` as a Struct."""
    struct = struct_pb2.Struct()
    struct.update(dict(mapping))
    return struct


def secret(value: Wire) -> Wire:
    """`value` marked as a secret."""
    if isinstance(value, dict) and value.get(SIGNATURE) == SECRET_SIGNATURE:
        return value
    return {SIGNATURE: SECRET_SIGNATURE, "value": value}


def is_unknown(text: str) -> bool:
    """Whether `text` is a sentinel, or was built from one."""
    return any(sentinel in text for sentinel in UNKNOWN_TEXTS)


def is_opaque(value: Wire) -> bool:
    """Whether `value` itself is unknown, a secret, or a signed mapping: nothing that a type can be asked of."""
    if isinstance(value, str):
        return is_unknown(value) or ENCRYPTED_PLACEHOLDER in value
    return isinstance(value, dict) and SIGNATURE in value


def decode(value: Wire) -> Value:
    """`value` as the graph has it: whole numbers int, others Decimal, unknown and secret ones Opaque.

    An output stands for its value, a resource for its id (a component for its URN), an asset or archive for the
    mapping of what it is made from. Raises ValueError for a number that is not finite.
    """
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return SECRET if ENCRYPTED_PLACEHOLDER in value else UNKNOWN if is_unknown(value) else value
    if isinstance(value, list):
        return tuple(decode(item) for item in value)
    if isinstance(value, dict):
        return _decode_signed(value) if SIGNATURE in value else decode_all(value)
    return _number(value)


def decode_all(mapping: Mapping[str, Wire]) -> dict[str, Value]:
    """Each entry of `mapping` decoded; entries without a value are left out."""
    return {key: decode(value) for key, value in mapping.items() if value is not None}


def _decode_signed(value: Mapping[str, Wire]) -> Value:
    kind = value[SIGNATURE]
    if kind == SECRET_SIGNATURE or (kind == OUTPUT_SIGNATURE and value.get("secret")):
        return SECRET
    if kind == OUTPUT_SIGNATURE:
        return decode(value["value"]) if "value" in value else UNKNOWN
    if kind == RESOURCE_SIGNATURE:
        return decode(value.get("id", value.get("urn"))) or UNKNOWN
    return decode_all({key: inner for key, inner in value.items() if key != SIGNATURE})


def _number(value: float) -> int | Decimal:
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    # repr is the shortest decimal that gives the same double: 0.1 stays 0.1.
    return int(value) if float(value).is_integer() else Decimal(repr(value))
