"""TPUs of the TPU API: a `V2Vm` on its own terms, every node of a `V2QueuedResource` on demand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.estimate.accelerators import Accelerator, OtherTpu, accelerator, asked_block
from policies.estimate.capacity import Capacity, tpu_capacity
from policies.estimate.hosts import Terms, address_line, chip_line
from policies.estimate.location import locate, segment_after
from policies.estimate.market import Market, Part, bill, joined, unknown
from policies.estimate.model import ResourceEstimate, UnknownInput
from policies.estimate.registry import Priced
from policies.estimate.shape_titles import shape_title
from policies.estimate.traffic import traffic_parts
from policies.hardware.slices import Shape
from policies.resources import Opaque, Resource

VM: Final = "gcp:tpu/v2Vm:V2Vm"
QUEUED: Final = "gcp:tpu/v2QueuedResource:V2QueuedResource"
INCLUDED: Final = "vCPUs, memory and boot disk of the TPU VMs are included"
QUEUED_NOTE: Final = "a queued resource of the provider cannot ask for spot: it bills on demand"


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """The chips of a TPU VM, or of all nodes that a queued resource asks for."""
    return _queued(resource, market) if resource.type == QUEUED else _vm(resource, market)


def _vm(resource: Resource, market: Market) -> ResourceEstimate:
    what = accelerator(resource, asked_block(resource))
    capacity = tpu_capacity(resource, market)
    location = locate(resource, market.resources, "zone", decides="the price of a chip")
    unseen = [part for part in (what, capacity, location) if isinstance(part, UnknownInput)]
    title = what.name if isinstance(what, OtherTpu) else "TPU"
    if isinstance(what, OtherTpu):
        return bill(resource, _shown(location), title, [what.unpriced, *unseen])
    if isinstance(what, UnknownInput) or isinstance(capacity, UnknownInput) or isinstance(location, UnknownInput):
        return bill(resource, _shown(location), title, unseen)
    terms = Terms.of(location, capacity, market.usage_of(resource))
    parts = (
        chip_line(market, what.chips, terms, note=INCLUDED),
        *_address_parts(resource, market, what, terms, at=()),
        *traffic_parts(market, resource, location),
    )
    return bill(resource, location, shape_title(what, capacity), parts)


def _address_parts(
    resource: Resource, market: Market, shape: Shape, terms: Terms, *, at: tuple[str | int, ...]
) -> Iterator[Part]:
    """External addresses of the hosts, where the block `at` asks for them."""
    interfaces = resource.items(*at, "networkConfigs")
    if isinstance(interfaces, Opaque):
        yield unknown(interfaces, *at, "networkConfigs", decides="whether the hosts have external addresses")
        return
    count = 0
    for path in ((*at, "networkConfig"), *((*at, "networkConfigs", index) for index in range(len(interfaces)))):
        found = resource.flag(*path, "enableExternalIps")
        if isinstance(found, Opaque):
            yield unknown(found, *path, "enableExternalIps", decides="whether the hosts have external addresses")
        count += found is True
    if count:
        yield address_line(market, count * shape.hosts, terms)


def _queued(resource: Resource, market: Market) -> ResourceEstimate:
    specs = resource.items("tpu", "nodeSpecs")
    if isinstance(specs, Opaque) or not specs:
        unseen = (
            unknown(specs, "tpu", "nodeSpecs", decides="how many chips bill")
            if isinstance(specs, Opaque)
            else UnknownInput(path="tpu.nodeSpecs", reason="not set; it decides how many chips bill")
        )
        return bill(resource, "", "queued TPU", (unseen,))
    nodes = [_node(resource, market, index) for index in range(len(specs))]
    places = [place for place, _, _ in nodes if isinstance(place, str)]
    parts = [part for _, _, found in nodes for part in found]
    parts += traffic_parts(market, resource, places[0]) if places else ()
    return bill(resource, places[0] if places else "", f"queued · {_listed([name for _, name, _ in nodes])}", parts)


def _node(resource: Resource, market: Market, index: int) -> tuple[str | UnknownInput, str, tuple[Part, ...]]:
    """Place, short name and lines of one node of a queued resource."""
    at = ("tpu", "nodeSpecs", index)
    what: Accelerator = accelerator(resource, resource.value(*at, "node"), *at, "node")
    place = _place(resource, market, *at)
    if isinstance(what, OtherTpu):
        return place, what.name, (what.unpriced, *([place] if isinstance(place, UnknownInput) else ()))
    if isinstance(what, UnknownInput) or isinstance(place, UnknownInput):
        return place, "TPU", tuple(part for part in (what, place) if isinstance(part, UnknownInput))
    terms = Terms.of(place, Capacity.ON_DEMAND, market.usage_of(resource))
    node_id = resource.value(*at, "nodeId")
    name = f"TPU v6e chip of {node_id}" if isinstance(node_id, str) and node_id else f"TPU v6e chip of node {index}"
    line = chip_line(market, what.chips, terms, name=name, note=joined(QUEUED_NOTE, INCLUDED))
    addresses = _address_parts(resource, market, what, terms, at=(*at, "node"))
    return place, what.accelerator_type, (line, *addresses)


def _place(resource: Resource, market: Market, *at: str | int) -> str | UnknownInput:
    """The zone of the queued resource, else the one that the node names in its parent."""
    found = locate(resource, market.resources, "zone", decides="the price of a chip")
    parent = resource.text(*at, "parent")
    named = segment_after(parent, "locations") if isinstance(parent, str) else None
    return named.lower() if isinstance(found, UnknownInput) and named else found


def _listed(names: list[str]) -> str:
    """`2 × v6e-16`, `v6e-8, v6e-16`."""
    counts = {name: names.count(name) for name in names}
    return ", ".join(f"{count} × {name}" if count > 1 else name for name, count in counts.items()) + " · on demand"


def _shown(location: str | UnknownInput) -> str:
    return location if isinstance(location, str) else ""


PRICED: Final = Priced(types=(VM, QUEUED), price=price)
