"""Compute: operations. A change is checked, begun at once, and ended when its operation is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

from policies.audit.record import Part
from tests.google_cloud.compute_lists import PROJECT, link, of_project, path_of
from tests.google_cloud.errors import Refusal
from tests.google_cloud.faults import FaultKind
from tests.google_cloud.http_server import Answer, Request, Route, route
from tests.google_cloud.operations import FAILED, FAILED_CODE, Operation, nothing
from tests.google_cloud.shapes import Item, relative, scope
from tests.google_cloud.world import World

IN_USE: Final = "resourceInUseByAnotherResource"


class Effect(NamedTuple):
    """What a change does when its operation ends, and how what was seen at once is taken back if that fails."""

    finish: Callable[[], None]
    undo: Callable[[], None] = nothing


Begin: TypeAlias = Callable[[World, Request, Item], Effect]
"""Checks a change of a resource and begins it. Raises Refusal."""


def routes() -> tuple[Route, ...]:
    """Polls."""
    found = []
    for place in ("zones/{zone}", "regions/{region}", "global"):
        path = f"{PROJECT}/{place}/operations/{{operation}}"
        found.append(route("compute.operations.get", "GET", path, _operation))
        found.append(route("compute.operations.wait", "POST", f"{path}/wait", _operation))
    return tuple(found)


def change(kind: str, part: Part, begin: Begin) -> Callable[[World, Request], Answer]:
    """The answer to a call that changes one resource; the same request id gets the same operation."""

    def answer(world: World, request: Request) -> Answer:
        of_project(world, request)
        path = path_of(world, request)
        if (earlier := asked_before(world, request, kind, path)) is not None:
            return told(world, earlier)
        item = world.get(part, path)
        return begun(world, request, kind, item, begin(world, request, item))

    return answer


def begun(world: World, request: Request, kind: str, item: Item, effect: Effect) -> Answer:
    """Begin its operation."""
    operation = world.operations.start(
        scope=scope(item),
        kind=kind,
        target=relative(item["selfLink"]),
        target_id=item["id"],
        now=world.stamp(),
        finish=effect.finish,
        undo=effect.undo,
        request_id=request.query.get("requestId", ""),
        error=FAILED if request.call.struck(FaultKind.FAILED_OPERATION) else "",
    )
    return told(world, operation)


def asked_before(world: World, request: Request, kind: str, path: str) -> Operation | None:
    """The operation of the first call with that request id, if this is not it."""
    return world.operations.asked_before(kind, path, request.query.get("requestId", ""))


def _operation(world: World, request: Request) -> Answer:
    of_project(world, request)
    operation = world.operations.get(request.parts["operation"])
    place = "/".join(request.path.split("/")[5 : -2 if not request.path.endswith("/wait") else -3])
    if operation is None or operation.scope != place:
        name = request.parts["operation"]
        raise Refusal(
            404, "notFound", f"The resource 'projects/{world.project}/{place}/operations/{name}' was not found"
        )
    return told(world, operation)


def told(world: World, operation: Operation) -> dict[str, Any]:
    """An operation as Compute tells it."""
    base = link(f"projects/{world.project}/{operation.scope}")
    answer: dict[str, Any] = {
        "kind": "compute#operation",
        "id": operation.name.rpartition("-")[2],
        "name": operation.name,
        "operationType": operation.kind,
        "targetLink": link(operation.target),
        "targetId": operation.target_id,
        "status": "DONE" if operation.done else "RUNNING",
        "progress": 100 if operation.done else 0,
        "insertTime": operation.started,
        "startTime": operation.started,
        "selfLink": f"{base}/operations/{operation.name}",
    }
    if operation.scope != "global":
        answer[operation.scope.partition("s/")[0]] = base
    if operation.request_id:
        answer["clientOperationId"] = operation.request_id
    if operation.done:
        answer["endTime"] = operation.ended
    if operation.done and operation.error:
        answer["error"] = {"errors": [{"code": FAILED_CODE, "message": operation.error}]}
        answer |= {"httpErrorStatusCode": 500, "httpErrorMessage": "INTERNAL SERVER ERROR"}
    return answer


def ready(item: Item) -> None:
    """Refuse what is coming or going. Raises Refusal (400)."""
    if item.get("status") in ("DELETING", "CREATING"):
        raise not_ready(item)


def not_ready(item: Item) -> Refusal:
    return Refusal(400, "resourceNotReady", f"The resource '{relative(item['selfLink'])}' is not ready")
