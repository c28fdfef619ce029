"""The engine's side of Pulumi's provider protocol: the stand-in as a process, asked over gRPC as the engine asks it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import grpc
from google.rpc import status_pb2  # type: ignore[import-untyped]
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from infra.engine.wire import Wire, from_struct, to_struct

EXECUTABLE: Final = Path(__file__).parents[1] / "pulumi-resource-gcp"
PROJECT: Final = "acme-tpu-dev"


@final
@dataclass(frozen=True, kw_only=True)
class Made:
    """A resource in the state."""

    token: str
    name: str
    id: str
    inputs: dict[str, Wire]
    outputs: dict[str, Wire]

    @property
    def urn(self) -> str:
        return urn_of(self.token, self.name)


@final
class Client:
    """One run of the provider, configured."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._stub = provider_pb2_grpc.ResourceProviderStub(channel)
        place = {"project": PROJECT, "zone": "us-central1-b"}
        self._stub.Configure(provider_pb2.ConfigureRequest(args=to_struct(place), acceptSecrets=True))

    def check(self, token: str, inputs: Mapping[str, Wire], name: str = "it", seed: bytes = b"seed") -> Any:
        """CheckResponse of new inputs."""
        return self._stub.Check(
            provider_pb2.CheckRequest(urn=urn_of(token, name), news=to_struct(inputs), randomSeed=seed)
        )

    def checked(self, token: str, inputs: Mapping[str, Wire], name: str = "it") -> dict[str, Wire]:
        """The inputs as Check leaves them; nothing may be wrong with them."""
        answer = self.check(token, inputs, name)
        assert not answer.failures, answer.failures
        return from_struct(answer.inputs)

    def failures(self, token: str, inputs: Mapping[str, Wire]) -> list[str]:
        """What is wrong with inputs."""
        return [failure.reason for failure in self.check(token, inputs).failures]

    def foreseen(self, token: str, inputs: Mapping[str, Wire], name: str = "it") -> dict[str, Wire]:
        """Outputs of a preview."""
        request = provider_pb2.CreateRequest(
            urn=urn_of(token, name), properties=to_struct(self.checked(token, inputs, name)), preview=True
        )
        answer = self._stub.Create(request)
        assert answer.id == ""
        return from_struct(answer.properties)

    def create(self, token: str, inputs: Mapping[str, Wire], name: str = "it") -> Made:
        """Check and create. Raises grpc.RpcError."""
        checked = self.checked(token, inputs, name)
        request = provider_pb2.CreateRequest(urn=urn_of(token, name), properties=to_struct(checked))
        answer = self._stub.Create(request)
        outputs = from_struct(answer.properties)
        return Made(token=token, name=name, id=answer.id, inputs=checked, outputs=outputs)

    def diff(self, made: Made, inputs: Mapping[str, Wire]) -> Any:
        """DiffResponse for new inputs, of which None takes one away."""
        return self._stub.Diff(
            provider_pb2.DiffRequest(
                urn=made.urn,
                id=made.id,
                olds=to_struct(made.outputs),
                old_inputs=to_struct(made.inputs),
                news=to_struct(_merged(made.inputs, inputs)),
            )
        )

    def update(self, made: Made, inputs: Mapping[str, Wire]) -> Made:
        """Change it in place. Raises grpc.RpcError."""
        news = _merged(made.inputs, inputs)
        answer = self._stub.Update(
            provider_pb2.UpdateRequest(
                urn=made.urn,
                id=made.id,
                olds=to_struct(made.outputs),
                old_inputs=to_struct(made.inputs),
                news=to_struct(news),
            )
        )
        return Made(token=made.token, name=made.name, id=made.id, inputs=news, outputs=from_struct(answer.properties))

    def refresh(self, made: Made) -> Made | None:
        """As it is now; None where it is gone."""
        answer = self._stub.Read(
            provider_pb2.ReadRequest(
                urn=made.urn, id=made.id, properties=to_struct(made.outputs), inputs=to_struct(made.inputs)
            )
        )
        inputs, outputs = from_struct(answer.inputs), from_struct(answer.properties)
        if not answer.id:
            return None
        return Made(token=made.token, name=made.name, id=answer.id, inputs=inputs, outputs=outputs)

    def adopt(self, token: str, id_: str) -> Made | None:
        """Import by the id alone."""
        return self.refresh(Made(token=token, name="it", id=id_, inputs={}, outputs={}))

    def delete(self, made: Made) -> None:
        """Raises grpc.RpcError."""
        request = provider_pb2.DeleteRequest(urn=made.urn, id=made.id, properties=to_struct(made.outputs))
        self._stub.Delete(request)

    def invoke(self, token: str, arguments: Mapping[str, Wire]) -> dict[str, Wire]:
        """The answer of a function."""
        answer = self._stub.Invoke(provider_pb2.InvokeRequest(tok=token, args=to_struct(arguments)))
        return from_struct(getattr(answer, "return"))


@contextlib.contextmanager
def running(world: str, faults: Sequence[Mapping[str, Any]] = ()) -> Iterator[Client]:
    """The provider before the loopback world at the address `world`."""
    paths = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": paths, "SPOTRAIL_WORLD": world, "SPOTRAIL_FAULTS": json.dumps(list(faults))}
    with subprocess.Popen([EXECUTABLE, "127.0.0.1:1"], stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            with grpc.insecure_channel(f"127.0.0.1:{int(process.stdout.readline())}") as channel:
                yield Client(channel)
        finally:
            process.terminate()


def half_made(error: Any) -> Any:
    """What the engine keeps of a resource whose creation failed, from the grpc.RpcError: ErrorResourceInitFailed."""
    trailers: dict[str, bytes] = {str(key): value for key, value in error.trailing_metadata()}
    packed = trailers["grpc-status-details-bin"]
    detail = provider_pb2.ErrorResourceInitFailed()
    assert status_pb2.Status.FromString(packed).details[0].Unpack(detail)
    return detail


def urn_of(token: str, name: str) -> str:
    """A URN below a component, as those of the program are."""
    return f"urn:pulumi:dev::spotrail::spotrail:infra:TpuSlice${token}::{name}"


def _merged(old: Mapping[str, Wire], new: Mapping[str, Wire]) -> dict[str, Wire]:
    return {key: value for key, value in {**old, **new}.items() if value is not None}
