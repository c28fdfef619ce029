"""From what the SDK registered to the resources of the graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import final

from pulumi.runtime.proto import resource_pb2

from infra.engine.durations import in_seconds
from infra.engine.position import Trace, program_order
from infra.engine.urns import Namer, name_of
from infra.engine.wire import Wire, decode_all
from policies.resources import PROVIDER_PREFIX, SECRET, STACK_TYPE, Resource, ResourceOptions, ResourceSet


@final
@dataclass(frozen=True, kw_only=True)
class Registration:
    """One resource as it was registered, its values still on the wire. Its repr shows no value: one may be secret."""

    urn: str
    """Its URN."""
    type: str
    """Its type token."""
    custom: bool
    """Whether it is something in the cloud, or a provider."""
    trace: Trace = field(default=(), repr=False)
    """Where in the program it was made."""
    inputs: Mapping[str, Wire] = field(default_factory=dict, repr=False)
    """What the program asked for, after all transforms."""
    outputs: Mapping[str, Wire] = field(default_factory=dict, repr=False)
    """What the provider answered, or what a component registered."""
    options: ResourceOptions = field(default=ResourceOptions(), repr=False)
    """What the program said beside the inputs."""
    external: bool = False
    """Whether it was only read: it exists already and belongs to somebody else."""

    @property
    def is_provider(self) -> bool:
        """Whether it is a provider and nothing in the cloud."""
        return self.type.startswith(PROVIDER_PREFIX)


def options_of(
    request: resource_pb2.RegisterResourceRequest, provider: str, namer: Namer, above: ResourceOptions
) -> ResourceOptions:
    """The options of a registration; `provider` is its provider reference, `above` are the options of its parent.

    What it does not say of protection, retention and deletion it inherits, as in Pulumi's engine. Raises ValueError.
    """
    return ResourceOptions(
        parent=request.parent or None,
        provider=provider,
        dependencies=tuple(sorted(request.dependencies)),
        property_dependencies={
            key: tuple(sorted(request.propertyDependencies[key].urns))
            for key in sorted(request.propertyDependencies)
            if request.propertyDependencies[key].urns
        },
        protect=request.protect if request.HasField("protect") else above.protect,
        retain_on_delete=request.retainOnDelete if request.HasField("retainOnDelete") else above.retain_on_delete,
        delete_before_replace=request.deleteBeforeReplace,
        ignore_changes=tuple(request.ignoreChanges),
        replace_on_changes=tuple(request.replaceOnChanges),
        deleted_with=request.deletedWith or above.deleted_with,
        additional_secret_outputs=tuple(sorted(request.additionalSecretOutputs)),
        aliases=tuple(namer.alias(alias, request.type, request.name, request.parent) for alias in request.aliases),
        custom_timeouts=_timeouts(request.customTimeouts),
        import_id=request.importId,
    )


def _timeouts(timeouts: resource_pb2.RegisterResourceRequest.CustomTimeouts) -> dict[str, str]:
    named = {"create": timeouts.create, "update": timeouts.update, "delete": timeouts.delete}
    return {name: _wait(name, text) for name, text in named.items() if text}


def _wait(name: str, text: str) -> str:
    try:
        return in_seconds(text)
    except ValueError as error:
        raise ValueError(f"custom timeout {name}: {error}") from None


def resource_of(registration: Registration) -> Resource:
    """The resource of the graph."""
    outputs = decode_all(registration.outputs)
    secrets = set(registration.options.additional_secret_outputs) & outputs.keys()
    return Resource(
        urn=registration.urn,
        type=registration.type,
        name=name_of(registration.urn),
        custom=registration.custom,
        inputs=decode_all(registration.inputs),
        outputs={**outputs, **dict.fromkeys(secrets, SECRET)},
        options=registration.options,
    )


def in_order(registrations: Iterable[Registration]) -> tuple[Registration, ...]:
    """`registrations` in the order of the program, providers first: the same in every run."""
    by_urn = {registration.urn: registration for registration in registrations}
    root = next((urn for urn, registration in by_urn.items() if registration.type == STACK_TYPE), "")
    order = program_order(
        traces={urn: registration.trace for urn, registration in by_urn.items()},
        # Default providers have no parent; they stand where the children of the stack do.
        parents={
            urn: registration.options.parent or ("" if urn == root else root) for urn, registration in by_urn.items()
        },
        first=sorted(urn for urn, registration in by_urn.items() if registration.is_provider),
    )
    return tuple(by_urn[urn] for urn in order)


def split(registrations: Iterable[Registration]) -> tuple[ResourceSet, tuple[Resource, ...]]:
    """The stack's own resources, and those that it only reads."""
    ours: list[Resource] = []
    external: list[Resource] = []
    for registration in in_order(registrations):
        group = external if registration.external else ours
        group.append(resource_of(registration))
    return ResourceSet(tuple(ours)), tuple(external)
