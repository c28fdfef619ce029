"""Values on the wire: our constants against the SDK's own, and what each form becomes in the graph."""

from __future__ import annotations

from decimal import Decimal

import pulumi_policy.proxy
import pytest
from google.protobuf import struct_pb2
from pulumi.runtime import rpc

from infra.engine import wire
from policies.resources import SECRET, UNKNOWN, Value


def test_the_signatures_are_those_of_the_sdk() -> None:
    assert rpc._special_sig_key == wire.SIGNATURE
    assert rpc._special_secret_sig == wire.SECRET_SIGNATURE
    assert rpc._special_output_value_sig == wire.OUTPUT_SIGNATURE
    assert rpc._special_resource_sig == wire.RESOURCE_SIGNATURE


def test_the_sentinels_are_those_of_the_sdk() -> None:
    theirs = {text for name, text in vars(pulumi_policy.proxy).items() if name.startswith("UNKNOWN_")}
    assert len(theirs) == 7
    assert set(wire.UNKNOWN_TEXTS) == theirs
    assert wire.UNKNOWN_TEXT == rpc.UNKNOWN
    assert wire.UNFORESEEN_TEXT == pulumi_policy.proxy.UNKNOWN_OBJECT_VALUE


def signed(signature: str, **rest: wire.Wire) -> wire.Wire:
    """A mapping with a signature."""
    return {wire.SIGNATURE: signature, **rest}


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        (8.0, 8),
        (8, 8),
        (-0.0, 0),
        (1e21, 10**21),
        (0.1, Decimal("0.1")),
        (True, True),
        ("text", "text"),
        ("", ""),
        (None, None),
        ([1.0, ["a"]], (1, ("a",))),
        ({"a": {"b": 1.0}, "c": None}, {"a": {"b": 1}}),
        *((text, UNKNOWN) for text in wire.UNKNOWN_TEXTS),
        (f"projects/{wire.UNFORESEEN_TEXT}/x", UNKNOWN),
        ("user:[secret]", SECRET),
        (signed(wire.SECRET_SIGNATURE, value="hidden"), SECRET),
        (signed(wire.SECRET_SIGNATURE, value=wire.UNKNOWN_TEXT), SECRET),
        (signed(wire.OUTPUT_SIGNATURE), UNKNOWN),
        (signed(wire.OUTPUT_SIGNATURE, value=3.0), 3),
        (signed(wire.OUTPUT_SIGNATURE, value=3.0, secret=True), SECRET),
        (signed(wire.OUTPUT_SIGNATURE, secret=True), SECRET),
        (signed(wire.RESOURCE_SIGNATURE, urn="urn:x", id="disks/a"), "disks/a"),
        (signed(wire.RESOURCE_SIGNATURE, urn="urn:x", id=""), UNKNOWN),
        (signed(wire.RESOURCE_SIGNATURE, urn="urn:x"), "urn:x"),
        (signed(rpc._special_asset_sig, path="a.txt"), {"path": "a.txt"}),
        (
            signed(rpc._special_archive_sig, assets={"a": signed(rpc._special_asset_sig, text="x")}),
            {"assets": {"a": {"text": "x"}}},
        ),
    ],
)
def test_a_value_in_the_graph(value: wire.Wire, meaning: Value) -> None:
    found = wire.decode(value)
    assert found == meaning
    assert type(found) is type(meaning)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_none(number: float) -> None:
    with pytest.raises(ValueError, match="is not a finite number"):
        wire.decode({"a": [number]})


def test_a_struct_and_back() -> None:
    values: dict[str, wire.Wire] = {"z": 1.5, "a": {"y": [True, None, "x"], "b": {}}, "m": []}
    struct = wire.to_struct(values)
    assert isinstance(struct, struct_pb2.Struct)
    found = wire.from_struct(struct)
    assert found == values
    assert list(found) == ["a", "m", "z"]


def test_what_no_type_can_be_asked_of() -> None:
    assert wire.is_opaque(wire.UNKNOWN_TEXT)
    assert wire.is_opaque(wire.secret(1.0))
    assert not wire.is_opaque({"a": wire.UNKNOWN_TEXT})
    assert not wire.is_opaque("text")


def test_a_secret_is_marked_once() -> None:
    assert wire.secret(wire.secret(1.0)) == wire.secret(1.0) == rpc.wrap_rpc_secret(1.0)
