"""Reads which severity a team gives a rule in place of its own. Every mistake in it is told at once."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from policies.errors import InputError
from policies.rules.budgets import BUDGET_RULES
from policies.rules.model import Severity
from policies.rules.registry import rule

PLACE: Final = "spotrail:severity"
OFF: Final = "off"
WORDS: Final = (*(severity.value for severity in Severity), OFF)


def read_severities(value: object, place: str = PLACE) -> Mapping[str, Severity | None]:
    """The severities of an already parsed value: a mapping of rule ids to error, warning, info or off (None).

    `place` is the setting or the file that errors name. None means none. Raises InputError that names every mistake.
    """
    if value is None:
        return MappingProxyType({})
    if not isinstance(value, Mapping):
        shown = json.dumps(value, default=str, ensure_ascii=False)
        raise InputError(f"{place} is {shown}; it must be a mapping of rule ids to {', '.join(WORDS)}")
    faults = [f"{place}.{name}{fault}" for name, word in value.items() if (fault := _fault(str(name), word))]
    if faults:
        raise InputError("\n".join(faults))
    return MappingProxyType({str(name): _severity(word) for name, word in value.items()})


def _fault(name: str, word: object) -> str:
    """What is wrong with one entry, as the rest of a sentence; empty when fine."""
    if name in BUDGET_RULES:
        return " cannot be set: a budget that is to be larger is given a larger limit"
    try:
        rule(name)
    except InputError as error:
        return f": {error}"
    if _word(word) in WORDS:
        return ""
    close = difflib.get_close_matches(str(word).lower(), WORDS, n=1)
    advice = f"did you mean {close[0]}?" if close else f"it must be one of {', '.join(WORDS)}"
    return f" is {json.dumps(word, default=str, ensure_ascii=False)}; {advice}"


def _severity(word: object) -> Severity | None:
    found = _word(word)
    return None if found == OFF else Severity(found)


def _word(word: object) -> object:
    # YAML 1.1 takes a bare `off` for false.
    return OFF if word is False else word
