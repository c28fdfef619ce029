"""The engine's mind: what has been registered so far, and the answer to the next registration.

It knows nothing of gRPC or processes. Its methods are called from several threads at once.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final, final

from google.protobuf import struct_pb2
from pulumi.runtime.proto import resource_pb2

from infra.engine.callbacks import Transforms
from infra.engine.configuration import Configuration
from infra.engine.errors import EngineRefusal, PreviewError
from infra.engine.graph import Registration, options_of
from infra.engine.invokes import answer_invoke
from infra.engine.position import shown, trace_of
from infra.engine.provider import answer
from infra.engine.urns import Namer, package_of, split_reference
from infra.engine.wire import UNKNOWN_TEXT, Wire, decode, decode_all, from_struct, secret, to_struct
from policies.resources import PROVIDER_PREFIX, STACK_TYPE, ResourceOptions, Value

_SDK_PACKAGE: Final = "pulumi"
"""The package of what the engine itself provides: stack references, dynamic resources, stashes."""
_OWN_PACKAGES: Final = (_SDK_PACKAGE, "pulumi-python")
_GET_RESOURCE: Final = "pulumi:pulumi:getResource"


@final
class Deployment:
    """One preview in progress."""

    def __init__(self, namer: Namer, configuration: Configuration) -> None:
        self.namer = namer
        self.configuration = configuration
        self.transforms = Transforms()
        self.refusals: list[PreviewError] = []
        """What the engine would not take, in the order in which it came."""
        self.log: list[str] = []
        """What the program logged."""
        self._registered: dict[str, Registration] = {}
        self._lock = threading.RLock()

    @property
    def registrations(self) -> tuple[Registration, ...]:
        """All resources so far, those among them that are only read included."""
        with self._lock:
            return tuple(self._registered.values())

    def outputs(self) -> Mapping[str, Value]:
        """The outputs of the stack; empty until the program has ended."""
        stack = self._registered.get(self.namer.stack_urn)
        return decode_all(stack.outputs) if stack else {}

    def register(
        self, request: resource_pb2.RegisterResourceRequest, has: Collection[str] = ()
    ) -> resource_pb2.RegisterResourceResponse:
        """Answer RegisterResource; `has` as in `provider.answer`. Raises PreviewError."""
        if request.type != STACK_TYPE:
            request = self.transforms.resource(request)
        urn = self.namer.urn(request.type, request.name, request.parent)
        with self._lock:
            registration = self._registration(urn, request, has)
            self._add(registration)
            self.transforms.remember(urn, request)
        is_provider = registration.is_provider
        return resource_pb2.RegisterResourceResponse(
            urn=urn, id=UNKNOWN_TEXT if is_provider else "", object=_answered(registration)
        )

    def read(self, request: resource_pb2.ReadResourceRequest) -> resource_pb2.ReadResourceResponse:
        """Answer ReadResource: the resource exists and is not ours, and nothing of it is known but what was asked."""
        urn = self.namer.urn(request.type, request.name, request.parent)
        inputs = from_struct(request.properties)
        trace = trace_of(request.stackTrace)
        with self._lock:
            registration = Registration(
                urn=urn,
                type=request.type,
                custom=True,
                trace=trace,
                inputs=self._checked(urn, inputs),
                outputs={**inputs, "id": request.id},
                options=ResourceOptions(
                    parent=request.parent or None,
                    provider=self._provider(urn, request.type, request.provider, request.version),
                    dependencies=tuple(sorted(request.dependencies)),
                ),
                external=True,
            )
            self._add(registration)
        return resource_pb2.ReadResourceResponse(urn=urn, id=request.id, properties=request.properties)

    def complete(self, request: resource_pb2.RegisterResourceOutputsRequest) -> None:
        """Take the outputs that a component or the stack registers. Raises EngineRefusal."""
        with self._lock:
            found = self._registered.get(request.urn)
            if found is None:
                raise EngineRefusal(f"{request.urn}: outputs of a resource that was never registered")
            outputs = self._checked(request.urn, from_struct(request.outputs))
            self._registered[request.urn] = replace(found, outputs={**found.outputs, **outputs})

    def invoke(self, request: resource_pb2.ResourceInvokeRequest) -> resource_pb2.ResourceInvokeResponse:
        """Answer Invoke. Raises PreviewError."""
        if request.tok == _GET_RESOURCE:
            return _return(self._get_resource(from_struct(request.args)))
        request = self.transforms.invoke(request)
        if any(self._is_pending(urn) for urn in request.dependsOn):
            return resource_pb2.ResourceInvokeResponse(unknown=True)
        with self._lock:
            provider = self._provider(request.tok, request.tok, request.provider, request.version)
            config = self._registered[split_reference(provider)[0]].inputs if provider else {}
        return _return(answer_invoke(request.tok, from_struct(request.args), config))

    def refuse(self, error: PreviewError) -> None:
        """Note that something was refused: the program will end, and this is why."""
        with self._lock:
            self.refusals.append(error)

    def _registration(
        self, urn: str, request: resource_pb2.RegisterResourceRequest, has: Collection[str]
    ) -> Registration:
        if request.remote:
            raise EngineRefusal(f"{urn}: a component of another language; its plugin runs under Pulumi only")
        if request.parent and request.parent not in self._registered:
            raise EngineRefusal(f"{urn}: its parent {request.parent} was never registered")
        provider = self._provider(urn, request.type, request.provider, request.version) if request.custom else ""
        inputs = self._checked(urn, from_struct(request.object))
        if request.type.startswith(PROVIDER_PREFIX) and request.version:
            inputs["version"] = request.version  # as the engine keeps it, so that the next run takes the same plugin
        config = self._registered[split_reference(provider)[0]].inputs if provider else {}
        try:
            known = answer(request.type, urn, inputs, config, has) if request.custom else {}
            options = options_of(request, provider, self.namer, self._options(request.parent))
        except ValueError as error:
            raise EngineRefusal(f"{urn}: {error}") from None
        return Registration(
            urn=urn,
            type=request.type,
            custom=request.custom,
            trace=trace_of(request.stackTrace),
            inputs=inputs,
            outputs=known,
            options=options,
        )

    def _options(self, urn: str) -> ResourceOptions:
        found = self._registered.get(urn)
        return found.options if found else ResourceOptions()

    def _add(self, registration: Registration) -> None:
        before = self._registered.get(registration.urn)
        if before is not None:
            raise EngineRefusal(
                f"{registration.urn}: registered twice{_places(before, registration)}\n"
                "  A logical name must be unique among the resources of one type under one parent."
            )
        self._registered[registration.urn] = registration

    def _provider(self, urn: str, token: str, reference: str, version: str) -> str:
        """The provider reference of a resource or an invoke; the default provider is made when it is first needed."""
        if reference:
            if split_reference(reference)[0] not in self._registered:
                raise EngineRefusal(f"{urn}: its provider {reference} was never registered")
            return reference
        package = package_of(token)
        if package in _OWN_PACKAGES or token.startswith(PROVIDER_PREFIX):
            return ""
        default = self._default_provider(package, version)
        self._registered.setdefault(default.urn, default)
        return f"{default.urn}::{UNKNOWN_TEXT}"

    def _default_provider(self, package: str, version: str) -> Registration:
        token = f"{PROVIDER_PREFIX}{package}"
        suffix = version.replace(".", "_").replace("-", "_").replace("+", "_")
        settings = self.configuration.of(package)
        secrets = {key for key in settings if f"{package}:{key}" in self.configuration.secrets}
        inputs: dict[str, Wire] = {key: secret(text) if key in secrets else text for key, text in settings.items()}
        if version:
            inputs["version"] = version
        return Registration(
            urn=self.namer.urn(token, f"default_{suffix}" if version else "default", ""),
            type=token,
            custom=True,
            inputs=inputs,
            outputs=inputs,
        )

    def _checked(self, urn: str, values: dict[str, Wire]) -> dict[str, Wire]:
        """`values`, once each of them is known to have a place in the graph."""
        for key, value in values.items():
            try:
                decode(value)
            except ValueError as error:
                raise EngineRefusal(f"{urn}: {key}: {error}") from None
        return values

    def _get_resource(self, arguments: Mapping[str, Wire]) -> dict[str, Wire]:
        found = self._registered.get(str(arguments.get("urn")))
        if found is None:
            raise EngineRefusal(f"{arguments.get('urn')}: asked for, but never registered")
        return {"urn": found.urn, "id": "", "state": {**found.outputs}}

    def _is_pending(self, urn: str) -> bool:
        """Whether what an invoke waits for exists only after the apply."""
        found = self._registered.get(urn)
        return found is not None and found.custom and not found.external and not found.is_provider


def _answered(registration: Registration) -> struct_pb2.Struct:
    secrets = set(registration.options.additional_secret_outputs) & registration.outputs.keys()
    marked = {key: secret(registration.outputs[key]) for key in secrets}
    return to_struct({**registration.outputs, **marked})


def _return(values: Mapping[str, Wire]) -> resource_pb2.ResourceInvokeResponse:
    return resource_pb2.ResourceInvokeResponse(**{"return": to_struct(values)})  # type: ignore[arg-type]


def _places(first: Registration, second: Registration) -> str:
    # Which of the two came first is a matter of timing; the lines are not.
    one, other = (shown(trace) for trace in sorted((first.trace, second.trace)))
    return f": at {one}, and again at {other}" if one and other else ""
