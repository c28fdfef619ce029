"""Stop strings in a text that comes in pieces.

They are looked for in bytes: UTF-8 is found in UTF-8 only where a character begins, so that this is the same as looking
in characters, and does not have to wait for the end of one. What is found does not depend on how the text was cut into
tokens: it is the match that ends first, and of several that end there the longest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final


@final
@dataclass(frozen=True, kw_only=True)
class StopStrings:
    """Some strings to look for, made ready once for all answers of a request. Raises ValueError for an empty one."""

    strings: tuple[str, ...] = ()
    """As they were given."""

    def __post_init__(self) -> None:
        if "" in self.strings:
            raise ValueError("an empty string is in every text")

    @cached_property
    def automata(self) -> tuple[_Automaton, ...]:
        """What finds each."""
        return tuple(_Automaton.of(string.encode()) for string in self.strings)


@final
@dataclass(frozen=True, kw_only=True)
class Match:
    """A stop string that was found, in bytes counted back from the end of what was pushed."""

    start: int
    """To its first byte."""
    end: int
    """To the byte behind its last."""


@final
class StopMatcher:
    """Reads one text until a stop string is found. Takes time in proportion to the text, whatever the strings are."""

    def __init__(self, strings: StopStrings) -> None:
        self._automata = strings.automata
        self._states = [0] * len(strings.automata)

    @property
    def held(self) -> int:
        """Bytes at the end of the text with which a stop string may begin: they are not to be shown yet."""
        return max(self._states, default=0)

    def push(self, piece: bytes) -> Match | None:
        """Read on; the match, where there is one."""
        states = self._states
        for place, byte in enumerate(piece):
            longest = 0
            for number, automaton in enumerate(self._automata):
                state = automaton.after(states[number], byte)
                states[number] = state
                if state == len(automaton.string) > longest:
                    longest = state
            if longest:
                end = len(piece) - place - 1
                return Match(start=end + longest, end=end)
        return None


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class _Automaton:
    """Of Knuth, Morris and Pratt: a state is how many bytes of the string the text ends with."""

    string: bytes
    fallbacks: tuple[int, ...]
    """For the first i + 1 bytes: how many of them are both their end and their beginning."""

    @classmethod
    def of(cls, string: bytes) -> _Automaton:
        fallbacks = [0]
        state = 0
        for byte in string[1:]:
            while state and string[state] != byte:
                state = fallbacks[state - 1]
            state += string[state] == byte
            fallbacks.append(state)
        return cls(string=string, fallbacks=tuple(fallbacks))

    def after(self, state: int, byte: int) -> int:
        """The state behind one byte more; `state` is short of the whole string."""
        while state and self.string[state] != byte:
            state = self.fallbacks[state - 1]
        return state + (self.string[state] == byte)
