"""Labels `ttl` that say no time to live: the guard cannot act on them."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from policies.audit.context import Auditor, Context
from policies.audit.findings import find
from policies.audit.reading import said
from policies.audit.record import Part
from policies.audit.slices.hosts import is_tpu_host
from policies.audit.subjects import Subject
from policies.audit.telling import Told, subjects
from policies.audit.ttl import LABEL, TtlError, time_to_live
from policies.rules.model import Severity

RULES: Final = MappingProxyType(
    {
        Part.NODES: "TPU-LABELS",
        Part.GROUPS: "VM-LABELS",
        Part.INSTANCES: "VM-LABELS",
        Part.DISKS: "DISK-LABELS",
        Part.SNAPSHOTS: "DISK-LABELS",
        Part.IMAGES: "DISK-LABELS",
        Part.ADDRESSES: "BUDGET-LABELS",
        Part.BUCKETS: "GCS-LABELS",
    }
)
"""The rule of stacks on the labels of such a thing."""


def _look(context: Context) -> Iterator[Told]:
    for subject in subjects(context, *RULES):
        label = _label(subject)
        if not label:
            continue
        try:
            time_to_live(label)
        except TtlError as error:
            yield find(_rule(subject), subject, f"{error}", severity=Severity.WARNING)


def _label(subject: Subject) -> str:
    """A group has none of its own; it gives them to its machines, and what it gives wins."""
    if subject.part is Part.GROUPS:
        return said(subject.item, "allInstancesConfig", "properties", "labels", LABEL)
    return subject.label(LABEL)


def _rule(subject: Subject) -> str:
    tpu = subject.part is Part.INSTANCES and is_tpu_host(subject)
    return "TPU-LABELS" if tpu else RULES[subject.part]


AUDITOR: Final = Auditor(title="labels ttl that the guard cannot read", look=_look)
