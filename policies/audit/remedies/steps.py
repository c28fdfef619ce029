"""The steps of each kind of remedy. Pure: from the resource as it was seen to the calls that end its waste."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from policies.audit.links import last, project_of, relative
from policies.audit.model import Remedy, RemedyKind
from policies.audit.record import Item, Json
from policies.audit.remedies.model import Action, Condition, Step, value_at
from policies.errors import InputError

IDENTITY: Final = ("id", "createTime", "timeCreated")
"""Fields of which at least one tells a resource from a later one of the same name."""
UNFINISHED_DAYS: Final = 7
"""Age at which a lifecycle rule ends an upload that was never finished."""
NONCURRENT_DAYS: Final = 7
"""Age at which a lifecycle rule deletes an object version that was overwritten or deleted."""
NAME_ROOM: Final = 40
"""Characters of a disk's name that the name of its snapshot keeps; the most for a name is 63."""
ATTACHMENTS: Final = ("lastAttachTimestamp", "lastDetachTimestamp")
"""Fields of a disk that change whenever somebody could have written to it."""


def steps_of(resource: str, remedy: Remedy, item: Item) -> tuple[Step, ...]:
    """The steps of a remedy in order. `item` is the resource as recorded. Raises InputError where it lacks a field."""
    return tuple(_MAKERS[remedy.kind](resource, remedy, item))


def snapshot_name(disk: str, item: Item) -> str:
    """The name of the snapshot before a disk goes: the same as long as nobody can have written to it.

    So none is taken twice, and one that is older than the last attachment is not taken for the one that is needed.
    """
    state = "\n".join(str(item.get(key) or "") for key in ("id", *ATTACHMENTS))
    return f"spotrail-{disk[:NAME_ROOM].rstrip('-')}-{hashlib.sha256(state.encode()).hexdigest()[:10]}"


def _lower(resource: str, remedy: Remedy, item: Item) -> Iterator[Step]:
    if remedy.to_mibps is None:
        raise InputError(f"{resource}: the remedy names no throughput to set")
    now = _text(resource, item, "provisionedThroughput")
    yield Step(
        action=Action.SET_THROUGHPUT,
        resource=resource,
        arguments={"mibps": remedy.to_mibps},
        requires=(_same(resource, item, "provisionedThroughput", "users"),),
        done=Condition(
            resource=resource, fields={**_identity(resource, item), "provisionedThroughput": str(remedy.to_mibps)}
        ),
        text=f"set the throughput of {last(resource)} to {remedy.to_mibps:,} MiB/s (it is {int(now):,})",
    )


def _snapshot_then_delete(resource: str, remedy: Remedy, item: Item) -> Iterator[Step]:
    disk_id, name = _text(resource, item, "id"), last(resource)
    snapshot = f"projects/{project_of(resource)}/global/snapshots/{snapshot_name(name, item)}"
    unused = _same(resource, item, "users", *ATTACHMENTS)
    ready = Condition(resource=snapshot, fields={"status": "READY", "sourceDiskId": disk_id})
    yield Step(
        action=Action.CREATE_SNAPSHOT,
        resource=resource,
        arguments={"snapshot": last(snapshot)},
        requires=(unused,),
        done=ready,
        text=f"take the snapshot {last(snapshot)} of {name}",
    )
    yield Step(
        action=Action.DELETE_DISK,
        resource=resource,
        requires=(unused, ready),
        done=Condition(resource=resource, absent=True),
        text=f"delete {name}; its snapshot keeps the data",
    )


def _detach(resource: str, remedy: Remedy, item: Item) -> Iterator[Step]:
    users = item.get("users")
    hosts = sorted(relative(str(user)) for user in users) if isinstance(users, list) else []
    same = _identity(resource, item)
    for host in hosts:
        yield Step(
            action=Action.DETACH_DISK,
            resource=resource,
            arguments={"instance": host},
            requires=(
                Condition(resource=resource, fields=same),
                Condition(resource=host, fields={"status": "TERMINATED"}),
            ),
            # Of this host alone: which others have left is for their own steps.
            done=Condition(resource=resource, fields=same, lacks={"users": host}),
            text=f"detach {last(resource)} from {last(host)}, which is stopped",
        )


def _gone(action: Action, verb: str, *fields: str) -> Callable[[str, Remedy, Item], Iterator[Step]]:
    """A maker of the one step that ends a resource, as long as `fields` are as they were seen."""

    def make(resource: str, remedy: Remedy, item: Item) -> Iterator[Step]:
        yield Step(
            action=action,
            resource=resource,
            requires=(_same(resource, item, *fields),),
            done=Condition(resource=resource, absent=True),
            text=f"{verb} {last(resource)}",
        )

    return make


def _set(
    action: Action, verb: str, fields: tuple[str, ...], done: Mapping[str, Json], arguments: Mapping[str, Json] = {}
) -> Callable[[str, Remedy, Item], Iterator[Step]]:
    """A maker of the one step that brings a resource to `done`, as long as `fields` are as they were seen."""

    def make(resource: str, remedy: Remedy, item: Item) -> Iterator[Step]:
        yield Step(
            action=action,
            resource=resource,
            arguments=arguments,
            requires=(_same(resource, item, *fields),),
            done=Condition(resource=resource, fields={**_identity(resource, item), **done}),
            text=f"{verb} {last(resource)}",
        )

    return make


