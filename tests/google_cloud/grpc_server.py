"""The gRPC half: methods by their paths, over the messages of the packaged clients, which ship no service for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent import futures
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import grpc
from google.cloud import monitoring_v3, tpu_v2
from google.longrunning import operations_pb2  # type: ignore[import-untyped]
from google.pubsub_v1 import types as pubsub

from tests.google_cloud.errors import Refusal
from tests.google_cloud.faults import Call, FaultKind
from tests.google_cloud.monitoring import Monitoring
from tests.google_cloud.publisher import Publisher
from tests.google_cloud.tpu import Tpu
from tests.google_cloud.world import World

_WORKERS: Final = 8
_UNLIMITED: Final = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))

Answer: TypeAlias = Callable[[Any, Call], Any]
Cutter: TypeAlias = Callable[[int, int], None]
"""Ends the connection that comes from a port once so many more bytes of answers have passed."""


@final
@dataclass(frozen=True, kw_only=True)
class _Method:
    id: str
    """As in `Call.method`."""
    request: Any
    """Type of the request."""
    detail: Callable[[Any], str]
    answer: Answer


def _methods(world: World) -> Mapping[str, _Method]:
    monitoring, tpu, publisher = Monitoring(world), Tpu(world), Publisher(world)
    metrics, tpus = "/google.monitoring.v3.MetricService/", "/google.cloud.tpu.v2.Tpu/"

    def of(method: str, request: Any, detail: str, answer: Answer) -> _Method:
        return _Method(id=method, request=request, detail=lambda given: str(getattr(given, detail)), answer=answer)

    return {
        f"{metrics}ListTimeSeries": of(
            "monitoring.timeSeries.list", monitoring_v3.ListTimeSeriesRequest, "filter", monitoring.list_time_series
        ),
        f"{metrics}CreateTimeSeries": of(
            "monitoring.timeSeries.create", monitoring_v3.CreateTimeSeriesRequest, "name", monitoring.create_time_series
        ),
        f"{tpus}ListNodes": of("tpu.nodes.list", tpu_v2.ListNodesRequest, "parent", tpu.list_nodes),
        f"{tpus}GetNode": of("tpu.nodes.get", tpu_v2.GetNodeRequest, "name", tpu.get_node),
        f"{tpus}DeleteNode": of("tpu.nodes.delete", tpu_v2.DeleteNodeRequest, "name", tpu.delete_node),
        f"{tpus}ListQueuedResources": of(
            "tpu.queuedResources.list", tpu_v2.ListQueuedResourcesRequest, "parent", tpu.list_queued_resources
        ),
        f"{tpus}GetQueuedResource": of(
            "tpu.queuedResources.get", tpu_v2.GetQueuedResourceRequest, "name", tpu.get_queued_resource
        ),
        f"{tpus}DeleteQueuedResource": of(
            "tpu.queuedResources.delete", tpu_v2.DeleteQueuedResourceRequest, "name", tpu.delete_queued_resource
        ),
        "/google.longrunning.Operations/GetOperation": of(
            "tpu.operations.get", operations_pb2.GetOperationRequest, "name", tpu.get_operation
        ),
        "/google.pubsub.v1.Publisher/Publish": of(
            "pubsub.topics.publish", pubsub.PublishRequest, "topic", publisher.publish
        ),
    }


@final
class GrpcServer(grpc.GenericRpcHandler):
    """A gRPC server over a world, on a free port of its own behind the front."""

    def __init__(self, world: World, cut: Cutter, stopping: threading.Event) -> None:
        self._world = world
        self._cut = cut
        self._stopping = stopping
        self._methods = _methods(world)
        self._server = grpc.server(futures.ThreadPoolExecutor(_WORKERS), options=_UNLIMITED)
        self._server.add_generic_rpc_handlers((self,))
        self.port = self._server.add_insecure_port("127.0.0.1:0")

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop(grace=None).wait()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        method = self._methods.get(handler_call_details.method)
        if method is None:
            return None

        def called(raw: bytes, context: grpc.ServicerContext) -> bytes:
            return self._called(method, raw, context)

        return grpc.unary_unary_rpc_method_handler(called, request_deserializer=None, response_serializer=None)

    def _called(self, method: _Method, raw: bytes, context: grpc.ServicerContext) -> bytes:
        request = _read(method.request, raw)
        call = self._world.calls.enter(method.id, method.detail(request))
        if (slow := call.struck(FaultKind.SLOW)) is not None:
            self._stopping.wait(slow.seconds)
        try:
            refusals = filter(None, (fault.refusal() for fault in call.faults))
            for refusal in refusals:
                raise refusal
            with self._world.lock:
                self._world.operations.tick(self._world.stamp())
                answer = _written(method.answer(request, call))
        except Refusal as refusal:
            context.abort(refusal.status, refusal.message)
        return self._spoilt(answer, call, context)

    def _spoilt(self, answer: bytes, call: Call, context: grpc.ServicerContext) -> bytes:
        if call.struck(FaultKind.TRUNCATED):
            return answer[: max(1, len(answer) * 2 // 3)] + b"\x0a\xff"
        if call.struck(FaultKind.CUT):
            self._cut(_port(context), len(answer) // 2)
        elif call.struck(FaultKind.LOST):
            self._cut(_port(context), 0)
        return answer


def _port(context: grpc.ServicerContext) -> int:
    return int(context.peer().rsplit(":", 1)[-1])


def _read(kind: Any, raw: bytes) -> Any:
    return kind.deserialize(raw) if hasattr(kind, "deserialize") else kind.FromString(raw)


def _written(answer: Any) -> bytes:
    if isinstance(answer, bytes):
        return answer
    return bytes(type(answer).serialize(answer) if hasattr(type(answer), "serialize") else answer.SerializeToString())
