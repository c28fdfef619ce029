"""Which remedies are taken: what may be touched, what has to be named first, and what a stack has to be told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from policies.audit.lineage import MANAGED
from policies.audit.links import last, relative
from policies.audit.model import Audit, Remedy, RemedyKind, Verdict, VerdictKind
from policies.audit.record import Item, Part, Record
from policies.audit.remedies.checking import of_project
from policies.audit.remedies.model import Measure, Refusal, RemedyPlan
from policies.audit.remedies.places import place_of
from policies.audit.remedies.renewal import with_labels_as_seen
from policies.audit.remedies.steps import steps_of
from policies.audit.schedule import EXAMPLE
from policies.audit.telling import many
from policies.errors import InputError
from policies.hardware.errors import hint

PROTECT: Final = ("protect", "true")
"""The label of what is never touched unless it is named."""
LAST_COPIES: Final = frozenset({RemedyKind.DELETE_SNAPSHOT, RemedyKind.DELETE_IMAGE, RemedyKind.EXPIRE_VERSIONS})
"""What loses data for good: there is nothing to take a snapshot of before."""
ENDINGS: Final = frozenset({RemedyKind.RESIZE_GROUP, RemedyKind.DELETE_NODE, RemedyKind.STOP_INSTANCE})
"""What ends a slice whose owner's `ttl` is over."""


@final
@dataclass(frozen=True, kw_only=True)
class Choice:
    """What the caller lets be done."""

    resources: tuple[str, ...] = ()
    """Only these: links, or names that are unique. They are touched though protected or of another stack."""
    stack: str = ""
    """Only what carries this stack's `env` label; empty for every stack of ours."""
    scheduled: tuple[str, ...] = ()
    """Names or links of the volumes whose schedule the caller has given: these alone are set by the clock, also by the
    guard."""
    safe_only: bool = False
    """Only what the guard may do by itself: lower throughput, and end what its `ttl` has ended."""


def plan_remedies(audit: Audit, record: Record, choice: Choice = Choice()) -> RemedyPlan:
    """The measures for an audit, those that save most first, and what is not taken with the reason.

    A world that was only partly seen gets no measures at all. Raises InputError for a named resource that has no
    remedy.
    """
    if record.missing:
        unread = many(len(record.missing), "part")
        why = f"{unread} of the project could not be read; nothing is done in a half-seen world"
        refused = (Refusal(resource=f"projects/{audit.project}", why=why),)
        return RemedyPlan(project=audit.project, recorded_at=audit.recorded_at, refused=refused)
    candidates = [verdict for verdict in audit.verdicts if verdict.remedy is not None]
    named = _named(choice.resources, candidates)
    items = _items(record)
    taken = [_measure(audit.project, verdict, items.get(verdict.resource), choice, named) for verdict in candidates]
    measures = (with_labels_as_seen(each, record) for each in taken if isinstance(each, Measure))
    return RemedyPlan(
        project=audit.project,
        recorded_at=audit.recorded_at,
        measures=tuple(sorted(measures, key=lambda each: (-_worth(each), each.resource))),
        refused=tuple(each for each in taken if isinstance(each, Refusal)),
    )


def _worth(measure: Measure) -> Fraction:
    return measure.saving.per_month if measure.saving is not None else Fraction(0)


def _named(resources: Iterable[str], candidates: Iterable[Verdict]) -> frozenset[str]:
    """The links of the named resources."""
    links = [verdict.resource for verdict in candidates]
    found = set()
    for name in resources:
        matches = [link for link in links if name in (last(link), link) or relative(name) == link]
        if not matches:
            close = hint(name, tuple(map(last, links)))
            raise InputError(f'--resource "{name}": the audit has no remedy for a resource of that name.{close}')
        if len(matches) > 1:
            raise InputError(
                f'--resource "{name}" is the name of {len(matches)} resources: {", ".join(matches)}; write one'
            )
        found.update(matches)
    return frozenset(found)


def _items(record: Record) -> Mapping[str, Item]:
    """The resources of the record by the link that verdicts use."""
    parts = (items for part, items in record.inventory.items() if part is not Part.HEARTBEATS)
    return {link: item for items in parts for item in items if (link := _link(item))}


def _link(item: Item) -> str:
    return relative(str(item.get("selfLink") or item.get("name") or ""))