def _lifecycle(rule: Json, effect: str) -> Callable[[str, Remedy, Item], Iterator[Step]]:
    """A maker of the step that adds one rule, if it is not there, and keeps those that are."""

    def make(resource: str, remedy: Remedy, item: Item) -> Iterator[Step]:
        lifecycle = item.get("lifecycle")
        rules = lifecycle.get("rule") if isinstance(lifecycle, Mapping) else None
        kept = list(rules) if isinstance(rules, list) else []
        wanted: Json = {"rule": kept if rule in kept else [*kept, rule]}
        text = f"add a lifecycle rule to {last(resource)}: {effect}"
        yield _patch(resource, item, {"lifecycle": wanted}, {"lifecycle": wanted}, text)

    return make


_END_UPLOADS: Final[Json] = {
    "action": {"type": "AbortIncompleteMultipartUpload"},
    "condition": {"age": UNFINISHED_DAYS},
}
_END_VERSIONS: Final[Json] = {"action": {"type": "Delete"}, "condition": {"daysSinceNoncurrentTime": NONCURRENT_DAYS}}


def _soft_delete(resource: str, remedy: Remedy, item: Item) -> Iterator[Step]:
    yield _patch(
        resource,
        item,
        {"softDeletePolicy": {"retentionDurationSeconds": "0"}},
        {"softDeletePolicy.retentionDurationSeconds": "0"},
        f"turn soft delete off for {last(resource)}; what is soft-deleted already stays until its time is over",
    )


def _patch(resource: str, item: Item, patch: Mapping[str, Json], done: Mapping[str, Json], text: str) -> Step:
    return Step(
        action=Action.PATCH_BUCKET,
        resource=resource,
        arguments={"patch": dict(patch), "metageneration": _text(resource, item, "metageneration")},
        requires=(_same(resource, item, "metageneration"),),
        done=Condition(resource=resource, fields={**_identity(resource, item), **done}),
        text=text,
    )


def _same(resource: str, item: Item, *fields: str) -> Condition:
    """That it is the resource that was seen, with these fields as they were."""
    return Condition(
        resource=resource, fields={**_identity(resource, item), **{path: value_at(item, path) for path in fields}}
    )


def _identity(resource: str, item: Item) -> Mapping[str, Json]:
    """What tells it from a later one of the same name. The id of a bucket or cache is its name, and tells nothing."""
    keys = IDENTITY if not resource.startswith("b/") else IDENTITY[1:]
    found = {key: item[key] for key in keys if item.get(key)}
    if found:
        return found
    raise InputError(f"{resource}: the record has neither an id nor a time of creation; nothing is done without one")


def _text(resource: str, item: Item, key: str) -> str:
    value = item.get(key)
    if value is None or value == "":
        raise InputError(f"{resource}: the record has no {key}; nothing is done without it")
    return str(value)


_MAKERS: Final[Mapping[RemedyKind, Callable[[str, Remedy, Item], Iterator[Step]]]] = {
    RemedyKind.LOWER_THROUGHPUT: _lower,
    RemedyKind.SCHEDULE_THROUGHPUT: _lower,
    RemedyKind.SNAPSHOT_THEN_DELETE: _snapshot_then_delete,
    RemedyKind.DETACH: _detach,
    RemedyKind.RELEASE_ADDRESS: _gone(Action.RELEASE_ADDRESS, "release", "status", "users"),
    RemedyKind.DELETE_SNAPSHOT: _gone(Action.DELETE_SNAPSHOT, "delete the snapshot"),
    RemedyKind.DELETE_IMAGE: _gone(Action.DELETE_IMAGE, "delete the image"),
    RemedyKind.DELETE_NODE: _gone(Action.DELETE_NODE, "delete the node", "state"),
    RemedyKind.DELETE_QUEUED_RESOURCE: _gone(
        Action.DELETE_QUEUED_RESOURCE, "delete the queued resource", "state.state"
    ),
    RemedyKind.RESIZE_GROUP: _set(
        Action.RESIZE_GROUP, "resize to 0 machines the group", ("targetSize",), {"targetSize": "0"}, {"size": 0}
    ),
    RemedyKind.STOP_INSTANCE: _set(Action.STOP_INSTANCE, "stop", ("status",), {"status": "TERMINATED"}),
    RemedyKind.SET_LIFECYCLE: _lifecycle(_END_UPLOADS, f"uploads that are unfinished after {UNFINISHED_DAYS} days end"),
    RemedyKind.EXPIRE_VERSIONS: _lifecycle(
        _END_VERSIONS, f"versions that are noncurrent for {NONCURRENT_DAYS} days are deleted"
    ),
    RemedyKind.SHORTEN_SOFT_DELETE: _soft_delete,
    RemedyKind.DISABLE_CACHE: _set(Action.DISABLE_CACHE, "disable the cache", ("state",), {"state": "disabled"}),
}
