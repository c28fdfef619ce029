"""The estimate as strict JSON, schema `spotrail.estimate/1`: every number is an exact decimal string."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import Final, TypeAlias, final

from policies.budget import budget_findings
from policies.estimate.change import ChangedResource
from policies.estimate.model import CostComponent, Estimate, OneOff, ResourceEstimate, Unpriced
from policies.money import Amount, plain
from policies.report.plan import PlanReport, QuotaNeed
from policies.report.stack import StackReport
from policies.rules.model import Finding

SCHEMA: Final = "spotrail.estimate/1"
MARGIN: Final = "\n    "
"""What stands before each line of a resource."""
COMPONENT_MARGIN: Final = f"{MARGIN}    "
EMPTY: Final = '\n  "resources": []'
"""How the list of resources is written while it is empty."""

Json: TypeAlias = "bool | str | list[Json] | Mapping[str, Json] | None"


@final
class Written(str):
    """A node that is JSON already."""


def plan_json(report: PlanReport) -> str:
    """The plan as text, one key a line, with a final newline."""
    return _text(plan_document(report)) + "\n"


def plan_document(report: PlanReport) -> Mapping[str, Json]:
    """The plan as `spotrail.estimate/1`, with `quotas` and `one_off`, which a plan adds."""
    estimate = report.estimate
    return {
        "schema": SCHEMA,
        "currency": estimate.currency,
        "price_book": _book(report.book_as_of, report.book_sha256),
        "complete": estimate.complete,
        "fresh": estimate.fresh,
        **_total(estimate, whole=True),
        "before": None,
        "delta": None,
        "resources": [resource_document(found, op="create") for found in estimate.resources],
        "findings": [finding_document(finding) for finding in report.findings],
        "notes": list(estimate.notes),
        "quotas": [_quota(need) for need in report.quotas],
        "one_off": [_one_off(once) for once in estimate.one_off],
    }


def stack_json(report: StackReport) -> str:
    """A stack or a change of one as text, one key a line, with a final newline.

    Resources are written one by one: the whole document of a large stack would take several times the memory.
    """
    if not report.change.resources:
        return _text(_frame(report)) + "\n"
    # No text of a JSON document has a line break inside, so the empty list is found where it is and nowhere else.
    head, _, tail = _text(_frame(report)).partition(EMPTY)
    component = _writer()
    written = (f",\n    {_text(_changed(each, component), MARGIN)}" for each in report.change.resources)
    first = next(written).removeprefix(",")
    return "".join((head, EMPTY[:-1], first, *written, "\n  ]", tail, "\n"))


def _text(node: Json, margin: str = "\n") -> str:
    """As json.dumps writes it with an indent of 2, which takes three times as long: there it is no C. `margin` is a
    line break and the indent of the line on which the text stands."""
    if isinstance(node, str):
        return node if isinstance(node, Written) else quoted(node)
    if node is None:
        return "null"
    if isinstance(node, bool):
        return "true" if node else "false"
    inner = f"{margin}  "
    if isinstance(node, list):
        items = [_text(item, inner) for item in node]
        return f"[{inner}{f',{inner}'.join(items)}{margin}]" if items else "[]"
    members = [
        f"{quoted(key)}: {quoted(value) if type(value) is str else _text(value, inner)}" for key, value in node.items()
    ]
    return f"{{{inner}{f',{inner}'.join(members)}{margin}}}" if members else "{}"


def _writer() -> Callable[[CostComponent], Written]:
    """What writes the components of a report: one that stands in many resources once."""
    texts: dict[int, Written] = {}

    def written(line: CostComponent) -> Written:
        found = texts.get(id(line))  # the report keeps its lines, so each has its id for itself
        if found is None:
            found = texts[id(line)] = Written(_text(_component(line), COMPONENT_MARGIN))
        return found

    return written


def stack_document(report: StackReport) -> Mapping[str, Json]:
    """A stack or a change of one as `spotrail.estimate/1`.

    What a deletion takes away stands in `before` and `delta`; its entry of `resources` is 0. Where the source hides
    unchanged resources, the totals are null and the delta stands.
    """
    return {**_frame(report), "resources": [_changed(each) for each in report.change.resources]}


def _frame(report: StackReport) -> Mapping[str, Json]:
    """The document with an empty list of resources."""
    change = report.change
    before, delta = change.before, change.delta
    return {
        "schema": SCHEMA,
        "currency": change.after.currency,
        "price_book": _book(report.book_as_of, report.book_sha256),
        "complete": change.complete,
        "fresh": change.fresh,
        **_total(change.after, whole=change.whole),
        "before": None
        if before is None
        else {**_total(before, whole=change.whole), "complete": change.whole and before.complete},
        "delta": None if delta is None or change.nothing_known else _rates(delta),
        "resources": [],
        "findings": [finding_document(found) for found in (*budget_findings(report.budgets), *report.findings)],
        "notes": list(dict.fromkeys((*report.notes, *change.notes))),
    }


def _changed(each: ChangedResource, component: Callable[[CostComponent], Json] | None = None) -> Mapping[str, Json]:
    """One resource as it will stand."""
    if each.after is not None:
        return resource_document(each.after, op=each.op.value, component=component)
    if each.before is None:
        raise ValueError(f"{each.urn}: neither before nor after")
    gone = ResourceEstimate(resource=each.before.resource, location=each.before.location)
    return resource_document(gone, op=each.op.value)


def _total(side: Estimate, *, whole: bool) -> Mapping[str, Json]:
    return _rates(side.amount if whole and not side.nothing_known else None)


def _rates(amount: Amount | None) -> Mapping[str, Json]:
    if amount is None:
        return {"hourly": None, "monthly": None}
    return _written(*amount.per_month.as_integer_ratio())


@lru_cache(maxsize=8192)
def _written(numerator: int, denominator: int) -> Mapping[str, Json]:
    """The rates of an amount a month; of a large stack, most are alike."""
    amount = Amount(Fraction(numerator, denominator))
    return {"hourly": plain(amount.hourly), "monthly": plain(amount.monthly)}


def _book(as_of: datetime.date | None, sha256: str) -> Mapping[str, Json]:
    return {"as_of": as_of.isoformat() if as_of else None, "sha256": sha256}


def resource_document(
    found: ResourceEstimate, *, op: str, component: Callable[[CostComponent], Json] | None = None
) -> Mapping[str, Json]:
    """One entry of `resources`; `op` is the step of the deployment, such as `create`; `component` makes a line."""
    lines = map(component or _component, found.components)
    return {
        "urn": found.resource.urn,
        "type": found.resource.type,
        "name": found.resource.name,
        "location": found.location,
        "op": op,
        **_rates(None if found.nothing_known else found.amount),
        "components": list(lines),
        "unknown": [{"path": part.path, "reason": part.reason} for part in found.unknown],
        "unpriced": [_unpriced(part) for part in found.unpriced],
    }


def finding_document(finding: Finding) -> Mapping[str, Json]:
    """One entry of `findings`; `waived` is the reason of the waiver, empty where none covers it."""
    return {
        "rule": finding.rule.id,
        "severity": finding.severity.value,
        "urn": finding.urn,
        "message": finding.message,
        "monthly": _rates(finding.monthly)["monthly"],
        "remediation": finding.rule.remediation,
        "waived": finding.waived,
    }


def _component(line: CostComponent) -> Mapping[str, Json]:
    return {
        **_line(line),
        **_rates(line.amount),
        "note": line.note,
    }


def _line(line: CostComponent) -> Mapping[str, Json]:
    return {
        "name": line.name,
        "item": line.item,
        "quantity": plain(line.quantity),
        "unit": line.unit,
        "unit_price": plain(line.unit_price),
    }


def _unpriced(part: Unpriced) -> Mapping[str, Json]:
    return {
        "item": part.item,
        "reason": part.reason,
        "quantity": None if part.quantity is None else plain(part.quantity),
        "unit": part.unit,
    }


def _quota(need: QuotaNeed) -> Mapping[str, Json]:
    return {
        "metric": need.metric,
        "location": need.location,
        "needed": str(need.needed),
        "default": None if need.default is None else str(need.default),
        "note": need.note,
    }


def _one_off(once: OneOff) -> Mapping[str, Json]:
    return {
        "name": once.name,
        "urn": once.urn,
        "cost": plain(once.cost) if once.lines or not once.unpriced else None,
        "lines": [{**_line(line), "cost": plain(line.amount.monthly), "note": line.note} for line in once.lines],
        "unpriced": [_unpriced(part) for part in once.unpriced],
        "note": once.note,
    }
