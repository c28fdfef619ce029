"""The stand-in for Google's provider: what Pulumi's engine asks of it, answered from a loopback Google Cloud.

It proves what the program asks for and what becomes of it, not Google's API: the rules are those of `kinds`,
`checking` and the loopback. A preview asks nothing of the cloud.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, final

from pulumi.provider.experimental import provider as sdk

from infra.engine.errors import EngineRefusal
from infra.engine.invokes import answer_invoke
from infra.engine.wire import UNKNOWN_TEXT, Wire
from tests.engine.provider import deeds, differences
from tests.engine.provider.checking import PLACE, failures_of, filled, placed
from tests.engine.provider.cloud import Cloud
from tests.engine.provider.faults import Faults
from tests.engine.provider.serving import ProviderError
from tests.engine.provider.states import input_names, output_names
from tests.engine.provider.values import DEFAULTS, OLD_INPUTS, mapping, plain, properties, text


@final
class StandIn(sdk.Provider):
    """One configuration of the provider."""

    def __init__(self, *, cloud: Cloud, faults: Faults) -> None:
        self._cloud = cloud
        self._faults = faults
        self._config: dict[str, str] = {}

    async def configure(self, request: sdk.ConfigureRequest) -> sdk.ConfigureResponse:
        """Project, zone and region are what resources take where they name none."""
        given = plain(request.args)
        self._config = {key: text(given, key) for key in PLACE if text(given, key)}
        # Outputs are not accepted: the SDK cannot read one that is not known yet.
        return sdk.ConfigureResponse(accept_secrets=True, supports_preview=True, accept_resources=True)

    async def check(self, request: sdk.CheckRequest) -> sdk.CheckResponse:
        """Inputs with names and defaults, or what is wrong with them."""
        deeds.strike(self._faults.struck("check", _token(request), request.name), _token(request), {})
        given = plain(request.new_inputs)
        try:
            found = filled(_token(request), request.name, request.random_seed, given, plain(request.old_inputs))
        except ValueError as error:
            return sdk.CheckResponse(failures=[sdk.CheckFailure("", str(error))])
        failures = [sdk.CheckFailure("", said) for said in failures_of(_token(request), found)]
        return sdk.CheckResponse(inputs=properties(found), failures=failures)

    async def diff(self, request: sdk.DiffRequest) -> sdk.DiffResponse:
        """What changes, and how."""
        state, new = plain(request.old_state), plain(request.new_inputs)
        old = mapping(state.get(OLD_INPUTS))
        place: dict[str, Wire] = {key: state[key] for key in PLACE if key in state}
        full = self._placed(_token(request), new)
        moved = {key: value for key, value in full.items() if key in new or key in place}
        return differences.answer(_token(request), {**place, **old}, moved)

    async def create(self, request: sdk.CreateRequest) -> sdk.CreateResponse:
        """In a preview only what the inputs say is known."""
        inputs = self._placed(_token(request), plain(request.properties))
        if request.preview:
            return sdk.CreateResponse(properties=properties(_foreseen(_token(request), inputs)))
        fault = self._faults.struck("create", _token(request), request.name)
        id_, outputs = await asyncio.to_thread(deeds.create, self._cloud, _token(request), request.urn, inputs, fault)
        return sdk.CreateResponse(resource_id=id_, properties=properties(outputs))

    async def read(self, request: sdk.ReadRequest) -> sdk.ReadResponse:
        """What is there; without an id what is gone."""
        fault = self._faults.struck("read", _token(request), request.name)
        state, inputs = plain(request.properties), plain(request.inputs)
        known = (state, inputs)
        found = await asyncio.to_thread(deeds.read, self._cloud, _token(request), request.resource_id, known, fault)
        if found is None:
            return sdk.ReadResponse()
        return sdk.ReadResponse(request.resource_id, properties(found[0]), properties(found[1]))

    async def update(self, request: sdk.UpdateRequest) -> sdk.UpdateResponse:
        """In place."""
        state, new = plain(request.olds), self._placed(_token(request), plain(request.news))
        old = mapping(state.pop(OLD_INPUTS, {}))
        if request.preview:
            kept = {key: value for key, value in state.items() if key not in input_names(_token(request))}
            return sdk.UpdateResponse(properties=properties({**kept, **_without_notes(new)}))
        fault = self._faults.struck("update", _token(request), request.name)
        change = deeds.Update(token=_token(request), id=request.resource_id, old=old, new=new)
        outputs = await asyncio.to_thread(deeds.update, self._cloud, change, fault)
        return sdk.UpdateResponse(properties=properties(outputs))

    async def delete(self, request: sdk.DeleteRequest) -> None:
        """What is gone already is no mistake."""
        fault = self._faults.struck("delete", _token(request), request.name)
        state = plain(request.properties)
        await asyncio.to_thread(deeds.delete, self._cloud, _token(request), request.resource_id, state, fault)

    async def invoke(self, request: sdk.InvokeRequest) -> sdk.InvokeResponse:
        """The functions that the offline preview answers too, but with what the cloud knows."""
        config: dict[str, Wire] = dict(self._config)
        try:
            found = answer_invoke(request.tok, plain(request.args), config)
        except EngineRefusal as error:
            raise ProviderError(str(error)) from None
        if request.tok == "gcp:organizations/getProject:getProject":
            known = self._cloud.project()
            found |= {"number": known["projectNumber"], "name": known["projectId"], "billingAccount": ""}
        return sdk.InvokeResponse(return_value=properties(found))

    def _placed(self, token: str, inputs: Mapping[str, Wire]) -> dict[str, Wire]:
        return placed(token, inputs, self._config)


def _foreseen(token: str, inputs: Mapping[str, Wire]) -> dict[str, Wire]:
    """Outputs of a preview: what only Google will say is unknown."""
    unknown: dict[str, Wire] = dict.fromkeys(output_names(token) - input_names(token), UNKNOWN_TEXT)
    return {**unknown, **_without_notes(inputs)}


def _without_notes(inputs: Mapping[str, Wire]) -> dict[str, Wire]:
    return {key: value for key, value in inputs.items() if key != DEFAULTS}


def _token(request: Any) -> str:
    """The type of the resource itself: in a URN those of its parents come before it."""
    return str(request.type).rpartition("$")[2]
