"""The line between the engine and the language host."""

from __future__ import annotations

import os
import threading

import pytest

from infra.engine.channel import pair


def test_messages_arrive_whole_and_in_order() -> None:
    ours, theirs = pair()
    long = {"text": "ü\n" * 200_000}
    writer = threading.Thread(target=lambda: [ours.send(message) for message in ({"a": 1}, long, {"b": None})])
    writer.start()
    assert [theirs.receive(5) for _ in range(3)] == [{"a": 1}, long, {"b": None}]
    writer.join()
    ours.close()
    theirs.close()


@pytest.mark.parametrize("said", [b"garbage\n", b"[1]\n", b"\xff\n"])
def test_what_is_no_message(said: bytes) -> None:
    ours, theirs = pair()
    os.write(ours.fileno(), said)
    with pytest.raises(ValueError, match=r"not a mapping|Expecting value|can't decode"):
        theirs.receive(1)
    ours.close()
    theirs.close()


def test_a_line_that_is_hung_up() -> None:
    ours, theirs = pair()
    ours.close()
    assert theirs.receive() is None
    with pytest.raises(OSError, match="Broken pipe"):
        theirs.send({})
    theirs.close()


def test_a_line_on_which_nothing_is_said() -> None:
    ours, theirs = pair()
    with pytest.raises(TimeoutError):
        theirs.receive(0.01)
    ours.send({"late": True})
    assert theirs.receive(1) == {"late": True}
    ours.close()
    theirs.close()
