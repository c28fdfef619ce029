"""`pulumi preview --json`: one document with the steps, Pulumi's count of them and its diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from policies.changes import Reading
from policies.readers.document import Json
from policies.readers.errors import ReadError
from policies.readers.operations import Step
from policies.readers.planned import reading_of, refuse_missing, step_of
from policies.readers.registry import Reader, Source
from policies.readers.values import InvalidValueError, Values
from policies.resources import Value

TITLE: Final = "pulumi preview --json"
_SHOWN: Final = 200
"""Characters of Pulumi's message that a refusal quotes."""


def _claims(first: Mapping[str, object]) -> bool:
    return isinstance(first.get("steps"), list) or isinstance(first.get("changeSummary"), dict)


def _step(found: Json, where: str, values: Values) -> Step:
    if not isinstance(found, dict):
        raise ReadError(f"{where} is no object; it must be a step of a preview")
    return step_of(found, where, values, "oldState", "newState")


def _read(source: Source) -> Reading:
    first = source.first
    steps = first.get("steps", [])
    if not isinstance(steps, list) or not all(isinstance(step, Step) for step in steps):
        raise ReadError(f"{source.place}: steps must be a list of steps")
    refuse_failed(_severities(first.get("diagnostics")), source.place)
    counted = counts(first.get("changeSummary"), f"{source.place}: changeSummary")
    refuse_missing(steps, counted, source.place)
    config = config_of(first.get("config"), f"{source.place}: config", source.values)
    if first.get("maybeCorrupt"):
        source.notes.add("Pulumi says that the state may be corrupt")
    source.notes.add("no policy results in this input: pulumi preview --json leaves them out")
    return reading_of(steps, counted, config, source.notes, ())


def _severities(found: object) -> Iterable[tuple[object, object]]:
    for entry in found if isinstance(found, list) else ():
        if isinstance(entry, dict):
            yield entry.get("severity"), entry.get("message")


def refuse_failed(diagnostics: Iterable[tuple[object, object]], place: str) -> None:
    """Raise ReadError where Pulumi itself reports an error: such a preview stops before its end."""
    errors = [message for severity, message in diagnostics if severity == "error"]
    if errors:
        told = next((message for message in errors if isinstance(message, str)), "nothing more")
        words = " ".join(told.split())[:_SHOWN]
        raise ReadError(
            f"{place}: the preview failed with {len(errors):,} error{'s' * (len(errors) > 1)}, so its steps are not "
            f"the whole change; mend it and preview again. Pulumi says: {words}"
        )


def counts(found: object, where: str) -> dict[str, int]:
    """Pulumi's count of resources by op. Raises ReadError where there is none: the preview did not reach its end."""
    if not isinstance(found, dict):
        raise ReadError(f"{where} is missing: the preview did not reach its end; preview again")
    for op, count in found.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise ReadError(f"{where}.{op} must be a whole number of at least 0")
    return found


def config_of(found: object, where: str, values: Values) -> Mapping[str, Value]:
    """The configuration that the preview ran with; secrets are blinded by Pulumi. Raises ReadError."""
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise ReadError(f"{where} must be an object")
    members: dict[str, Any] = found
    try:
        return values.mapping(members)
    except InvalidValueError as fault:
        raise ReadError(f"{where}.{fault}") from None


READER: Final = Reader(title=TITLE, claims=_claims, read=_read, elements={("steps",): _step})
