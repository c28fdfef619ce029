"""Values: exact numbers, secrets in all forms, unknowns in all forms, and quantities that can be."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from policies.changes import Reading
from policies.readers.errors import ReadError
from policies.readers.signatures import (
    OUTPUT_SIGNATURE,
    RESOURCE_SIGNATURE,
    SECRET_SIGNATURE,
    SIGNATURE,
    UNKNOWN_TEXT,
    UNKNOWN_TEXTS,
)
from policies.resources import SECRET, UNKNOWN, Value
from tests.policies.readers.documents import DISK, SMALL, digest, record, state, step, urn

Read = Callable[[Any], Reading]
CIPHERTEXT = "djE6b2N0b3B1cw=="


def signed(signature: str, **members: Any) -> dict[str, Any]:
    """A mapping that stands for something else."""
    return {SIGNATURE: signature, **members}


def value_of(read: Read, found: Any, token: str = DISK, key: str = "description") -> Value:
    """What the input `key` of a resource in a state is read as."""
    (resource,) = read(state(record("coral", {key: found}, token))).after.of_type(token)
    return resource.inputs.get(key)


def test_each_of_the_seven_unknowns_is_unknown() -> None:
    assert len(set(UNKNOWN_TEXTS)) == 7


@pytest.mark.parametrize(
    ("found", "value"),
    [
        *((text, UNKNOWN) for text in UNKNOWN_TEXTS),
        (f"projects/{UNKNOWN_TEXT}/x", UNKNOWN),
        ("[secret]", SECRET),
        ("a [secret] place", "a [secret] place"),
        (signed(SECRET_SIGNATURE, ciphertext=CIPHERTEXT), SECRET),
        (signed(SECRET_SIGNATURE, plaintext="100"), 100),
        (signed(SECRET_SIGNATURE, plaintext="0"), 0),
        (signed(SECRET_SIGNATURE, plaintext='"100"'), SECRET),
        (signed(SECRET_SIGNATURE, plaintext='"octopus"'), SECRET),
        (signed(SECRET_SIGNATURE, plaintext='{"a":1}'), SECRET),
        (signed(SECRET_SIGNATURE, plaintext="-100"), SECRET),
        (signed(SECRET_SIGNATURE, plaintext="NaN"), SECRET),
        (signed(SECRET_SIGNATURE, plaintext="1e400"), SECRET),
        (signed(SECRET_SIGNATURE, plaintext="007"), SECRET),
        (signed(SECRET_SIGNATURE), SECRET),
        (signed(OUTPUT_SIGNATURE), UNKNOWN),
        (signed(OUTPUT_SIGNATURE, value=7), 7),
        (signed(OUTPUT_SIGNATURE, value=7, secret=True), SECRET),
        (signed(RESOURCE_SIGNATURE, urn="u", id="i"), "i"),
        (signed(RESOURCE_SIGNATURE, urn="u"), "u"),
        (signed(RESOURCE_SIGNATURE), UNKNOWN),
        (signed("c44067f5952c0a294b673a41bacd8c17", text="x", hash="h"), {"text": "x", "hash": "h"}),
        ([1, "[secret]", {"a": None, "b": UNKNOWN_TEXT}], (1, SECRET, {"b": UNKNOWN})),
        (True, True),
        (0.1, Decimal("0.1")),
        (None, None),
    ],
)
def test_each_form_of_a_value_is_what_it_stands_for(read: Read, found: Any, value: Value) -> None:
    decoded = value_of(read, found)
    assert (type(decoded), decoded) == (type(value), value)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1.2e+06", 1_200_000),
        ("12000.0", 12_000),
        ("1.4E2", 140),
        ("-0.0", 0),
        ("9007199254740993", 9_007_199_254_740_993),
        ("0.30000000000000004", Decimal("0.30000000000000004")),
        ("1e308", 10**308),
    ],
)
def test_numbers_are_exact_however_they_are_written(read: Read, written: str, value: Value) -> None:
    text = json.dumps(state(record("coral", {"description": "HERE"}))).replace('"HERE"', written)
    (disk,) = read(text).after.of_type(DISK)
    decoded = disk.inputs["description"]
    assert (type(decoded), decoded) == (type(value), value)


@pytest.mark.parametrize(
    "written", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e-400", "1" * 400, "1e" + "9" * 40]
)
def test_a_number_that_is_not_finite_is_refused_by_urn_and_path(read: Read, written: str) -> None:
    text = json.dumps(state(record("coral", {"labels": [{"x": "HERE"}]}))).replace('"HERE"', written)
    with pytest.raises(ReadError, match=rf"{urn('coral')}: inputs\.labels\[0\]\.x is .*finite"):
        read(text)


@pytest.mark.parametrize("written", ["NaN", "1e400"])
def test_a_number_that_is_not_finite_is_refused_in_the_configuration_too(read: Read, written: str) -> None:
    text = json.dumps(digest(step("create", new=SMALL), create=1) | {"config": {"a:b": "HERE"}})
    with pytest.raises(ReadError, match=r"config\.a:b is .*finite"):
        read(text.replace('"HERE"', written))


@pytest.mark.parametrize("key", ["size", "provisionedThroughput", "provisionedIops"])
@pytest.mark.parametrize(
    ("written", "shown"),
    [("-140", "-140"), ("140.5", r"140\.5"), ("1e18", "1,000,000,000,000,000,000"), ('"-140"', '"-140"')],
)
def test_a_quantity_that_cannot_be_is_refused(read: Read, key: str, written: str, shown: str) -> None:
    text = json.dumps(state(record("coral", {key: "HERE"}))).replace('"HERE"', written)
    rule = "it must be a whole number of at least 0 and at most 999,999,999,999"
    with pytest.raises(ReadError, match=rf"{urn('coral')}: inputs\.{key} is {shown}; {rule}"):
        read(text)


def test_a_quantity_deep_in_an_input_or_an_output_is_judged_too(read: Read) -> None:
    boot = {"bootDisk": {"initializeParams": {"size": -1}}}
    vm = "gcp:compute/instance:Instance"
    with pytest.raises(ReadError, match=r"inputs\.bootDisk\.initializeParams\.size is -1"):
        read(state(record("vm", boot, vm)))
    with pytest.raises(ReadError, match=r"outputs\.bootDisk\.initializeParams\.size is -1"):
        read(state(record("vm", {}, vm) | {"outputs": boot}))


def test_another_provider_may_use_the_same_words_as_it_likes(read: Read) -> None:
    assert value_of(read, -1.5, "aws:x/y:Z", "size") == Decimal("-1.5")


@pytest.mark.parametrize(
    ("secret", "value"),
    [
        ("[secret]", SECRET),
        (signed(SECRET_SIGNATURE, ciphertext=CIPHERTEXT), SECRET),
        (signed(SECRET_SIGNATURE, plaintext="100"), 100),
    ],
)
def test_a_secret_size_is_hidden_unless_its_number_stands_in_the_clear(read: Read, secret: Any, value: Value) -> None:
    reading = read(state(record("coral", SMALL | {"size": secret})))
    (disk,) = reading.after.of_type(DISK)
    assert (disk.integer("size"), disk.integer("provisionedThroughput")) == (value, 2400)
    revealed = ("secret whole numbers that stand in the clear in this input are counted",)
    assert reading.notes == (revealed if value == 100 else ())


def test_no_secret_is_ever_shown(read: Read) -> None:
    secrets = {
        "a": signed(SECRET_SIGNATURE, ciphertext=CIPHERTEXT),
        "b": signed(SECRET_SIGNATURE, plaintext='"octopus"'),
        "c": signed(OUTPUT_SIGNATURE, value="octopus", secret=True),
    }
    shown = repr(read(state(record("coral", secrets))))
    assert CIPHERTEXT not in shown
    assert "octopus" not in shown


def test_a_refusal_shows_no_secret(read: Read) -> None:
    secret = signed(SECRET_SIGNATURE, plaintext="-4096")
    with pytest.raises(ReadError, match=r"inputs\.size is -1; it must be a whole number") as refused:
        read(state(record("coral", {"size": -1, "provisionedIops": secret})))
    assert "4096" not in str(refused.value)


def test_a_value_that_is_nested_too_deep_is_refused(read: Read) -> None:
    deep: Any = 1
    for _ in range(100):
        deep = {"a": deep}
    with pytest.raises(ReadError, match="nested deeper than 64 levels"):
        read(state(record("coral", deep)))


def test_equal_texts_are_kept_once(read: Read) -> None:
    one, two = read(state(record("a"), record("b"))).after.of_type(DISK)
    assert one.inputs["zone"] is two.outputs["zone"]
    assert one.options.provider is two.options.provider


def test_mappings_that_are_equal_and_not_alike_stay_apart(read: Read) -> None:
    # To Python True, 1 and 1.0 are equal, and so are mappings of them.
    (resource,) = read(
        state(record("coral", {"flag": {"x": True}, "number": {"x": 1}, "again": {"x": 1}}))
    ).after.of_type(DISK)
    assert type(resource.value("flag", "x")) is bool
    assert type(resource.value("number", "x")) is int
    assert resource.value("number") == resource.value("again") == {"x": 1}


def test_a_mapping_is_judged_where_it_stands_though_an_equal_one_was_read(read: Read) -> None:
    fine = record("reef", {"block": {"size": -1}}, "aws:ec2/volume:Volume")
    with pytest.raises(ReadError, match=r"block\.size is -1"):
        read(state(fine, record("coral", {"block": {"size": -1}})))
    deep: Any = {"leaf": "x"}
    for _ in range(64):
        deep = {"a": deep}
    with pytest.raises(ReadError, match="nested deeper than 64 levels"):
        read(state(record("coral", {"shallow": {"leaf": "x"}, "deep": deep})))
