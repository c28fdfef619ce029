"""Whatever the input is, a reader gives a reading with finite numbers or a refusal: no traceback, no infinity."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.readers.document import LARGEST
from policies.readers.errors import ReadError
from policies.readers.signatures import (
    OUTPUT_SIGNATURE,
    RESOURCE_SIGNATURE,
    SECRET_SIGNATURE,
    SIGNATURE,
    UNKNOWN_TEXTS,
)
from policies.readers.source import read_source
from policies.resources import Resource, Value
from tests.policies.readers.documents import LARGE, SMALL, digest, record, state, step, urn

SOURCES = (
    digest(step("replace", old=SMALL, new=LARGE, replaceReasons=["size"]), replace=1, same=2),
    digest(step("update", old=SMALL, new=LARGE, diffReasons=["size"]), step("delete", "kelp", old=SMALL), update=1),
    state(record("coral", dependencies=[urn("kelp")], propertyDependencies={"zone": [urn("kelp")]}, protect=True)),
    state(record("coral", delete=True), pending_operations=[{"type": "creating", "resource": record("kelp")}]),
    {"version": 3, "checkpoint": {"latest": state(record("coral"))["deployment"]}},
    [
        {"sequence": 1, "preludeEvent": {"config": {"gcp:project": "reef-1"}}},
        {
            "sequence": 2,
            "resourcePreEvent": {"metadata": {"op": "create", "urn": urn("coral"), "new": record("coral")}},
        },
        {"sequence": 3, "policyEvent": {"resourceUrn": urn("coral"), "enforcementLevel": "advisory"}},
        {"sequence": 4, "summaryEvent": {"resourceChanges": {"create": 1}}},
    ],
)
"""One of each kind; a list is a stream, one document a line."""
KEYS = st.sampled_from(
    [
        SIGNATURE,
        "ciphertext",
        "plaintext",
        "value",
        "secret",
        "size",
        "urn",
        "type",
        "op",
        "steps",
        "deployment",
        "custom",
    ]
)
TEXTS = st.sampled_from(
    [
        SECRET_SIGNATURE,
        OUTPUT_SIGNATURE,
        RESOURCE_SIGNATURE,
        *UNKNOWN_TEXTS,
        "[secret]",
        "1e400",
        "-1",
        urn("a"),
        "same",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def text_of(source: Any) -> bytes:
    lines = source if isinstance(source, list) else [source]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


@pytest.mark.parametrize("source", SOURCES, ids=range(len(SOURCES)))
def test_what_is_changed_below_is_read_as_long_as_it_is_whole(source: Any) -> None:
    assert len(read_source("reef.json", io.BytesIO(text_of(source))).after) > 0


def attempt(content: bytes) -> None:
    """Read; a refusal names the file, and whatever is read holds only finite numbers and text that can be written."""
    with contextlib.suppress(ReadError):
        reading = read_source("reef.json", io.BytesIO(content))
        sides = (*(reading.before or ()), *reading.after, *reading.possible)
        for value in (*reading.config.values(), *(value for side in sides for value in values_of(side))):
            assert_sound(value)
        "".join(reading.notes).encode()
        assert reading.hidden >= 0


def values_of(resource: Resource) -> Iterator[Value]:
    """All inputs and outputs, and the names."""
    yield from resource.inputs.values()
    yield from resource.outputs.values()
    yield from (resource.urn, resource.type, resource.name, resource.options.provider, resource.options.parent)


def assert_sound(value: Value) -> None:
    """Finite, exact, and writable."""
    assert not isinstance(value, float)
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, int | Decimal):
        assert -LARGEST <= value <= LARGEST
    elif isinstance(value, tuple):
        for item in value:
            assert_sound(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            key.encode()
            assert_sound(item)


@given(st.binary(max_size=200))
def test_any_bytes(content: bytes) -> None:
    attempt(content)


@given(JSON)
def test_any_json(document: Any) -> None:
    attempt(json.dumps(document).encode())


@given(JSON)
def test_any_json_in_the_place_of_a_list_of_steps_or_resources(found: Any) -> None:
    attempt(json.dumps({"steps": [found], "changeSummary": {"same": 1}, "config": found}).encode())
    attempt(json.dumps({"version": 3, "deployment": {"resources": [found]}}).encode())
    attempt(json.dumps({"sequence": 1, "resourcePreEvent": {"metadata": found}}).encode())


@given(st.sampled_from(SOURCES), st.data())
def test_a_truncated_source(source: Any, data: st.DataObject) -> None:
    content = text_of(source)
    attempt(content[: data.draw(st.integers(0, len(content)))])


@settings(max_examples=300)
@given(st.sampled_from(SOURCES), JSON, st.data())
def test_a_source_in_which_one_value_is_another(source: Any, other: Any, data: st.DataObject) -> None:
    changed = json.loads(json.dumps(source))
    holder, key = data.draw(st.sampled_from(list(places(changed))))
    holder[key] = other
    attempt(text_of(changed))


@given(st.sampled_from(SOURCES), st.data())
def test_a_source_in_which_some_bytes_are_others(source: Any, data: st.DataObject) -> None:
    content = bytearray(text_of(source))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    attempt(bytes(content))


def places(found: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in `found` that holds a value."""
    pairs = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    for key, value in pairs:
        yield found, key
        yield from places(value)
