"""TPU hosts of Compute Engine, brought together to the slices that they form.

By the managed group that made them, else by its base name, else by their labels `env` and `slice`; else each is alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

from policies.audit.context import Context
from policies.audit.groups import base_of, creator_of
from policies.audit.links import last, location_of
from policies.audit.reading import said
from policies.audit.record import Part
from policies.audit.subjects import Subject
from policies.audit.telling import subjects

TPU_MACHINE: Final = "ct6e-"
"""What the machine types of v6e hosts begin with."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Hosts:
    """The hosts of one slice."""

    members: tuple[Subject, ...]
    """At least one."""
    group: Subject | None = None
    """The managed group that made them, where the record has it."""
    managed: bool = False
    """Whether a managed group made them: it would bring back what is stopped or deleted by hand."""


def is_tpu_host(subject: Subject) -> bool:
    """Whether an instance has TPU chips."""
    return last(said(subject.item, "machineType")).startswith(TPU_MACHINE)


def tpu_hosts(context: Context) -> Iterator[Hosts]:
    """All TPU hosts of the record, by slice."""
    groups = {_place(group): group for group in subjects(context, Part.GROUPS)}
    bases = {
        (group.location, base): place
        for place, group in groups.items()
        if (base := said(group.item, "baseInstanceName"))
    }
    found: dict[tuple[str, ...], list[Subject]] = {}
    for subject in subjects(context, Part.INSTANCES):
        if is_tpu_host(subject):
            found.setdefault(_key(subject, bases), []).append(subject)
    for key, members in found.items():
        group = groups.get(key[1:]) if key[0] == "group" else None
        yield Hosts(members=tuple(members), group=group, managed=key[0] == "group")


def _place(group: Subject) -> tuple[str, ...]:
    return (group.location, group.name)


def _key(subject: Subject, bases: Mapping[tuple[str, str], tuple[str, ...]]) -> tuple[str, ...]:
    creator = creator_of(subject.item)
    if creator:
        return ("group", location_of(creator), last(creator))
    base = base_of(subject.name)
    if (subject.location, base) in bases:
        return ("group", *bases[(subject.location, base)])
    env, slice = subject.label("env"), subject.label("slice")
    return ("slice", subject.location, env, slice) if env and slice else ("alone", subject.resource)
