"""Filters of Cloud Monitoring, as far as they are used here: comparisons, AND, OR, NOT, parentheses, functions.

`metric.type = "..." AND resource.labels.instance_id = one_of("1", "2")`. A filter names exactly one metric type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from tests.google_cloud.errors import Refusal

Facts: TypeAlias = Mapping[str, str]
"""What a series is, by selector: `metric.type`, `resource.type`, `metric.labels.device_name` and so on."""
Test: TypeAlias = Callable[[Facts], bool]

MOST_SIGNS: Final = 2048
"""A longer filter is refused, as Google does."""
MOST_ALTERNATIVES: Final = 100
_TOKEN: Final = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|(!=|=|\(|\)|,)|([A-Za-z_][\w./]*))')
_FUNCTIONS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "has_substring": str.__contains__,
    "monitoring.regex.full_match": lambda text, pattern: re.fullmatch(pattern, text) is not None,
}


def metric_type(text: str) -> str:
    """The metric that a filter asks for."""
    found = re.findall(r'metric\.type\s*=\s*"([^"]+)"', text)
    if len(found) != 1:
        raise _bad(f"The filter must name exactly one metric.type; it names {len(found)}: {text}")
    return str(found[0])


def parsed(text: str) -> Test:
    """The filter as a test of a series. Raises Refusal (400) where it cannot be read."""
    if len(text) > MOST_SIGNS:
        raise _bad(f"The filter has {len(text)} characters; the limit is {MOST_SIGNS}.")
    tokens = list(_tokens(text))
    test, rest = _any(tokens)
    if rest:
        raise _bad(f"Unexpected {rest[0][1]!r} in the filter: {text}")
    return test


_Tokens: TypeAlias = list[tuple[str, str]]


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text.rstrip()):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _bad(f"The filter cannot be read at position {position}: {text}")
        quoted, sign, word = match.groups()
        position = match.end()
        if quoted is not None:
            yield "text", re.sub(r"\\(.)", r"\1", quoted)
        else:
            yield ("sign", sign) if sign else ("word", word)


def _any(tokens: _Tokens) -> tuple[Test, _Tokens]:
    first, tokens = _all(tokens)
    tests = [first]
    while tokens[:1] == [("word", "OR")]:
        following, tokens = _all(tokens[1:])
        tests.append(following)
    return (lambda facts: any(test(facts) for test in tests)), tokens


def _all(tokens: _Tokens) -> tuple[Test, _Tokens]:
    first, tokens = _one(tokens)
    tests = [first]
    while tokens[:1] == [("word", "AND")]:
        following, tokens = _one(tokens[1:])
        tests.append(following)
    return (lambda facts: all(test(facts) for test in tests)), tokens


def _one(tokens: _Tokens) -> tuple[Test, _Tokens]:
    if tokens[:1] == [("word", "NOT")]:
        inner, tokens = _one(tokens[1:])
        return (lambda facts: not inner(facts)), tokens
    if tokens[:1] == [("sign", "(")]:
        inner, tokens = _any(tokens[1:])
        return inner, _after(tokens, ")")
    return _comparison(tokens)


def _comparison(tokens: _Tokens) -> tuple[Test, _Tokens]:
    if len(tokens) < 3 or tokens[0][0] != "word" or tokens[1] not in (("sign", "="), ("sign", "!=")):
        raise _bad(f"The filter has no comparison at: {' '.join(text for _, text in tokens)!r}")
    selector = _selector(tokens[0][1])
    holds, rest = _operand(tokens[2:])
    if tokens[1][1] == "=":
        return (lambda facts: selector in facts and holds(facts[selector])), rest
    return (lambda facts: not (selector in facts and holds(facts[selector]))), rest


def _selector(word: str) -> str:
    selector = word.replace(".label.", ".labels.")
    if selector not in ("metric.type", "resource.type", "project") and ".labels." not in selector:
        raise _bad(f"Unknown selector {word!r} in the filter.")
    return selector


def _operand(tokens: _Tokens) -> tuple[Callable[[str], bool], _Tokens]:
    kind, text = tokens[0]
    if kind == "text":
        return text.__eq__, tokens[1:]
    arguments, rest = _arguments(_after(tokens[1:], "("))
    if text == "one_of" and 0 < len(arguments) <= MOST_ALTERNATIVES:
        return frozenset(arguments).__contains__, rest
    if text in _FUNCTIONS and len(arguments) == 1:
        return (lambda value: _FUNCTIONS[text](value, arguments[0])), rest
    raise _bad(f"The filter has no function {text!r} of {len(arguments)} arguments.")


def _arguments(tokens: _Tokens) -> tuple[list[str], _Tokens]:
    found: list[str] = []
    while tokens and tokens[0][0] == "text":
        found.append(tokens[0][1])
        tokens = tokens[1:]
        if tokens[:1] == [("sign", ",")]:
            tokens = tokens[1:]
    return found, _after(tokens, ")")


def _after(tokens: _Tokens, sign: str) -> _Tokens:
    if tokens[:1] != [("sign", sign)]:
        raise _bad(f"The filter lacks a {sign!r}.")
    return tokens[1:]


def _bad(message: str) -> Refusal:
    return Refusal(400, "badRequest", message)
