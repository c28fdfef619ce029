"""Slices that run on demand at full price where spot was meant, and slices that nothing ends."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Final

from policies.audit.context import Auditor, Context
from policies.audit.findings import find
from policies.audit.reading import at, said
from policies.audit.record import Part
from policies.audit.slices.hosts import tpu_hosts
from policies.audit.states import BILLING_NODES, RUNNING
from policies.audit.subjects import Subject
from policies.audit.telling import Told, bill_of, money, readable, subjects
from policies.estimate.capacity import Capacity
from policies.estimate.model import total
from policies.money import Amount
from policies.prices.book import Price, PriceModel
from policies.rules.model import Severity

CHIP: Final = "tpu.v6e.chip"
LENIENT_ENV: Final = "prod"
"""Where a deadline may be worth the price, as in the rule of stacks."""


def _look(context: Context) -> Iterator[Told]:
    nodes = (node for node in subjects(context, Part.NODES) if said(node.item, "state") in BILLING_NODES)
    yield from readable(nodes, lambda node: _findings(context, (node,), node))
    for hosts in tpu_hosts(context):
        running = tuple(host for host in hosts.members if said(host.item, "status") in RUNNING)
        if not running:
            continue
        if hosts.group is not None:
            yield from readable((hosts.group,), partial(_findings, context, running))
        else:
            yield from readable(running, lambda host: _findings(context, (host,), host))


def _findings(context: Context, billed: tuple[Subject, ...], subject: Subject) -> Iterator[Told]:
    """What is wrong with the terms of a slice, whose hosts are all alike."""
    first = billed[0]
    costs = [bill_of(context.pricing.estimate(each.part, each.item))[0] for each in billed]
    cost = None if None in costs else total(each for each in costs if each is not None)
    bills = f": {money(cost)}" if cost is not None else ""
    if not (first.label("ttl") or at(first.item, "scheduling", "maxRunDuration")):
        forgotten = f"{bills} if it is forgotten" if bills else ""
        yield find("TPU-NO-TTL", subject, f"neither a run duration nor a label ttl ends it{forgotten}", monthly=cost)
    if context.pricing.capacity(first.part, first.item) is Capacity.ON_DEMAND:
        extra = _extra(context, first, cost)
        more = f"{money(extra)} more than spot" if extra is not None else "and there is no spot price to compare with"
        lenient = Severity.WARNING if first.label("env") == LENIENT_ENV else None
        message = f"its chips run on demand{bills}, {more}"
        yield find("TPU-ON-DEMAND", subject, message, monthly=extra, severity=lenient)


def _extra(context: Context, subject: Subject, cost: Amount | None) -> Amount | None:
    """What the chips cost above spot in the same place; None where one of the prices is missing."""
    book = context.pricing.book
    full, spot = (book.find(CHIP, model, subject.location) for model in (PriceModel.ON_DEMAND, PriceModel.SPOT))
    if cost is None or not (isinstance(full, Price) and isinstance(spot, Price) and full.unit_price):
        return None
    return cost * (1 - Fraction(spot.unit_price) / Fraction(full.unit_price))


AUDITOR: Final = Auditor(title="slices on demand, and slices that nothing ends", look=_look)
