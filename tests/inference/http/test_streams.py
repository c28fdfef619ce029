"""How streams come: one wake-up a turn for all of them, comments where nothing comes, pieces joined where they wait."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from inference.http.answering import merged
from inference.http.deliveries import Inbox, Post
from inference.scheduling.generation import Reason
from inference.testing import Call, Fault
from inference.text.answer import Delta, End, TokenText
from tests.inference.http.serving import (
    completion,
    engine_for,
    events_in,
    said_in,
    serving,
    settings,
    sums,
    text_of,
)

STREAMS = 8
TOKENS = 60


def test_all_streams_are_woken_once_a_turn() -> None:
    said = settings(slots=STREAMS, cache_memory=0)
    with serving(said, engine=engine_for(said, delays={Call.DECODE: 0.003})) as served:
        heard: dict[int, str] = {}

        def ask(number: int) -> None:
            asked = completion(f"prompt {number}", stream=True, max_tokens=TOKENS, ignore_eos=True)
            with served.client() as http:
                heard[number] = http.post("/v1/completions", json=asked).text

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(STREAMS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        service = served.running.front.service
        assert service is not None
        turns = service.scheduler.statistics().turns
        assert 0 < service.post.wake_ups <= turns < STREAMS * TOKENS / 2
    for number, text in heard.items():
        assert said_in(events_in(text)) == text_of(sums(f"prompt {number}", TOKENS, ends=()))


def test_a_comment_keeps_a_silent_stream_alive() -> None:
    """The first token takes a second; the head comes with the first comment."""
    said = settings(keep_alive=0.2)
    with serving(said, engine=engine_for(said, delays={Call.PREFILL: 1.0})) as served, served.client() as http:
        text = http.post("/v1/completions", json=completion("x", stream=True, max_tokens=3)).text
    assert text.startswith(": keep-alive\n\n: keep-alive\n\n")
    assert said_in(events_in(text)) == text_of(sums("x", 3))


def test_what_goes_wrong_before_the_first_piece_has_a_status() -> None:
    """The head of a stream is not sent before: an engine that fails at the prompt is 500, not a broken stream."""
    said = settings()
    engine = engine_for(said, faults=[Fault(call=Call.PREFILL, turn=1)])
    with serving(said, engine=engine) as served, served.client() as http:
        failed = http.post("/v1/completions", json=completion("x", stream=True))
        then = http.post("/v1/completions", json=completion("x", stream=True, max_tokens=3))
    assert (failed.status_code, failed.json()["error"]["code"]) == (500, "engine_failed")
    assert said_in(events_in(then.text)) == text_of(sums("x", 3))


def token(number: int) -> TokenText:
    return TokenText(token=number, piece=b"x", offset=number, logprob=-1.0, top=())


def test_pieces_that_wait_are_joined_by_answer() -> None:
    end = End(reason=Reason.STOP, prompt_tokens=1, cached_tokens=0, generated_tokens=3)
    pieces = [
        Delta(index=0, text="a", tokens=(token(1),), ids=(1,), generated=1),
        Delta(index=1, text="x", ids=(7,), generated=1),
        Delta(index=0, text="b", tokens=(token(2),), ids=(2, 3), generated=3),
        None,
        Delta(index=0, text="", generated=3, end=end),
    ]
    assert merged(pieces) == [
        Delta(index=0, text="ab", tokens=(token(1), token(2)), ids=(1, 2, 3), generated=3, end=end),
        Delta(index=1, text="x", ids=(7,), generated=1),
    ]


class TestPost:
    """From any thread to the loop."""

    @staticmethod
    def inbox(full: Callable[[], None] = lambda: None) -> Inbox[int]:
        return Inbox(most=3, full=full)

    def test_everything_is_brought_in_order_by_one_wake_up(self) -> None:
        async def receive() -> list[list[int]]:
            post: Post[int] = Post(asyncio.get_running_loop())
            boxes = [self.inbox(), self.inbox()]

            def give() -> None:
                for number in range(6):
                    post.give(boxes[number % 2], number)
                post.send_off()
                post.send_off()  # of nothing

            await asyncio.to_thread(give)
            taken = [await box.take() for box in boxes]
            assert post.wake_ups == 1
            return taken

        assert asyncio.run(receive()) == [[0, 2, 4], [1, 3, 5]]

    def test_who_is_woken_for_nothing_gets_nothing(self) -> None:
        async def receive() -> list[int]:
            box = self.inbox()
            asyncio.get_running_loop().call_later(0.01, box.wake)
            return await box.take()

        assert asyncio.run(receive()) == []

    def test_one_that_is_full_says_so_once(self) -> None:
        said: list[str] = []
        box = self.inbox(lambda: said.append("full"))
        for number in range(5):
            box.put(number)
        assert said == ["full"]

    def test_a_closed_loop_is_no_error(self) -> None:
        loop = asyncio.new_event_loop()
        loop.close()
        post: Post[int] = Post(loop)
        post.give(self.inbox(), 1)
        post.send_off()


@pytest.mark.parametrize("streamed", [False, True])
def test_a_stop_string_ends_the_answer_and_frees_its_slot(streamed: bool) -> None:
    said = settings(slots=1)
    whole = text_of(sums("hello", 40, ends=()))
    place = next(place for place in range(8, len(whole) - 1) if "�" not in whole[place : place + 2])
    stop = whole[place : place + 2]
    with serving(said) as served, served.client() as http:
        asked = completion("hello", stop=stop, max_tokens=4000, ignore_eos=True, stream=streamed)
        answer = http.post("/v1/completions", json=asked)
        then = http.post("/v1/completions", json=completion("x", max_tokens=2)).json()
    text = said_in(events_in(answer.text)) if streamed else answer.json()["choices"][0]["text"]
    assert text == whole[: whole.index(stop)]
    assert then["choices"][0]["text"] == text_of(sums("x", 2))
