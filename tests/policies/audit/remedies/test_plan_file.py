"""The plan as a file: read back as it was written, and refused with the place where it was damaged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.audit.remedies.model import Refusal
from policies.audit.remedies.plan_file import is_plan, plan_text, read_plan
from policies.errors import InputError
from tests.policies.audit.remedies.test_applying import plan


def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(plan_text(plan()))
    return found


def test_it_is_read_back_as_it_was_written() -> None:
    assert read_plan(plan_text(plan()).encode(), "remedies.json") == plan()
    assert is_plan(plan_text(plan()).encode())
    assert not is_plan(b'{"schema": "spotrail.record/1"}')


def test_what_was_refused_is_kept() -> None:
    import dataclasses

    refused = dataclasses.replace(plan(), refused=(Refusal(resource="x", why="y"),))
    assert read_plan(plan_text(refused).encode(), "f").refused == refused.refused


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("schema",), "spotrail.remedies/2", r'schema is .*; this spotrail reads "spotrail.remedies/1"'),
        (("recorded_at",), "yesterday", "is no time"),
        (("measures",), {}, r"measures is \{\}; it must be a list"),
        (("measures", 0, "verdict"), "LAZY", r"measures\[0\].verdict is \"LAZY\"; it must be one of TOO_NEW"),
        (("measures", 0, "steps", 1, "action"), "explode", r"measures\[0\].steps\[1\].action is \"explode\""),
        (("measures", 0, "steps", 0, "done"), None, r"measures\[0\].steps\[0\].done is missing; it must be an object"),
        (("measures", 0, "monthly_saving"), "NaN", "must be a decimal number"),
        (("measures", 0, "monthly_saving"), 3, "must be a decimal number"),
        (("measures", 1, "steps", 0, "requires", 0, "absent"), "no", "must be true or false"),
    ],
)
def test_damage_is_refused_with_its_place(path: tuple[Any, ...], value: Any, message: str) -> None:
    found = document()
    node: Any = found
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    with pytest.raises(InputError, match=f"remedies.json: .*{message}"):
        read_plan(json.dumps(found).encode(), "remedies.json")


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b"\xff\xfe", b'{"schema": NaN}', b"[" * 100_000])
def test_no_plan_at_all(text: bytes) -> None:
    with pytest.raises(InputError, match=r"remedies\.json: "):
        read_plan(text, "remedies.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(key=st.sampled_from(["project", "recorded_at", "measures", "refused"]), value=JSON)
def test_no_value_makes_a_traceback(key: str, value: Any) -> None:
    try:
        read_plan(json.dumps({**document(), key: value}).encode(), "remedies.json")
    except InputError as error:
        refused = str(error)
    else:
        refused = "remedies.json"
    assert refused.startswith("remedies.json")
