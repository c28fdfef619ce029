"""That an owner may change their mind before a step is done: a slice ends only with the labels by which its time was
over. What was relabelled since, with a longer `ttl` or with `protect`, is judged anew by the next run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from policies.audit.groups import creator_of
from policies.audit.links import last, location_of
from policies.audit.model import VerdictKind
from policies.audit.reading import at, link_of
from policies.audit.record import Part, Record
from policies.audit.remedies.model import Condition, Measure, Step

LABELS: Final = "labels"
GIVEN: Final = ("allInstancesConfig", "properties", "labels")
"""Labels that a group gives to its hosts."""
_GROUP: Final = "/instanceGroupManagers/"


def with_labels_as_seen(measure: Measure, record: Record) -> Measure:
    """The measure, which asks for the labels of the record where it ends a slice past its ttl."""
    if measure.verdict is not VerdictKind.EXPIRED:
        return measure
    labels = tuple(_labels(measure.resource, record))
    return replace(measure, steps=tuple(_step(step, labels) for step in measure.steps))


def _step(step: Step, labels: tuple[Condition, ...]) -> Step:
    return replace(step, requires=(*step.requires, *labels))


def _labels(resource: str, record: Record) -> Iterator[Condition]:
    """The labels of a node or a machine; of a group, those that it gives and those of the hosts that it made."""
    for item in (*record.items(Part.NODES), *record.items(Part.INSTANCES)):
        if link_of(item) == resource or (_GROUP in resource and _made_by(creator_of(item), resource)):
            yield Condition(resource=link_of(item), fields={LABELS: item.get(LABELS)})
    for group in record.items(Part.GROUPS):
        if link_of(group) == resource:
            yield Condition(resource=resource, fields={".".join(GIVEN): at(group, *GIVEN)})


def _made_by(creator: str, group: str) -> bool:
    """Whether that is the group. Metadata calls its project by the number."""
    return bool(creator) and (location_of(creator), last(creator)) == (location_of(group), last(group))
