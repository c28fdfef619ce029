"""Reads waivers from the configuration of a stack or of the policy pack. Every mistake in them is told at once."""

from __future__ import annotations

import datetime
import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Final

from policies.errors import InputError
from policies.rules.budgets import BUDGET_RULES
from policies.rules.model import Waiver
from policies.rules.registry import rule

FIELDS: Final = ("rule", "urn", "reason", "until")
PLACE: Final = "spotrail:waivers"
PACKS: Final = "STATE-PULUMI-POLICY"
"""What policy packs inside Pulumi said; see `policies.policy_results`."""
MIDNIGHT: Final = "T00:00:00Z"


def read_waivers(value: object, place: str = PLACE) -> tuple[Waiver, ...]:
    """The waivers of an already parsed configuration value: a list of `{rule, urn, reason, until}`; None means none.

    `place` is the setting that errors name. Raises InputError that names every mistake.
    """
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise InputError(f"{place} is {_shown(value)}; it must be a list of waivers with {', '.join(FIELDS)}")
    faults = [fault for index, entry in enumerate(value) for fault in _faults(entry, f"{place}[{index}]")]
    if faults:
        raise InputError("\n".join(faults))
    return tuple(
        Waiver(rule=entry["rule"], urn=entry["urn"], reason=entry["reason"].strip(), until=_day(entry["until"]))
        for entry in value
    )


def read_waivers_of(rule: str, value: object, place: str) -> tuple[Waiver, ...]:
    """The waivers of one rule, whose entries need not name it. Raises InputError."""
    entries = value if isinstance(value, list | tuple) else ()
    named = [{"rule": rule, **entry} if isinstance(entry, Mapping) else entry for entry in entries]
    return read_waivers(named or value, place)


def read_day(value: object, place: str) -> datetime.date | None:
    """A day of the configuration; None where none is set. Raises InputError."""
    try:
        return None if value is None else _day(value)
    except ValueError as error:
        raise InputError(f"{place} is {_shown(value)}; it must be a day, as in 2026-12-15") from error


def _faults(entry: object, place: str) -> Iterator[str]:
    if not isinstance(entry, Mapping):
        yield f"{place} is {_shown(entry)}; a waiver is a mapping with {', '.join(FIELDS)}"
        return
    yield from (_unknown_field(str(key), place) for key in entry if key not in FIELDS)
    for field in FIELDS:
        if entry.get(field) is None:
            yield f"{place}.{field} is missing; a waiver needs {', '.join(FIELDS)}"
        elif fault := _fault(field, entry[field]):
            yield f"{place}.{field}{fault}"


def _unknown_field(key: str, place: str) -> str:
    close = difflib.get_close_matches(key, FIELDS, n=1)
    advice = f"Did you mean {close[0]}?" if close else f"A waiver has {', '.join(FIELDS)}."
    return f"{place}.{key} is no field of a waiver. {advice}"


def _fault(field: str, value: object) -> str:
    """What is wrong with one field, as the rest of a sentence; empty when fine."""
    if field == "until":
        try:
            _day(value)
        except ValueError:
            return f" is {_shown(value)}; it must be the last day that the waiver covers, as in 2026-12-15"
        return ""
    if not isinstance(value, str) or not value.strip():
        return f" is {_shown(value)}; it must be text that is not empty"
    if field == "rule":
        if value in BUDGET_RULES:
            return f" is {value}, which nobody waives: a budget that is to be larger is given a larger limit"
        if value == PACKS:
            return f" is {value}: what another policy pack says is waived in that pack"
        try:
            rule(value)
        except InputError as error:
            return f": {error}"
    return ""


def _day(value: object) -> datetime.date:
    """A day as YAML reads it (a date) or as JSON carries it (text). Raises ValueError.

    A bare day in a stack file is a timestamp to the YAML of Pulumi's CLI, which hands it on as midnight UTC.
    """
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value
    text = value.removesuffix(MIDNIGHT) if isinstance(value, str) else ""
    day = datetime.date.fromisoformat(text)
    if str(day) != text:
        raise ValueError(value)
    return day


def _shown(value: object) -> str:
    return json.dumps(value, default=str, ensure_ascii=False)
