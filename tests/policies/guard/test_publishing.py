from __future__ import annotations

import json

import pytest

from policies.errors import InputError
from policies.guard.publishing import MOST_BYTES, MOST_MESSAGES, Envelope, batches, check_topic, envelope
from policies.guard.telling import Message


def message(**document: str) -> Message:
    return Message(kind="verdict", id="0123456789abcdef", resource="projects/p/disks/d", document=document)


def sized(size: int) -> Envelope:
    return Envelope(data=b"x" * size, attributes={}, ordering_key="k")


def test_what_a_subscription_may_filter_by_is_an_attribute() -> None:
    found = envelope(message(text="größer"), "dev")
    assert json.loads(found.data) == {"text": "größer"}
    assert found.attributes == {
        "kind": "verdict",
        "id": "0123456789abcdef",
        "stack": "dev",
        "resource": "projects/p/disks/d",
    }


def test_messages_of_one_stack_keep_their_order() -> None:
    assert {envelope(message(), "dev").ordering_key for _ in range(3)} == {"spotrail/dev"}
    assert envelope(message(), "prod").ordering_key == "spotrail/prod"


def test_an_attribute_is_cut_at_a_whole_character() -> None:
    long = Message(kind="run", id="1", resource="ü" * 1000, document={})
    assert envelope(long, "").attributes == {"kind": "run", "id": "1", "resource": "ü" * 512}


def test_a_request_holds_no_more_than_pubsub_takes() -> None:
    assert [len(batch) for batch in batches(sized(10) for _ in range(2 * MOST_MESSAGES + 1))] == [
        MOST_MESSAGES,
        MOST_MESSAGES,
        1,
    ]
    big = MOST_BYTES // 2 + 1
    assert [len(batch) for batch in batches([sized(big), sized(big), sized(1)])] == [1, 2]
    assert list(batches([])) == []


def test_a_message_as_large_as_a_request_goes_alone() -> None:
    assert [len(batch) for batch in batches([sized(1), sized(MOST_BYTES), sized(1)])] == [1, 1, 1]


@pytest.mark.parametrize("topic", ["findings", "projects/p/topics/", "projects//topics/t", "topics/p/projects/t", ""])
def test_a_topic_is_named_in_full(topic: str) -> None:
    with pytest.raises(InputError, match="it must be projects/PROJECT/topics/NAME"):
        check_topic(topic)
    assert check_topic("projects/p/topics/t") == "projects/p/topics/t"
