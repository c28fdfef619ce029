"""Whether a plan may be done at all. A plan is a file that people edit: what makes a step safe must still be in it."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from policies.audit.record import Json
from policies.audit.remedies.model import Action, Condition, RemedyPlan, Step
from policies.audit.remedies.places import Collection, Place, place_of
from policies.audit.remedies.steps import ATTACHMENTS, IDENTITY
from policies.errors import InputError

MOST_AGE: Final = datetime.timedelta(days=3)
"""After which a plan is not done any more: what was idle then may be at work now, which no condition of a step shows.
Long enough to review it over a weekend."""
AHEAD: Final = datetime.timedelta(minutes=10)
"""By which the clock of the machine that recorded it may be ahead."""
_DISKS: Final = (Collection.ZONE_DISKS, Collection.REGION_DISKS)
_ON: Final[Mapping[Action, tuple[Collection, ...]]] = {
    Action.SET_THROUGHPUT: _DISKS,
    Action.CREATE_SNAPSHOT: _DISKS,
    Action.DELETE_DISK: _DISKS,
    Action.DETACH_DISK: _DISKS,
    Action.RELEASE_ADDRESS: (Collection.REGION_ADDRESSES, Collection.GLOBAL_ADDRESSES),
    Action.DELETE_SNAPSHOT: (Collection.SNAPSHOTS,),
    Action.DELETE_IMAGE: (Collection.IMAGES,),
    Action.DELETE_NODE: (Collection.NODES,),
    Action.DELETE_QUEUED_RESOURCE: (Collection.QUEUED_RESOURCES,),
    Action.RESIZE_GROUP: (Collection.ZONE_GROUPS, Collection.REGION_GROUPS),
    Action.STOP_INSTANCE: (Collection.INSTANCES,),
    Action.PATCH_BUCKET: (Collection.BUCKETS,),
    Action.DISABLE_CACHE: (Collection.CACHES,),
}
"""What each action is made on."""
_PATCHED: Final = {"lifecycle", "softDeletePolicy"}
"""Fields of a bucket that a remedy may change."""
_SNAPSHOT: Final = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")


def of_project(place: Place, project: str) -> bool:
    """Whether a resource is of that project. A number in the place of an id tells nothing."""
    return place.project in ("", project) or place.project.isdecimal() or project.isdecimal()


def check_age(plan: RemedyPlan, now: datetime.datetime) -> None:
    """Refuse a plan that rests on a world of long ago, or of tomorrow. Raises InputError."""
    age = now - plan.recorded_at
    seen = f"{plan.recorded_at.astimezone(datetime.UTC):%Y-%m-%d %H:%MZ}"
    again = f"look again, with: spotrail audit --project {plan.project}"
    if age > MOST_AGE:
        days = age / datetime.timedelta(days=1)
        raise InputError(
            f"nothing is done: this rests on what was seen {seen}, {days:.0f} days ago, and what was idle then may be "
            f"at work now (the most is {MOST_AGE.days} days); {again}"
        )
    if age < -AHEAD:
        raise InputError(f"nothing is done: this was seen {seen}, which is in the future; {again}")


def check_plan(plan: RemedyPlan) -> None:
    """Refuse a plan with a step that could touch what it does not name, or lose data. Raises InputError."""
    for number, measure in enumerate(plan.measures):
        for count, step in enumerate(measure.steps):
            for wrong in _wrong(step, plan.project):
                raise InputError(
                    f"measures[{number}].steps[{count}] ({step.action.value}): {wrong}; write the plan again with "
                    "spotrail audit --plan, and take whole measures out of it instead"
                )


def _wrong(step: Step, project: str) -> Iterator[str]:
    place = place_of(step.resource)
    if place.collection not in _ON[step.action]:
        yield f"{step.resource} is nothing that this can be done to"
    for link in (step.resource, step.done.resource, *(each.resource for each in step.requires)):
        if not of_project(place_of(link), project):
            yield f"{link} is of another project than the plan, which is of {project}"
    if not _identified(step):
        yield f"its conditions no longer say which {place.name} is meant: an id, or the time of its creation"
    if not (step.done.absent or step.done.fields or step.done.lacks):
        yield "it no longer says what must hold afterwards"
    yield from _CHECKS.get(step.action, _nothing)(step, place)


def _identified(step: Step) -> bool:
    own = (each for each in step.requires if each.resource == step.resource)
    return any(each.fields.get(key) for each in own for key in IDENTITY)


def _nothing(step: Step, place: Place) -> Iterator[str]:
    yield from ()


def _throughput(step: Step, place: Place) -> Iterator[str]:
    mibps = step.arguments.get("mibps")
    if not _count(mibps) or not mibps:
        yield f"mibps is {mibps!r}; it must be a whole number above 0"
    elif step.done.fields.get("provisionedThroughput") != str(mibps):
        yield f"it sets {mibps} MiB/s, and its end is another throughput"


def _snapshot(step: Step, place: Place) -> Iterator[str]:
    name = step.arguments.get("snapshot")
    if not isinstance(name, str) or _SNAPSHOT.fullmatch(name) is None:
        yield f"{name!r} is no name of a snapshot"
    elif not _of_this_disk(step.done, step, place) or not step.done.resource.endswith(f"/snapshots/{name}"):
        yield "its end is no longer that the snapshot of this disk is ready"


def _deletion(step: Step, place: Place) -> Iterator[str]:
    if not any(_of_this_disk(each, step, place) for each in step.requires):
        yield "it no longer asks for a snapshot of this disk that is ready"
    own = [each for each in step.requires if each.resource == step.resource]
    if not any({"users", *ATTACHMENTS} <= each.fields.keys() and not each.fields["users"] for each in own):
        yield "it no longer asks that nothing has the disk"


def _of_this_disk(condition: Condition, step: Step, place: Place) -> bool:
    """Whether it is that a snapshot of the disk of the step is ready."""
    ids = {each.fields.get("id") for each in step.requires if each.resource == step.resource}
    fields = condition.fields
    snapshot = place_of(condition.resource).collection is Collection.SNAPSHOTS
    return snapshot and fields.get("status") == "READY" and ids == {fields.get("sourceDiskId")} != {None}


def _detached(step: Step, place: Place) -> Iterator[str]:
    host = step.arguments.get("instance")
    if not isinstance(host, str) or place_of(host).collection is not Collection.INSTANCES:
        yield f"{host!r} is no machine"
    elif not any(each.resource == host and each.fields.get("status") == "TERMINATED" for each in step.requires):
        yield f"it no longer asks that {host} is stopped"


def _resized(step: Step, place: Place) -> Iterator[str]:
    if step.arguments.get("size") != 0 or isinstance(step.arguments["size"], bool):
        yield f"size is {step.arguments.get('size')!r}; a remedy ends a group, with 0"


def _patched(step: Step, place: Place) -> Iterator[str]:
    patch, generation = step.arguments.get("patch"), step.arguments.get("metageneration")
    if not isinstance(patch, Mapping) or not patch or set(patch) - _PATCHED:
        yield f"it may change {' and '.join(sorted(_PATCHED))} of a bucket, and nothing else"
    if not (isinstance(generation, str) and generation.isascii() and generation.isdecimal()):
        yield f"metageneration is {generation!r}; it must be the number that was seen"


def _count(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_CHECKS: Final[Mapping[Action, Callable[[Step, Place], Iterator[str]]]] = {
    Action.SET_THROUGHPUT: _throughput,
    Action.CREATE_SNAPSHOT: _snapshot,
    Action.DELETE_DISK: _deletion,
    Action.DETACH_DISK: _detached,
    Action.RESIZE_GROUP: _resized,
    Action.PATCH_BUCKET: _patched,
}
