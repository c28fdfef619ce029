"""Pulumi's provider protocol over gRPC, with what the SDK's own server leaves out: errors as a provider tells them.

The SDK turns every exception into one with a traceback, and knows nothing of a resource that exists although its
creation failed. Here a refusal of Google reaches the user as one line, and a half-made resource reaches the state.
Source: pulumi/proto/provider.proto, ErrorResourceInitFailed
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import grpc
from pulumi.provider.experimental.provider import Provider
from pulumi.provider.experimental.server import ProviderServicer
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from infra.engine.wire import Wire, to_struct
from tests.engine.provider.values import OLD_INPUTS

VERSION: Final = "10.2.0"
"""That of the SDK whose provider this stands for."""

_LOOK_SECONDS: Final = 1.0
"""How often the provider looks whether its engine is still there."""


class ProviderError(Exception):
    """What a provider says when it fails."""


class HalfMadeError(ProviderError):
    """A failure after which the resource exists: it is kept in the state, with the reason."""

    def __init__(self, reason: str, *, id_: str, outputs: Mapping[str, Wire], inputs: Mapping[str, Wire]) -> None:
        super().__init__(reason)
        self.id = id_
        self.outputs = outputs
        self.inputs = inputs


class Servicer(ProviderServicer):
    """The SDK's server, with refusals in one line."""

    # ruff: noqa: N802 - the names are those of the protocol
    async def Diff(self, request: Any, context: Any) -> Any:
        request.olds.update({OLD_INPUTS: request.old_inputs})
        return await _told(super().Diff, request, context)

    async def Check(self, request: Any, context: Any) -> Any:
        return await _told(super().Check, request, context)

    async def Invoke(self, request: Any, context: Any) -> Any:
        return await _told(super().Invoke, request, context)

    async def Create(self, request: Any, context: Any) -> Any:
        return await _told(super().Create, request, context)

    async def Read(self, request: Any, context: Any) -> Any:
        return await _told(super().Read, request, context)

    async def Update(self, request: Any, context: Any) -> Any:
        request.olds.update({OLD_INPUTS: request.old_inputs})
        return await _told(super().Update, request, context)

    async def Delete(self, request: Any, context: Any) -> Any:
        return await _told(super().Delete, request, context)


async def serve(provider: Provider, arguments: list[str]) -> None:
    """Serve on a free port, which is printed, until the process is ended or its parent is gone."""
    engine_process = os.getppid()
    server = grpc.aio.server(options=_GRPC_CHANNEL_OPTIONS)
    engine = next((text for text in arguments if not text.startswith("-")), "")
    servicer = Servicer(arguments, VERSION, provider, engine_address=engine)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    while os.getppid() == engine_process:
        await asyncio.sleep(_LOOK_SECONDS)
    # An engine that was killed ends nobody; and whoever hangs here hangs for good.
    os._exit(1)


async def _told(method: Callable[[Any, Any], Awaitable[Any]], request: Any, context: Any) -> Any:
    try:
        return await method(request, context)
    except Exception as error:
        # The SDK wraps whatever was raised in a bare Exception.
        cause = error.__context__
        if isinstance(cause, HalfMadeError):
            context.set_trailing_metadata((("grpc-status-details-bin", _half_made(cause)),))
        if isinstance(cause, ProviderError):
            await context.abort(grpc.StatusCode.UNKNOWN, str(cause))
        raise


def _half_made(error: HalfMadeError) -> bytes:
    detail = provider_pb2.ErrorResourceInitFailed(
        id=error.id, properties=to_struct(error.outputs), inputs=to_struct(error.inputs), reasons=[str(error)]
    )
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error))
    status.details.add().Pack(detail)
    return bytes(status.SerializeToString())
