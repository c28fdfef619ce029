"""An answer in pieces: no character is cut, no stop string shown, and tokens and text are always one thing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.engine.abstract_engine import Choice
from inference.scheduling.generation import Reason
from inference.text.answer import Delta, TextOptions
from inference.text.stops import StopStrings
from tests.inference.text.pieces import NO_STOPS, bytes_of, choice, text_of, told, vocabulary_of

FIXTURES = Path(__file__).parent / "fixtures"
END = 0  # <|end_of_text|>


def cases(name: str) -> list[Any]:
    found = json.loads((FIXTURES / name).read_text())["cases"]
    assert len(found) >= 5
    return list(found)


def answered(pieces: list[bytes], *, stop: tuple[str, ...] = (), tokens: bool = False, **more: Any) -> list[Delta]:
    vocabulary, ids = vocabulary_of(pieces)
    return told(vocabulary, ids, TextOptions(stops=StopStrings(strings=tuple(stop)), tokens=tokens), **more)


def last(deltas: list[Delta]) -> tuple[str, int]:
    """The reason of the end and the tokens until there."""
    assert [delta.end is not None for delta in deltas] == [False] * (len(deltas) - 1) + [True]
    end = deltas[-1].end
    assert end is not None
    return end.reason.value, end.generated_tokens


@pytest.mark.parametrize("tokens", [False, True])
@pytest.mark.parametrize("case", cases("stops_inside_tokens.json"))
def test_a_stop_string_inside_a_token(case: dict[str, Any], tokens: bool) -> None:
    deltas = answered([piece.encode() for piece in case["pieces"]], stop=tuple(case["stop"]), tokens=tokens)
    assert text_of(deltas) == case["text"]
    assert last(deltas) == (case.get("finish", "stop"), len(case["pieces"]))
    if tokens:
        assert bytes_of(deltas).decode() == case["text"]


@pytest.mark.parametrize("tokens", [False, True])
@pytest.mark.parametrize("case", cases("split_characters.json"))
def test_a_character_that_is_cut_between_tokens(case: dict[str, Any], tokens: bool) -> None:
    pieces = [bytes.fromhex(piece) for piece in case["hex"]]
    deltas = answered(pieces, stop=tuple(case.get("stop", ())), tokens=tokens)
    assert text_of(deltas) in (case["text"], *(["\ufffd"] if case["text"] == "\ufffd or empty" else []))
    for delta in deltas:
        assert "\ufffd" not in delta.text or "\ufffd" in case["text"]
    assert last(deltas)[0] == case.get("finish", "stop" if "stop" in case else "length")


@given(
    pieces=st.lists(
        st.text("aé", min_size=1, max_size=3).map(str.encode) | st.binary(min_size=1, max_size=4), max_size=8
    ),
    stop=st.lists(st.text("aé한", min_size=1, max_size=3), max_size=2),
    include=st.booleans(),
)
def test_any_bytes_in_any_pieces_make_the_text_of_the_bytes_before_the_stop(
    pieces: list[bytes], stop: list[str], include: bool
) -> None:
    vocabulary, ids = vocabulary_of(pieces)
    whole = b"".join(pieces)
    ends = [(whole.find(s.encode()) + len(s.encode()), -len(s.encode())) for s in stop if s.encode() in whole]
    end, length = min(ends, default=(len(whole), 0))
    expected = whole[: end if include else end + length]
    for tokens in (False, True):
        options = TextOptions(stops=StopStrings(strings=tuple(stop)), include_stop=include, tokens=tokens)
        deltas = told(vocabulary, ids, options)
        assert text_of(deltas) == expected.decode("utf-8", "replace")
        assert last(deltas)[0] == ("stop" if ends else "length")
        if tokens:
            assert bytes_of(deltas) == expected
            for delta in deltas:
                assert b"".join(token.piece for token in delta.tokens).decode("utf-8", "replace") == delta.text


def test_text_goes_out_as_soon_as_it_is_certain() -> None:
    pieces = ["a", "\n", "b", "\n", "\nc"]
    deltas = answered([piece.encode() for piece in pieces], stop=("\n\n",))
    assert [delta.text for delta in deltas] == ["a", "\nb", ""]
    assert [delta.generated for delta in deltas] == [1, 3, 5]


def test_with_tokens_a_piece_is_whole_tokens() -> None:
    deltas = answered([b"ab", b"c\xed", b"\x95\x9cd", b"e"], tokens=True)
    assert [(delta.text, len(delta.tokens)) for delta in deltas] == [("ab", 1), ("c한d", 2), ("e", 1), ("", 0)]
    offsets = [token.offset for delta in deltas for token in delta.tokens]
    assert offsets == [0, 2, 3, 5]  # the third begins inside the character at 3


def test_a_character_that_ends_in_a_token_that_is_held_is_held_with_it() -> None:
    vocabulary, ids = vocabulary_of([b"\xed", b"\x95\x9cS", b"a"])
    deltas = told(vocabulary, ids, TextOptions(stops=StopStrings(strings=("ST",)), tokens=True))
    assert [(delta.text, len(delta.tokens)) for delta in deltas] == [("한Sa", 3), ("", 0)]


def test_a_special_token_before_the_cut_is_shown() -> None:
    vocabulary, ids = vocabulary_of([b"a", b"a", b"ab"])
    options = TextOptions(stops=StopStrings(strings=("aab",)), tokens=True)
    deltas = told(vocabulary, [ids[0], 2, *ids[1:]], options)
    assert [token.token for delta in deltas for token in delta.tokens] == [ids[0], 2]


def test_a_cut_goes_through_the_tokens_as_through_the_text() -> None:
    vocabulary, ids = vocabulary_of([b"one", b" tw", b"o. And", b" more"])
    deltas = told(vocabulary, ids, TextOptions(stops=StopStrings(strings=("two.",)), tokens=True))
    shown = [(token.token, token.piece, token.logprob) for delta in deltas for token in delta.tokens]
    assert shown == [(ids[0], b"one", -ids[0]), (ids[1], b" ", -ids[1])]
    assert last(deltas) == ("stop", 3)


def test_tokens_that_were_held_and_lie_before_the_cut_stay_whole() -> None:
    vocabulary, ids = vocabulary_of([b"a", b"a", b"ab"])
    deltas = told(vocabulary, ids, TextOptions(stops=StopStrings(strings=("aab",)), tokens=True))
    assert [(delta.text, [token.piece for token in delta.tokens]) for delta in deltas] == [("a", [b"a"])]
    assert last(deltas) == ("stop", 3)


def test_a_stop_string_that_is_included_stays() -> None:
    vocabulary, ids = vocabulary_of([b"one", b" two, three"])
    options = TextOptions(stops=StopStrings(strings=(" two",)), tokens=True, include_stop=True)
    deltas = told(vocabulary, ids, options)
    assert (text_of(deltas), bytes_of(deltas)) == ("one two", b"one two")


@pytest.mark.parametrize(
    ("include", "skip", "text", "shown"),
    [(False, True, "ab", 2), (False, False, "ab", 2), (True, True, "ab", 3), (True, False, "ab<|end_of_text|>", 3)],
)
def test_the_token_that_stops_is_shown_where_it_is_asked_for(include: bool, skip: bool, text: str, shown: int) -> None:
    vocabulary, ids = vocabulary_of([b"a", b"b", b"c"])
    options = TextOptions(stops=NO_STOPS, include_stop=include, skip_special=skip, tokens=True)
    deltas = told(vocabulary, [*ids[:2], END, ids[2]], options, stop_tokens=[END])
    assert text_of(deltas) == text
    assert sum(len(delta.tokens) for delta in deltas) == shown
    assert last(deltas) == ("stop", 3)


def test_what_was_held_comes_out_where_a_token_stops() -> None:
    vocabulary, ids = vocabulary_of([b"a", b"ST"])
    deltas = told(vocabulary, [*ids, END], TextOptions(stops=StopStrings(strings=("STOP",))), stop_tokens=[END])
    assert [delta.text for delta in deltas] == ["a", "ST"]


def test_a_special_token_amid_a_text_is_no_text() -> None:
    vocabulary, ids = vocabulary_of([b"a", b"b"])
    deltas = told(vocabulary, [ids[0], 2, ids[1]], TextOptions(stops=NO_STOPS, tokens=True))
    assert (text_of(deltas), [t.piece for d in deltas for t in d.tokens]) == ("ab", [b"a", b"", b"b"])


def test_nothing_stops_before_min_tokens() -> None:
    vocabulary, ids = vocabulary_of([b"x", b"x", b"y", b"x"])
    deltas = told(vocabulary, ids, TextOptions(stops=StopStrings(strings=("x",))), min_tokens=2)
    assert (text_of(deltas), last(deltas)) == ("xxy", ("stop", 4))


def test_a_token_that_stops_is_one_like_any_other_until_then() -> None:
    vocabulary, ids = vocabulary_of([b"x", b"y", b"x"])
    deltas = told(vocabulary, ids, TextOptions(stops=NO_STOPS), stop_tokens=[ids[0]], min_tokens=1)
    assert (text_of(deltas), last(deltas)) == ("xy", ("stop", 3))


def test_a_stop_string_that_began_before_min_tokens_is_none() -> None:
    vocabulary, ids = vocabulary_of([b"ST", b"OP"])
    deltas = told(vocabulary, ids, TextOptions(stops=StopStrings(strings=("STOP",))), min_tokens=1)
    assert (text_of(deltas), last(deltas)) == ("STOP", ("length", 2))


def test_the_prompt_comes_first_with_its_scores_where_it_is_asked_for() -> None:
    vocabulary, ids = vocabulary_of([b"p", b"q", b"STOP", b"a"])
    prompt, answer = ids[:3], ids[3:]
    options = TextOptions(stops=StopStrings(strings=("STOP",)), tokens=True, echo=True)
    deltas = told(vocabulary, answer, options, prompt=prompt, scores=[choice(t) for t in prompt[1:]])
    tokens = [token for delta in deltas for token in delta.tokens]
    assert text_of(deltas) == "pqSTOPa"  # what stands in the prompt stops nothing
    assert [token.logprob for token in tokens] == [None, -ids[1], -ids[2], -ids[3]]
    assert [token.offset for token in tokens] == [0, 1, 2, 6]


def test_a_prompt_that_is_only_read_is_shown_at_the_end() -> None:
    vocabulary, ids = vocabulary_of([b"a", b"b"])
    options = TextOptions(stops=NO_STOPS, echo=True)
    (delta,) = told(vocabulary, [], options, prompt=ids)
    assert (delta.text, delta.ids, delta.generated, last([delta])) == ("ab", (), 0, ("length", 0))


def test_half_a_character_at_the_end_of_a_prompt_shows_nothing_of_the_prompt() -> None:
    vocabulary, ids = vocabulary_of([b"secret\xed\x95", b"\x9c", b"b"])
    hidden = told(vocabulary, ids[1:], TextOptions(stops=NO_STOPS), prompt=ids[:1])
    shown = told(vocabulary, ids[1:], TextOptions(stops=NO_STOPS, echo=True), prompt=ids[:1])
    assert (text_of(hidden), text_of(shown)) == ("\ufffdb", "secret한b")


@pytest.mark.parametrize("reason", [Reason.CANCELLED, Reason.CUT_OFF, Reason.FAILED])
def test_an_answer_that_never_began_shows_no_prompt(reason: Reason) -> None:
    vocabulary, ids = vocabulary_of([b"a", b"b"])
    options = TextOptions(stops=NO_STOPS, echo=True, tokens=True)
    deltas = told(vocabulary, [], options, prompt=ids, reason=reason)
    assert [(delta.text, delta.tokens) for delta in deltas] == [("", ())]


def test_the_ids_of_all_tokens_come_with_the_text() -> None:
    vocabulary, ids = vocabulary_of([b"a", b"\xed", b"\x95\x9c"])
    deltas = told(vocabulary, [*ids, 2, END], TextOptions(stops=NO_STOPS), stop_tokens=[END])
    assert [delta.ids for delta in deltas] == [(ids[0],), (ids[1], ids[2]), (2, END)]


def test_alternatives_are_handed_on() -> None:
    vocabulary, ids = vocabulary_of([b"a"])
    deltas = told(vocabulary, ids, TextOptions(stops=NO_STOPS, tokens=True))
    assert deltas[0].tokens[0].top == choice(ids[0]).top == Choice(token=ids[0], top=((ids[0], -ids[0]),)).top
