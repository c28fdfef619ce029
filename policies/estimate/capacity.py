"""On what terms a VM or slice asks for capacity: exactly one of spot, on demand, reserved, flex-start."""

from __future__ import annotations

import difflib
import enum
from typing import Final, final

from policies.estimate.market import Market, unknown
from policies.estimate.model import UnknownInput
from policies.prices.book import PriceModel
from policies.resources import Opaque, Resource, ResourceError, dig, dotted

RESERVED_NOTE: Final = "reserved: priced on demand; a commitment may make it cheaper"


@final
class Capacity(enum.Enum):
    """The terms; the value is what a title shows."""

    SPOT = "spot"
    ON_DEMAND = "on demand"
    RESERVED = "reserved"
    """Bills the on-demand price, less what a commitment takes off."""
    FLEX_START = "flex-start"
    """Has prices of its own, which no book has yet."""

    @property
    def model(self) -> PriceModel:
        """The price model of the book that bills it."""
        return PriceModel.SPOT if self is Capacity.SPOT else PriceModel.ON_DEMAND

    @property
    def note(self) -> str:
        """What a reader of a line should know."""
        return RESERVED_NOTE if self is Capacity.RESERVED else ""


_MODELS: Final = {
    "STANDARD": Capacity.ON_DEMAND,
    "SPOT": Capacity.SPOT,
    "RESERVATION_BOUND": Capacity.RESERVED,
    "FLEX_START": Capacity.FLEX_START,
}


def asked(resource: Resource, key: str) -> Resource:
    """The resource as the program asked for it, where it asked for the input `key`; else as the provider answered.

    The flags of one block must come from one side, or a stale answer contradicts a new question.
    """
    block = resource.inputs.get(key)
    if block is None or block == resource.outputs.get(key):
        return resource
    return Resource(
        urn=resource.urn, type=resource.type, name=resource.name, inputs=resource.inputs, options=resource.options
    )


def tpu_capacity(resource: Resource, market: Market) -> Capacity | UnknownInput:
    """The terms of a TPU of the TPU API. Raises ResourceError for flags that contradict each other."""
    block = "schedulingConfig"
    source = asked(resource, block)
    flags = {}
    for name in ("spot", "preemptible", "reserved"):
        found = source.flag(block, name)
        if isinstance(found, Opaque):
            return unknown(found, block, name, decides="whether spot or on-demand prices hold")
        flags[name] = bool(found)
    if flags["reserved"] and (flags["spot"] or flags["preemptible"]):
        both = "spot" if flags["spot"] else "preemptible"
        raise ResourceError(
            f"{resource.urn}: {block} has {both} and reserved; capacity is one of the two: leave one out"
        )
    if flags["reserved"]:
        return Capacity.RESERVED
    return _compared(Capacity.SPOT if flags["spot"] or flags["preemptible"] else Capacity.ON_DEMAND, market)


def vm_capacity(resource: Resource, market: Market) -> Capacity | UnknownInput:
    """The terms of a VM or template of Compute Engine. Raises ResourceError for a contradiction or an unknown model."""
    block = "scheduling"
    source = asked(resource, block)
    model = source.text(block, "provisioningModel")
    preemptible = source.flag(block, "preemptible")
    for name, value in (("provisioningModel", model), ("preemptible", preemptible)):
        if isinstance(value, Opaque):
            return unknown(value, block, name, decides="whether spot or on-demand prices hold")
    terms = _MODELS.get(str(model or "STANDARD").upper())
    if terms is None:
        raise ResourceError(f"{resource.urn}: {block}.provisioningModel is {model!r}; {_choices(str(model))}")
    reservation = dig(resource.inputs, "reservationAffinity", "type") == "SPECIFIC_RESERVATION"
    if preemptible or terms is Capacity.SPOT:
        _refuse_other_terms(resource, terms, reservation=reservation)
        return _compared(Capacity.SPOT, market)
    return Capacity.RESERVED if reservation and terms is Capacity.ON_DEMAND else terms


def node_capacity(pool: Resource, market: Market, *at: str | int) -> Capacity | UnknownInput:
    """The terms of the nodes of a GKE pool, described at the path `at`. Raises ResourceError for a contradiction."""
    config = (*at, "nodeConfig")
    paths = {
        Capacity.SPOT: ((*config, "spot"), (*config, "preemptible")),
        Capacity.FLEX_START: ((*config, "flexStart"), (*at, "queuedProvisioning", "enabled")),
    }
    asked_for = []
    for terms, flags in paths.items():
        for path in flags:
            found = pool.flag(*path)
            if isinstance(found, Opaque):
                return unknown(found, *path, decides="which prices hold")
            if found:
                asked_for.append(terms)
    if pool.value(*config, "reservationAffinity", "consumeReservationType") == "SPECIFIC_RESERVATION":
        asked_for.append(Capacity.RESERVED)
    if len(set(asked_for)) > 1:
        both = " and ".join(terms.value for terms in dict.fromkeys(asked_for))
        raise ResourceError(f"{pool.urn}: {dotted(config)} asks for {both}; capacity is one of the two: leave one out")
    return _compared(asked_for[0] if asked_for else Capacity.ON_DEMAND, market)


def _refuse_other_terms(resource: Resource, terms: Capacity, *, reservation: bool) -> None:
    if terms in (Capacity.RESERVED, Capacity.FLEX_START):
        raise ResourceError(f"{resource.urn}: scheduling is preemptible and {terms.value}; capacity is one of the two")
    if reservation:
        raise ResourceError(
            f"{resource.urn}: scheduling is spot and reservationAffinity.type is SPECIFIC_RESERVATION; "
            "spot capacity takes no reservation"
        )


def _compared(terms: Capacity, market: Market) -> Capacity:
    return Capacity.ON_DEMAND if market.on_demand and terms is Capacity.SPOT else terms


def _choices(value: str) -> str:
    close = difflib.get_close_matches(value.upper(), _MODELS, n=1)
    return f"models are {', '.join(_MODELS)}." + (f" Did you mean {close[0]}?" if close else "")