def _measure(
    project: str, verdict: Verdict, item: Item | None, choice: Choice, named: frozenset[str]
) -> Measure | Refusal:
    remedy = verdict.remedy
    why = "it has no remedy" if remedy is None else _objection(verdict, remedy, choice, named)
    if item is None:
        why = "the record does not hold it"
    if why or remedy is None or item is None:
        return Refusal(resource=verdict.resource, why=why)
    try:
        if not of_project(place := place_of(verdict.resource), project):
            return Refusal(resource=verdict.resource, why=f"it is of another project, {place.project}")
        steps = steps_of(verdict.resource, remedy, item)
    except InputError as error:
        return Refusal(resource=verdict.resource, why=str(error).removeprefix(f"{verdict.resource}: "))
    if not steps:
        return Refusal(resource=verdict.resource, why="there is nothing left to do")
    return Measure(
        resource=verdict.resource,
        verdict=verdict.kind,
        kind=remedy.kind,
        saving=remedy.monthly_saving,
        why=verdict.message,
        steps=steps,
        setting=setting_hint(verdict.name, dict(verdict.labels), remedy),
    )


def _objection(verdict: Verdict, remedy: Remedy, choice: Choice, named: frozenset[str]) -> str:
    """Why the remedy is not taken; empty where it is."""
    given = verdict.name in choice.scheduled or verdict.resource in choice.scheduled
    by_clock = remedy.kind is RemedyKind.SCHEDULE_THROUGHPUT and given
    if choice.safe_only and not (remedy.kind.safe or by_clock or _ended(verdict, remedy)):
        return f"{remedy.kind.value} is not for the guard to do by itself"
    if remedy.kind is RemedyKind.SCHEDULE_THROUGHPUT and not by_clock:
        return f'its readers come and go: say when, as in --schedule "{verdict.name}={EXAMPLE}"'
    if verdict.resource in named:
        return ""
    if named:
        return "it is not among those named with --resource"
    labels = dict(verdict.labels)
    if labels.get(PROTECT[0]) == PROTECT[1]:
        return f"it is labelled {'='.join(PROTECT)}; name it with --resource to touch it"
    if remedy.kind in LAST_COPIES:
        return "data of it is gone for good then; name it with --resource to have it so"
    if labels.get(MANAGED[0]) != MANAGED[1]:
        return f"it is not labelled {'='.join(MANAGED)}; name it with --resource to touch it"
    if choice.stack and labels.get("env") != choice.stack:
        return f"it is of the stack {labels.get('env') or '(none)'}, not of {choice.stack}"
    return ""


def _ended(verdict: Verdict, remedy: Remedy) -> bool:
    return verdict.kind is VerdictKind.EXPIRED and remedy.kind in ENDINGS


def setting_hint(name: str, labels: Mapping[str, str], remedy: Remedy) -> str:
    """What to change in the stack file, so that the next `pulumi up` does not undo the remedy; empty where none is."""
    return "\n".join(_settings(name, labels, remedy))


def _settings(name: str, labels: Mapping[str, str], remedy: Remedy) -> Iterator[str]:
    if labels.get(MANAGED[0]) != MANAGED[1]:
        return
    file, role = f"Pulumi.{labels.get('env', '<stack>')}.yaml", labels.get("role", "")
    if remedy.kind is RemedyKind.LOWER_THROUGHPUT and role == "model":
        yield f"{file}: set spotrail:model.throughput to {remedy.to_mibps}, or the next up sets it back"
    elif remedy.kind is RemedyKind.SCHEDULE_THROUGHPUT and role == "model":
        yield f"{file}: set spotrail:model.schedule, so that the guard keeps it and the next up does not set it back"
    elif remedy.kind is RemedyKind.SNAPSHOT_THEN_DELETE and role == "model":
        yield f"{file}: take the zone out of spotrail:serving.zones, or all of spotrail:model, or it comes back"
    elif remedy.kind in ENDINGS:
        slice_name = labels.get("slice") or name
        yield f"{file}: take {slice_name} out of spotrail:slices, or the next up brings it back"
    elif remedy.kind in (RemedyKind.SET_LIFECYCLE, RemedyKind.EXPIRE_VERSIONS, RemedyKind.SHORTEN_SOFT_DELETE):
        yield f"{file}: the next up sets the bucket back; change infra/components/buckets.py, which has its rules"
