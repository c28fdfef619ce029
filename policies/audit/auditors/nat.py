"""Cloud NAT: bulk downloads that go through it, and gateways that nobody is behind.

Source: router.googleapis.com/nat/received_bytes_count and https://cloud.google.com/nat/pricing
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from policies.audit.context import Auditor, Context
from policies.audit.findings import find
from policies.audit.links import last
from policies.audit.pricing import GIB
from policies.audit.reading import linked, objects, said
from policies.audit.record import Item, Kind, Metric, Part, Series
from policies.audit.states import BILLING_NODES, RUNNING
from policies.audit.subjects import Subject
from policies.audit.telemetry.grid import grid_of
from policies.audit.telemetry.spans import MICRO, Span, micros
from policies.audit.telling import Told, money, readable, subjects
from policies.estimate.model import Unpriced
from policies.hardware.errors import HardwareError
from policies.hardware.zones import region_of
from policies.money import HOURS_PER_MONTH, Amount

BULK_GIB_A_DAY: Final = 100
ITEM: Final = "network.nat.data"
DAY: Final = 86_400


def _look(context: Context) -> Iterator[Told]:
    window = (micros(context.record.window.start), micros(context.record.window.end))
    routers = list(subjects(context, Part.ROUTERS))
    yield from readable(routers, lambda router: _bulk(context, router, window))
    yield from readable(routers, lambda router: _idle(context, router))


def _bulk(context: Context, router: Subject, window: Span) -> Iterator[Told]:
    """Gateways through which more than 100 GiB come in a day, over the whole window."""
    for nat in objects(router.item, "nats"):
        name = said(nat, "name")
        found = [each for each in context.record.series(Metric.NAT_RECEIVED) if _is_of(each, router, name)]
        received = sum((_received(series, window) for series in found), Fraction(0))
        days = Fraction(window[1] - window[0], DAY * MICRO)
        a_day = received / days / GIB
        if a_day > BULK_GIB_A_DAY:
            cost = _cost(context, router, a_day)
            bills = f": {money(cost)}" if cost is not None else ""
            yield find("NET-NAT-BULK", router, f"{name} takes in {float(a_day):,.0f} GiB a day{bills}", monthly=cost)


def _cost(context: Context, router: Subject, a_day: Fraction) -> Amount | None:
    rate = context.pricing.rate(ITEM, "GiB", router.location)
    return None if isinstance(rate, Unpriced) else rate * (a_day * HOURS_PER_MONTH / 24)


def _is_of(series: Series, router: Subject, name: str) -> bool:
    labels = series.resource_labels
    same_router = labels.get("router_id", "") in ("", said(router.item, "id"), router.name)
    return labels.get("gateway_name") == name and labels.get("region", "") in ("", router.location) and same_router


def _received(series: Series, window: Span) -> Fraction:
    """Bytes within the window: amounts of a counter, or a rate times its time."""
    grid = grid_of(series, window)
    found = Fraction(0)
    for at in range(len(grid)):
        value = Fraction(series.values[at if grid.kept is None else grid.kept[at]])
        inside = grid.ends[at] - grid.starts[at]
        found += value * Fraction(inside, MICRO if series.kind is Kind.GAUGE else grid.owns[at])
    return max(found, Fraction(0))


def _idle(context: Context, router: Subject) -> Iterator[Told]:
    needs = (Part.ROUTERS, Part.INSTANCES, Part.NODES)
    gateways = [said(nat, "name") for nat in objects(router.item, "nats")]
    if not gateways or not all(context.record.seen(part) for part in needs):
        return
    if any(_behind(each, router) for each in subjects(context, Part.INSTANCES, Part.NODES)):
        return
    message = f"no machine without an external address runs in {router.location}: {', '.join(gateways)} serves nobody"
    yield find("NET-NAT-IDLE", router, message)


def _behind(subject: Subject, router: Subject) -> bool:
    """Whether a machine may go out through the gateways of a router. A node does not say its addresses: it may."""
    state = said(subject.item, "status") or said(subject.item, "state")
    if state not in RUNNING | BILLING_NODES or not _within(subject.location, router.location):
        return False
    if subject.part is Part.NODES:
        return True
    network = said(router.item, "network")
    return any(_private(interface, network) for interface in objects(subject.item, "networkInterfaces"))


def _private(interface: Item, network: str) -> bool:
    other = said(interface, "network")
    same = not network or not other or linked(network) == linked(other) or last(network) == last(other) == "default"
    return same and not objects(interface, "accessConfigs")


def _within(zone: str, region: str) -> bool:
    try:
        return region_of(zone) == region
    except HardwareError:
        return False


AUDITOR: Final = Auditor(title="bulk downloads through Cloud NAT, gateways without machines", look=_look)
