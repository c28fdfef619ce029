"""What disks, snapshots and images were made of: who is still there, and what is still needed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final, final

from policies.audit.context import Context
from policies.audit.links import last
from policies.audit.reading import linked, said
from policies.audit.record import Part
from policies.audit.subjects import Subject
from policies.audit.telling import subjects

MANAGED: Final = ("managed-by", "spotrail")
MODEL: Final = ("role", "model")


@final
class Lineage:
    """The origins of what a record holds."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @cached_property
    def _disks(self) -> frozenset[str]:
        """Links and ids of all disks that there are."""
        found: set[str] = set()
        for disk in subjects(self._context, Part.DISKS):
            found.update((disk.resource, said(disk.item, "id")))
        return frozenset(found - {""})

    @cached_property
    def _origins(self) -> frozenset[str]:
        """Links and ids of the snapshots and images that disks were made of."""
        return frozenset(self._origins_of_disks())

    def _origins_of_disks(self) -> Iterator[str]:
        for disk in subjects(self._context, Part.DISKS):
            for key in ("sourceSnapshot", "sourceSnapshotId", "sourceImage", "sourceImageId"):
                found = said(disk.item, key)
                if found:
                    yield linked(found)

    def source_gone(self, subject: Subject) -> bool:
        """Whether the disk that it was taken of is no longer there. A later disk of the same name is another one."""
        link, id = said(subject.item, "sourceDisk"), said(subject.item, "sourceDiskId")
        if not link:
            return False
        return id not in self._disks if id else linked(link) not in self._disks

    def needed(self, subject: Subject) -> bool:
        """Whether a disk that there is was made of it, or a stack of ours keeps it."""
        made = {subject.resource, said(subject.item, "id")} - {""}
        return bool(made & self._origins) or self.kept(subject)

    def kept(self, subject: Subject) -> bool:
        """Whether its labels say that a stack of ours has it, or that it holds a model."""
        return MANAGED in subject.labels or MODEL in subject.labels

    def source_name(self, subject: Subject) -> str:
        """Name of the disk that it was taken of."""
        return last(said(subject.item, "sourceDisk"))
