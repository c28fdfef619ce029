"""Property values on the wire of Pulumi's protocol, and what they are in the graph.

A value travels as a protobuf Struct, which is JSON: numbers are floats, what is not known yet is one of seven
sentinel texts, and secrets, outputs, resources, assets and archives are mappings with a signature. Here such JSON is
plain Python (`Wire`); `decode` makes the `Value` of a graph from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import TypeAlias

from google.protobuf import struct_pb2

from infra.engine.configuration import ENCRYPTED_PLACEHOLDER
from policies.readers.signatures import (
    OUTPUT_SIGNATURE,
    RESOURCE_SIGNATURE,
    SECRET_SIGNATURE,
    SIGNATURE,
    UNFORESEEN_TEXT,
    UNKNOWN_TEXT,
    UNKNOWN_TEXTS,
    is_unknown,
)
from policies.resources import SECRET, UNKNOWN, Value

__all__ = [
    "OUTPUT_SIGNATURE",
    "RESOURCE_SIGNATURE",
    "SECRET_SIGNATURE",
    "SIGNATURE",
    "UNFORESEEN_TEXT",
    "UNKNOWN_TEXT",
    "UNKNOWN_TEXTS",
    "Wire",
    "decode",
    "decode_all",
    "from_struct",
    "is_opaque",
    "is_unknown",
    "secret",
    "to_struct",
]

Wire: TypeAlias = "bool | float | str | list[Wire] | dict[str, Wire] | None"


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
