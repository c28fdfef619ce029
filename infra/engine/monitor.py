"""The two gRPC services that a Pulumi program talks to, on a loopback port, in front of a `Deployment`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from typing import Final, TypeVar, final

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import (
    callback_pb2,
    engine_pb2,
    engine_pb2_grpc,
    provider_pb2,
    resource_pb2,
    resource_pb2_grpc,
)

from infra.engine.channel import INPUTS_KEY
from infra.engine.deployment import Deployment
from infra.engine.errors import EngineRefusal, PreviewError

Answer = TypeVar("Answer")

FEATURES: Final = (
    resource_pb2.RESOURCE_MONITOR_FEATURE_SECRETS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_REFERENCES,
    resource_pb2.RESOURCE_MONITOR_FEATURE_OUTPUT_VALUES,
    resource_pb2.RESOURCE_MONITOR_FEATURE_ALIAS_SPECS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACEMENT_TRIGGER,
    resource_pb2.RESOURCE_MONITOR_FEATURE_DELETED_WITH,
    resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACE_WITH,
    resource_pb2.RESOURCE_MONITOR_FEATURE_TRANSFORMS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_INVOKE_TRANSFORMS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_PARAMETERIZATION,
    resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_HOOKS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_ERROR_HOOKS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_INVOKE_DEPENDS_ON,
    resource_pb2.RESOURCE_MONITOR_FEATURE_STATE_MIGRATIONS,
)
"""What the SDK may send. Hooks and state migrations belong to an apply: they are taken and never run."""

_THREADS: Final = 32
"""A transform holds one while it runs and may ask the engine itself."""
_SERVER_OPTIONS: Final = (("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", -1))
_SEVERITIES: Final = {engine_pb2.INFO: "info", engine_pb2.WARNING: "warning", engine_pb2.ERROR: "error"}


@contextmanager
def served(deployment: Deployment) -> Iterator[str]:
    """Serve `deployment` on a free port of 127.0.0.1 and yield its address."""
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=_THREADS), options=_SERVER_OPTIONS)
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(_Monitor(deployment), server)
    engine_pb2_grpc.add_EngineServicer_to_server(_Engine(deployment), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(grace=0).wait()


@final
class _Monitor(resource_pb2_grpc.ResourceMonitorServicer):
    """Registers resources. A refusal is kept by the deployment and ends the program's call."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment

    def GetDeploymentInfo(  # noqa: N802
        self, request: empty_pb2.Empty, context: grpc.ServicerContext
    ) -> resource_pb2.DeploymentInfo:
        namer, configuration = self._deployment.namer, self._deployment.configuration
        return resource_pb2.DeploymentInfo(
            project=namer.project,
            stack=namer.stack,
            config=configuration.values,
            configSecretKeys=sorted(configuration.secrets),
            dryRun=True,
            supportedFeatures=FEATURES,
        )

    def RegisterResource(  # noqa: N802
        self, request: resource_pb2.RegisterResourceRequest, context: grpc.ServicerContext
    ) -> resource_pb2.RegisterResourceResponse:
        told = dict(context.invocation_metadata()).get(INPUTS_KEY, "")
        return self._answer(context, lambda: self._deployment.register(request, str(told).split()))

    def RegisterResourceOutputs(  # noqa: N802
        self, request: resource_pb2.RegisterResourceOutputsRequest, context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        return self._take(context, lambda: self._deployment.complete(request))

    def ReadResource(  # noqa: N802
        self, request: resource_pb2.ReadResourceRequest, context: grpc.ServicerContext
    ) -> resource_pb2.ReadResourceResponse:
        return self._answer(context, lambda: self._deployment.read(request))

    def ExistsResource(  # noqa: N802
        self, request: resource_pb2.ExistsResourceRequest, context: grpc.ServicerContext
    ) -> resource_pb2.ExistsResourceResponse:
        return resource_pb2.ExistsResourceResponse(unknown=True)

    def Invoke(  # noqa: N802
        self, request: resource_pb2.ResourceInvokeRequest, context: grpc.ServicerContext
    ) -> resource_pb2.ResourceInvokeResponse:
        return self._answer(context, lambda: self._deployment.invoke(request))

    def Call(  # noqa: N802
        self, request: resource_pb2.ResourceCallRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CallResponse:
        def refuse() -> provider_pb2.CallResponse:
            raise EngineRefusal(f"{request.tok}: a method of a provider, which an offline preview does not have")

        return self._answer(context, refuse)

    def RegisterStackTransform(  # noqa: N802
        self, request: callback_pb2.Callback, context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        return self._take(context, lambda: self._deployment.transforms.add_to_stack(request))

    def RegisterStackInvokeTransform(  # noqa: N802
        self, request: callback_pb2.Callback, context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        return self._take(context, lambda: self._deployment.transforms.add_to_invokes(request))

    def RegisterResourceHook(  # noqa: N802
        self, request: resource_pb2.RegisterResourceHookRequest, context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    def RegisterErrorHook(  # noqa: N802
        self, request: resource_pb2.RegisterErrorHookRequest, context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    def RegisterPackage(  # noqa: N802
        self, request: resource_pb2.RegisterPackageRequest, context: grpc.ServicerContext
    ) -> resource_pb2.RegisterPackageResponse:
        return resource_pb2.RegisterPackageResponse(ref=f"{request.name}@{request.version}")

    def SignalAndWaitForShutdown(  # noqa: N802
        self, request: empty_pb2.Empty, context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    def _take(self, context: grpc.ServicerContext, act: Callable[[], None]) -> empty_pb2.Empty:
        self._answer(context, act)
        return empty_pb2.Empty()

    def _answer(self, context: grpc.ServicerContext, ask: Callable[[], Answer]) -> Answer:
        try:
            return ask()
        except PreviewError as error:
            self._deployment.refuse(error)
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))


@final
class _Engine(engine_pb2_grpc.EngineServicer):
    """Takes what the program logs."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._root = ""

    def Log(self, request: engine_pb2.LogRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:  # noqa: N802
        if request.severity in _SEVERITIES:
            self._deployment.log.append(f"{_SEVERITIES[request.severity]}: {request.message}")
        return empty_pb2.Empty()

    def GetRootResource(  # noqa: N802
        self, request: engine_pb2.GetRootResourceRequest, context: grpc.ServicerContext
    ) -> engine_pb2.GetRootResourceResponse:
        return engine_pb2.GetRootResourceResponse(urn=self._root)

    def SetRootResource(  # noqa: N802
        self, request: engine_pb2.SetRootResourceRequest, context: grpc.ServicerContext
    ) -> engine_pb2.SetRootResourceResponse:
        self._root = request.urn
        return engine_pb2.SetRootResourceResponse()

    def StartDebugging(  # noqa: N802
        self, request: engine_pb2.StartDebuggingRequest, context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    def RequirePulumiVersion(  # noqa: N802
        self, request: engine_pb2.RequirePulumiVersionRequest, context: grpc.ServicerContext
    ) -> engine_pb2.RequirePulumiVersionResponse:
        return engine_pb2.RequirePulumiVersionResponse()
