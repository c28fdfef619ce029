"""Any body whatever is an order or an error of four hundred, and small either way."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from inference.protocol.errors import ApiError
from inference.protocol.field_rows import FIELDS
from inference.protocol.order import Order
from inference.protocol.texts import detokenize, tokenize
from tests.inference.protocol.answering import MODEL, chat, completion

NAMES = sorted({row.name for rows in FIELDS.values() for row in rows})
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-3, 70),
    st.floats(),
    st.text(max_size=5),
    st.just("\ud800"),
    st.sampled_from([10**30, -(10**30), 1e308, "text", "user", "<|user|>", "tiny", {"role": "user", "content": "a"}]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["role", "content", "type", "text", "5", "a", "include_usage"]), inner)
    ),
    max_leaves=4,
)
BODIES = st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), VALUES, max_size=4)


def taken(read: Callable[[], object]) -> bool:
    """Whether a body is taken; an error must be one of a request, and small."""
    error: ApiError | None = None
    try:
        read()
    except ApiError as raised:
        error = raised
    assert error is None or (error.status in (400, 404) and len(error.body()) < 2000)
    return error is None


@settings(max_examples=150)
@given(body=BODIES, prompted=st.booleans())
def test_any_object_is_an_order_or_a_bad_request(body: dict[str, Any], prompted: bool) -> None:
    base: dict[str, Any] = {"prompt": "ab"} if prompted else {}
    told = {"messages": [{"role": "user", "content": "a"}]} if prompted else {}
    for read, first in ((completion, base), (chat, told)):
        sent = json.dumps({**first, **body}).encode()

        def order(read: Callable[[bytes], Order] = read, sent: bytes = sent) -> None:
            made = read(sent)
            assert made.generations
            for generation in made.generations:
                assert 0 < len(generation.prompt) < MODEL.context
                assert 0 <= generation.max_tokens <= MODEL.context - len(generation.prompt)

        taken(order)
        taken(partial(tokenize, sent, MODEL))
        taken(partial(detokenize, sent, MODEL))


@given(body=st.binary(max_size=40))
@example(body=b"{}")
def test_any_bytes_are_a_bad_request(body: bytes) -> None:
    assert not taken(lambda: completion(body))
    assert not taken(lambda: chat(body))


@given(field=st.sampled_from(NAMES), depth=st.integers(900, 1100))
def test_any_depth_in_any_field_is_a_bad_request(field: str, depth: int) -> None:
    body = json.dumps({field: None}).encode().replace(b"null", b"[" * depth + b"]" * depth)
    assert not taken(lambda: chat(body))


def test_the_fuzz_can_make_an_order() -> None:
    assert taken(lambda: completion(b'{"prompt": "ab"}'))
    assert taken(lambda: chat(b'{"messages": [{"role": "user", "content": "a"}]}'))
