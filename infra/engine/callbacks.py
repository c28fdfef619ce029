"""Transforms: functions of the program that the engine calls before it looks at a resource or an invoke."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, final

import grpc
from pulumi.runtime.proto import callback_pb2, callback_pb2_grpc, resource_pb2

from infra.engine.errors import ProgramFailed

CHANNEL_OPTIONS: Final = (("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1))
"""Loopback never goes through a proxy; a message may be of any size."""
_PREAMBLE: Final = re.compile(r"Invoke callback \S+ error: ")

# Names that an option has in a registration, and in what a transform is given.
_SINGLE: Final = {
    "deletedWith": "deleted_with",
    "importId": "import",
    "pluginDownloadURL": "plugin_download_url",
    "provider": "provider",
    "version": "version",
}
_PRESENT: Final = {"protect": "protect", "retainOnDelete": "retain_on_delete"}
_REPEATED: Final = {
    "additionalSecretOutputs": "additional_secret_outputs",
    "aliases": "aliases",
    "dependencies": "depends_on",
    "hideDiffs": "hide_diff",
    "ignoreChanges": "ignore_changes",
    "replaceOnChanges": "replace_on_changes",
    "replace_with": "replace_with",
}


@final
class Transforms:
    """The transforms of one program: each resource's own run first, then its parents', then those of the stack."""

    def __init__(self) -> None:
        self._of_stack: list[callback_pb2.Callback] = []
        self._of_invokes: list[callback_pb2.Callback] = []
        self._of_resource: dict[str, tuple[str, tuple[callback_pb2.Callback, ...]]] = {}

    def add_to_stack(self, callback: callback_pb2.Callback) -> None:
        """From now on run `callback` for every resource."""
        self._of_stack.append(callback)

    def add_to_invokes(self, callback: callback_pb2.Callback) -> None:
        """From now on run `callback` for every invoke."""
        self._of_invokes.append(callback)

    def remember(self, urn: str, request: resource_pb2.RegisterResourceRequest) -> None:
        """Keep the transforms of a resource for its children."""
        self._of_resource[urn] = (request.parent, tuple(request.transforms))

    def resource(self, request: resource_pb2.RegisterResourceRequest) -> resource_pb2.RegisterResourceRequest:
        """`request` as the transforms leave it. Raises ProgramFailed where one of them breaks."""
        changed = resource_pb2.RegisterResourceRequest()
        changed.CopyFrom(request)
        for callback in (*request.transforms, *self._inherited(request.parent), *self._of_stack):
            asked = resource_pb2.TransformRequest(
                type=changed.type,
                name=changed.name,
                custom=changed.custom,
                parent=changed.parent,
                properties=changed.object,
                options=_options(changed),
            )
            answer = resource_pb2.TransformResponse.FromString(self._call(callback, asked.SerializeToString()))
            changed.object.CopyFrom(answer.properties)
            if answer.HasField("options"):
                _apply(answer.options, changed)
        return changed

    def invoke(self, request: resource_pb2.ResourceInvokeRequest) -> resource_pb2.ResourceInvokeRequest:
        """`request` as the transforms leave it. Raises ProgramFailed where one of them breaks."""
        changed = resource_pb2.ResourceInvokeRequest()
        changed.CopyFrom(request)
        for callback in self._of_invokes:
            asked = resource_pb2.TransformInvokeRequest(
                token=changed.tok,
                args=changed.args,
                options=resource_pb2.TransformInvokeOptions(provider=changed.provider, version=changed.version),
            )
            answer = resource_pb2.TransformInvokeResponse.FromString(self._call(callback, asked.SerializeToString()))
            changed.args.CopyFrom(answer.args)
            if answer.HasField("options"):
                changed.provider, changed.version = answer.options.provider, answer.options.version
        return changed

    def _inherited(self, parent: str) -> Iterator[callback_pb2.Callback]:
        while parent in self._of_resource:
            parent, own = self._of_resource[parent]
            yield from own

    def _call(self, callback: callback_pb2.Callback, payload: bytes) -> bytes:
        question = callback_pb2.CallbackInvokeRequest(token=callback.token, request=payload)
        try:
            # A connection a call: one that is open when the program ends makes gRPC complain on our stderr.
            with grpc.insecure_channel(callback.target, options=CHANNEL_OPTIONS) as channel:
                response: bytes = callback_pb2_grpc.CallbacksStub(channel).Invoke(question).response
        except grpc.RpcError as error:
            details = str(getattr(error, "details", error.__str__)())
            raise ProgramFailed(f"a transform failed: {_PREAMBLE.sub('', details)}") from None
        return response


def _options(request: resource_pb2.RegisterResourceRequest) -> resource_pb2.TransformResourceOptions:
    options = resource_pb2.TransformResourceOptions(providers=dict(request.providers))
    for ours, theirs in _SINGLE.items():
        setattr(options, theirs, getattr(request, ours))
    for ours, theirs in _PRESENT.items():
        if request.HasField(ours):  # type: ignore[arg-type]
            setattr(options, theirs, getattr(request, ours))
    for ours, theirs in _REPEATED.items():
        getattr(options, theirs).extend(getattr(request, ours))
    if request.deleteBeforeReplaceDefined:
        options.delete_before_replace = request.deleteBeforeReplace
    if request.HasField("customTimeouts"):
        options.custom_timeouts.CopyFrom(request.customTimeouts)
    if request.HasField("hooks"):
        options.hooks.CopyFrom(request.hooks)
    return options


def _apply(options: resource_pb2.TransformResourceOptions, request: resource_pb2.RegisterResourceRequest) -> None:
    for ours, theirs in _SINGLE.items():
        setattr(request, ours, getattr(options, theirs))
    for ours, theirs in _PRESENT.items():
        request.ClearField(ours)  # type: ignore[arg-type]
        if options.HasField(theirs):  # type: ignore[arg-type]
            setattr(request, ours, getattr(options, theirs))
    for ours, theirs in _REPEATED.items():
        request.ClearField(ours)  # type: ignore[arg-type]
        getattr(request, ours).extend(getattr(options, theirs))
    request.deleteBeforeReplaceDefined = options.HasField("delete_before_replace")
    request.deleteBeforeReplace = options.delete_before_replace
    request.ClearField("customTimeouts")
    if options.HasField("custom_timeouts"):
        request.customTimeouts.CopyFrom(options.custom_timeouts)
    request.providers.clear()
    request.providers.update(options.providers)
