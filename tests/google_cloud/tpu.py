"""Cloud TPU v2: nodes and queued resources, listed over all locations, and deleted by long-running operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from google.cloud import tpu_v2
from google.longrunning import operations_pb2  # type: ignore[import-untyped]
from google.protobuf import empty_pb2, json_format
from google.rpc import code_pb2  # type: ignore[import-untyped]

from policies.audit.record import Part
from tests.google_cloud.errors import Refusal, not_found
from tests.google_cloud.faults import Call, FaultKind
from tests.google_cloud.operations import FAILED, Operation
from tests.google_cloud.shapes import Item, last
from tests.google_cloud.world import World

_MOST: int = 1000


@final
class Tpu:
    """The TPU service of a world, with the operations service beside it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def list_nodes(self, request: Any, call: Call) -> Any:
        """Of one location, or of all (`-`)."""
        found, token = self._page(Part.NODES, request, call)
        nodes = [_node(item) for item in found]
        return tpu_v2.ListNodesResponse(nodes=nodes, next_page_token=token, unreachable=_away(call))

    def list_queued_resources(self, request: Any, call: Call) -> Any:
        """Of one location, or of all (`-`)."""
        found, token = self._page(Part.QUEUED_RESOURCES, request, call)
        return tpu_v2.ListQueuedResourcesResponse(
            queued_resources=[_queued(item) for item in found], next_page_token=token, unreachable=_away(call)
        )

    def get_node(self, request: Any, call: Call) -> Any:
        return _node(self._world.get(Part.NODES, request.name))

    def get_queued_resource(self, request: Any, call: Call) -> Any:
        return _queued(self._world.get(Part.QUEUED_RESOURCES, request.name))

    def delete_node(self, request: Any, call: Call) -> Any:
        """DELETING at once, gone when the operation is done; what it was queued for is SUSPENDED then."""
        item = self._world.get(Part.NODES, request.name)
        before = item.get("state", "STATE_UNSPECIFIED")
        if before == "DELETING":
            raise Refusal(400, "failedPrecondition", f"Node {request.name} is being deleted.")
        item["state"] = "DELETING"

        def finish() -> None:
            self._world.inventory[Part.NODES].pop(request.name, None)
            queued = self._world.inventory[Part.QUEUED_RESOURCES].get(item.get("queuedResource", ""))
            if queued is not None and queued["state"]["state"] == "ACTIVE":
                queued["state"] = {"state": "SUSPENDED"}

        def undo() -> None:
            item["state"] = before

        return self._start(request.name, call, finish, undo, "")

    def delete_queued_resource(self, request: Any, call: Call) -> Any:
        """Refused while it has nodes, unless forced or over: then its nodes go too."""
        name = request.name
        if (earlier := self._world.operations.asked_before("delete", name, request.request_id)) is not None:
            return _operation(earlier)
        item = self._world.get(Part.QUEUED_RESOURCES, name)
        before = dict(item.get("state", {}))
        nodes = [path for path in _node_paths(name, item) if path in self._world.inventory[Part.NODES]]
        if nodes and before.get("state") not in ("ACCEPTED", "FAILED", "SUSPENDED") and not request.force:
            raise Refusal(400, "failedPrecondition", f"Queued resource {name} has nodes; delete them, or use force.")
        item["state"] = {"state": "DELETING"}

        def finish() -> None:
            self._world.inventory[Part.QUEUED_RESOURCES].pop(name, None)
            for path in nodes:
                self._world.inventory[Part.NODES].pop(path, None)

        def undo() -> None:
            item["state"] = before

        return self._start(name, call, finish, undo, request.request_id)

    def get_operation(self, request: Any, call: Call) -> Any:
        """A poll."""
        found = self._world.operations.get(request.name)
        if found is None:
            raise not_found(request.name)
        return _operation(found)

    def _page(self, part: Part, request: Any, call: Call) -> tuple[Sequence[Item], str]:
        location = last(request.parent)
        away = call.unreachable()
        items = [item for item in self._world.items(part) if item["name"].split("/")[3] not in away]
        items = [item for item in items if location in ("-", item["name"].split("/")[3])]
        start = int(request.page_token or 0)
        end = start + min(request.page_size or _MOST, _MOST)
        token = str(end) if end < len(items) else ""
        return items[start:end], str(start) if call.struck(FaultKind.LOOP) else token

    def _start(self, name: str, call: Call, finish: Any, undo: Any, request_id: str) -> operations_pb2.Operation:
        location = "/".join(name.split("/")[:4])
        operation = self._world.operations.start(
            scope=location,
            kind="delete",
            target=name,
            now=self._world.stamp(),
            finish=finish,
            undo=undo,
            request_id=request_id,
            prefix=f"{location}/operations/",
            error=FAILED if call.struck(FaultKind.FAILED_OPERATION) else "",
        )
        return _operation(operation)


def _away(call: Call) -> list[str]:
    return sorted(call.unreachable())


def _node_paths(name: str, item: Item) -> list[str]:
    base = "/".join(name.split("/")[:4])
    return [f"{base}/nodes/{spec['nodeId']}" for spec in item.get("tpu", {}).get("nodeSpec", ()) if "nodeId" in spec]


def _node(item: Item) -> Any:
    return tpu_v2.Node(json_format.ParseDict(item, tpu_v2.Node.pb(tpu_v2.Node())))


def _queued(item: Item) -> Any:
    return tpu_v2.QueuedResource(json_format.ParseDict(item, tpu_v2.QueuedResource.pb(tpu_v2.QueuedResource())))


def _operation(operation: Operation) -> operations_pb2.Operation:
    answer = operations_pb2.Operation(name=operation.name, done=operation.done)
    metadata = tpu_v2.OperationMetadata.pb(tpu_v2.OperationMetadata())
    metadata.create_time.FromJsonString(operation.started)
    metadata.target, metadata.verb, metadata.api_version = operation.target, operation.kind, "v2"
    answer.metadata.Pack(metadata)
    if operation.done and operation.error:
        answer.error.code, answer.error.message = code_pb2.INTERNAL, operation.error
    elif operation.done:
        answer.response.Pack(empty_pb2.Empty())
    return answer
