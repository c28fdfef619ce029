"""`pulumi stack export` (versions 3 and 4), and the checkpoint files of a backend in a bucket or folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, final

from policies.changes import Reading, SourceKind
from policies.readers.document import Json
from policies.readers.errors import ReadError
from policies.readers.notes import Notes
from policies.readers.operations import pending_urn
from policies.readers.planned import place_of
from policies.readers.registry import Reader, Source
from policies.readers.states import Record, record_of
from policies.readers.values import Values
from policies.resources import Resource, ResourceSet

TITLE: Final = "pulumi stack export"
VERSIONS: Final = (3, 4)
_EXPORT: Final = ("deployment",)
_CHECKPOINT: Final = ("checkpoint", "latest")
_WAY_OUT: Final = "write one with: pulumi stack export"


@final
@dataclass(frozen=True, kw_only=True)
class Operation:
    """Something that Pulumi began and never saw the end of."""

    type: str
    record: Record


def _record(found: Json, where: str, values: Values) -> Record:
    return record_of(found, where, values)


def _operation(found: Json, where: str, values: Values) -> Operation:
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        raise ReadError(f"{where} is no pending operation; it must have a type and a resource")
    return Operation(type=str(found["type"]), record=record_of(found.get("resource"), f"{where}.resource", values))


def _claims(first: Mapping[str, object]) -> bool:
    return "deployment" in first or "checkpoint" in first


def _read(source: Source) -> Reading:
    deployment = _deployment(source)
    records = _list(deployment, "resources", Record, source.place)
    operations = _list(deployment, "pending_operations", Operation, source.place)
    standing = ResourceSet(tuple(_standing(records, source.notes)))
    if not records:
        source.notes.add("the state is empty: nothing was deployed, or all of it was destroyed")
    urns = [record.resource.urn for record in records] + [each.record.resource.urn for each in operations]
    project, stack = place_of(urns) if urns else _named(source.first)
    return Reading(
        kind=SourceKind.STATE,
        project=project,
        stack=stack,
        after=standing,
        possible=tuple(_possible(operations, standing, source.notes)),
    )


def _named(first: Mapping[str, object]) -> tuple[str, str]:
    """Project and stack by the name that a checkpoint carries: `organization/reef/eval`, or just `eval`."""
    checkpoint = first.get("checkpoint")
    name = checkpoint.get("stack") if isinstance(checkpoint, Mapping) else None
    if not isinstance(name, str):
        return "", ""
    *_, project, stack = ("", *name.split("/"))
    return project, stack


def _deployment(source: Source) -> Mapping[str, Any]:
    version, first = source.first.get("version"), source.first
    if isinstance(version, bool) or version not in VERSIONS:
        whole = isinstance(version, int) and not isinstance(version, bool)
        shown = version if whole else "missing" if version is None else "no whole number"
        raise ReadError(f"{source.place}: version is {shown}; read are versions 3 and 4: {_WAY_OUT}")
    found: object = first
    if "deployment" not in first and _named(first)[1] and _is_new(first["checkpoint"]):
        return {}
    for key in _EXPORT if "deployment" in first else _CHECKPOINT:
        found = found.get(key) if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping) or not ("manifest" in found or "resources" in found):
        raise ReadError(f"{source.place}: there is no deployment in it, so it says nothing of a stack: {_WAY_OUT}")
    return found


def _is_new(checkpoint: object) -> bool:
    """Whether it is the checkpoint of a stack that was made and never deployed."""
    return isinstance(checkpoint, Mapping) and checkpoint.get("latest") is None


def _list(deployment: Mapping[str, Any], key: str, kind: type[Any], place: str) -> list[Any]:
    found = deployment.get(key)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(item, kind) for item in found):
        raise ReadError(f"{place}: {key} must be a list")
    return found


def _standing(records: Sequence[Record], notes: Notes) -> Iterator[Resource]:
    copies: dict[str, int] = {}
    for record in records:
        resource = record.resource
        if record.pending_replacement and not record.external:
            notes.add("deleted already, and its replacement is not made yet: it does not bill", resource.name)
        if not record.stands:
            continue
        if record.pending_delete:
            notes.add("replaced and not deleted yet: it bills until the next pulumi up", resource.name)
            copies[resource.urn] = copies.get(resource.urn, 0) + 1
            resource = replace(resource, urn=pending_urn(resource.urn, copies[resource.urn]))
        yield resource


def _possible(operations: Sequence[Operation], standing: ResourceSet, notes: Notes) -> Iterator[Resource]:
    for operation in operations:
        resource = operation.record.resource
        if operation.type == "creating" and _stands(resource, standing):
            notes.add(
                "its creation was interrupted, and it stands since another pulumi up; that a creation is pending is "
                "forgotten by: pulumi refresh --clear-pending-creates",
                resource.name,
            )
        elif operation.type == "creating":
            notes.add("its creation was interrupted: it may exist and bill; look, then pulumi refresh", resource.name)
            yield resource
        elif operation.type == "importing":
            notes.add("its import was interrupted: it exists, and is not in the state", resource.name)
        elif operation.type in ("updating", "deleting"):
            notes.add(f"interrupted while {operation.type}: the state may be behind; pulumi refresh", resource.name)
        elif operation.type != "reading":
            notes.add(f'the pending operation "{operation.type[:40]}" is not known', resource.name)


def _stands(resource: Resource, standing: ResourceSet) -> bool:
    """Whether what was begun stands by now: Pulumi keeps that it was begun, and no two things have one name."""
    other, name = standing.get(resource.urn), resource.value("name")
    return other is not None and isinstance(name, str) and other.value("name") == name


READER: Final = Reader(
    title=TITLE,
    claims=_claims,
    read=_read,
    elements={
        (*_EXPORT, "resources"): _record,
        (*_EXPORT, "pending_operations"): _operation,
        (*_CHECKPOINT, "resources"): _record,
        (*_CHECKPOINT, "pending_operations"): _operation,
    },
)
