"""A remedy plan as a file, schema `spotrail.remedies/1`: to be reviewed by people, and applied later as it was read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, Final, NoReturn, TypeVar

from policies.audit.model import RemedyKind, VerdictKind
from policies.audit.record import Json
from policies.audit.remedies.model import Action, Condition, Measure, Refusal, RemedyPlan, Step
from policies.audit.times import instant
from policies.errors import InputError
from policies.money import Amount, plain

SCHEMA: Final = "spotrail.remedies/1"
DIGITS: Final = 30
"""Before or behind the point of an amount; more is no money."""

_Choice = TypeVar("_Choice", bound=Enum)


def plan_text(plan: RemedyPlan) -> str:
    """The plan as JSON, one key a line, with a final newline."""
    return json.dumps(plan_document(plan), indent=2, allow_nan=False) + "\n"


def plan_document(plan: RemedyPlan) -> Mapping[str, Json]:
    """The plan as `spotrail.remedies/1`."""
    return {
        "schema": SCHEMA,
        "project": plan.project,
        "recorded_at": plan.recorded_at.isoformat(),
        "measures": [_measure(measure) for measure in plan.measures],
        "refused": [{"resource": each.resource, "why": each.why} for each in plan.refused],
    }


def is_plan(text: bytes) -> bool:
    """Whether a file looks like a plan: its first key is the schema, as `plan_text` writes it."""
    return SCHEMA.encode() in text[:200]


def read_plan(text: bytes, name: str) -> RemedyPlan:
    """The plan in the file `name`. Raises InputError that names the place in it, the value and the rule."""
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name}: is no JSON: {error}; write the plan again with spotrail audit --plan") from None
    reader = _Reader(name)
    top = reader.mapping(document, "the file")
    if top.get("schema") != SCHEMA:
        raise InputError(f'{name}: schema is {top.get("schema")!r}; this spotrail reads "{SCHEMA}"')
    try:
        return RemedyPlan(
            project=reader.text(top, "project"),
            recorded_at=instant(reader.text(top, "recorded_at")),
            measures=tuple(reader.measure(each, at) for each, at in reader.each(top, "measures")),
            refused=tuple(
                Refusal(resource=reader.text(each, "resource", at), why=reader.text(each, "why", at))
                for each, at in reader.each(top, "refused")
            ),
        )
    except ValueError as error:
        raise InputError(f"{name}: {error}" if not str(error).startswith(name) else str(error)) from None


def _measure(measure: Measure) -> Json:
    return {
        "resource": measure.resource,
        "verdict": measure.verdict.value,
        "remedy": measure.kind.value,
        "monthly_saving": None if measure.saving is None else plain(measure.saving.monthly),
        "why": measure.why,
        "setting": measure.setting,
        "steps": [_step(step) for step in measure.steps],
    }


def _step(step: Step) -> Json:
    return {
        "text": step.text,
        "action": step.action.value,
        "resource": step.resource,
        "arguments": dict(step.arguments),
        "requires": [_condition(each) for each in step.requires],
        "done": _condition(step.done),
    }


def _condition(condition: Condition) -> Json:
    lacks: dict[str, Json] = {"lacks": dict(condition.lacks)} if condition.lacks else {}
    return {"resource": condition.resource, "absent": condition.absent, "fields": dict(condition.fields), **lacks}


class _Reader:
    """Reads the parts of a plan, and says where in the file something is wrong."""

    def __init__(self, name: str) -> None:
        self._name = name

    def measure(self, each: Mapping[str, Any], at: str) -> Measure:
        return Measure(
            resource=self.text(each, "resource", at),
            verdict=self.choice(VerdictKind, each, "verdict", at),
            kind=self.choice(RemedyKind, each, "remedy", at),
            saving=self.saving(each.get("monthly_saving"), f"{at}.monthly_saving"),
            why=self.text(each, "why", at),
            setting=self.text(each, "setting", at),
            steps=tuple(self.step(step, place) for step, place in self.each(each, "steps", at)),
        )

    def step(self, each: Mapping[str, Any], at: str) -> Step:
        return Step(
            action=self.choice(Action, each, "action", at),
            resource=self.text(each, "resource", at),
            arguments=self.mapping(each.get("arguments"), f"{at}.arguments"),
            requires=tuple(self.condition(one, place) for one, place in self.each(each, "requires", at)),
            done=self.condition(self.mapping(each.get("done"), f"{at}.done"), f"{at}.done"),
            text=self.text(each, "text", at),
        )

    def condition(self, each: Mapping[str, Any], at: str) -> Condition:
        absent = each.get("absent")
        if not isinstance(absent, bool):
            self.refuse(f"{at}.absent", absent, "true or false")
        fields = self.mapping(each.get("fields"), f"{at}.fields")
        lacks = self.mapping(each.get("lacks", {}), f"{at}.lacks")
        return Condition(resource=self.text(each, "resource", at), absent=absent, fields=fields, lacks=lacks)

    def saving(self, value: object, at: str) -> Amount | None:
        if value is None:
            return None
        try:
            figure = Decimal(str(value))
        except InvalidOperation:
            self.refuse(at, value, "a decimal number as text, or null")
        if not isinstance(value, str) or not figure.is_finite() or abs(figure.adjusted()) > DIGITS:
            self.refuse(at, value, "a decimal number as text, or null")
        return Amount.by_month(figure)

    def choice(self, kind: type[_Choice], each: Mapping[str, Any], key: str, at: str) -> _Choice:
        value = self.text(each, key, at)
        try:
            return kind(value)
        except ValueError:
            self.refuse(f"{at}.{key}", value, f"one of {', '.join(str(member.value) for member in kind)}")

    def each(self, parent: Mapping[str, Any], key: str, at: str = "") -> list[tuple[Mapping[str, Any], str]]:
        place = f"{at}.{key}" if at else key
        found = parent.get(key)
        if not isinstance(found, list):
            self.refuse(place, found, "a list")
        return [(self.mapping(item, f"{place}[{number}]"), f"{place}[{number}]") for number, item in enumerate(found)]

    def mapping(self, value: object, at: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            self.refuse(at, value, "an object")
        return value

    def text(self, parent: Mapping[str, Any], key: str, at: str = "") -> str:
        value = parent.get(key)
        if not isinstance(value, str):
            self.refuse(f"{at}.{key}" if at else key, value, "text")
        return value

    def refuse(self, at: str, value: object, rule: str) -> NoReturn:
        shown = "missing" if value is None else json.dumps(value)[:60]
        raise InputError(f"{self._name}: {at} is {shown}; it must be {rule}")


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")
