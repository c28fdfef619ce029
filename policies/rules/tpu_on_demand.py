"""Full price where spot was meant: the dearest slip of all, since everything works."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from policies.estimate.capacity import Capacity
from policies.estimate.model import UnknownInput
from policies.money import Amount
from policies.prices.book import Price, PriceModel
from policies.resources import Opaque, Resource
from policies.rules.bills import a_month, bills, cost_of
from policies.rules.cluster_pools import CLUSTER, each_pool
from policies.rules.labels import label
from policies.rules.machines import QUEUED, SLICES, description_of, is_tpu, terms_of
from policies.rules.model import Context, Rule, Severity, Violation

CHIP: Final = "tpu.v6e.chip"
LENIENT_ENV: Final = "prod"
"""Where a deadline may be worth the price: a warning there, an error everywhere else."""


def _check(resource: Resource, context: Context) -> Iterator[Violation]:
    tpu = is_tpu(resource, context.resources)
    if isinstance(tpu, Opaque):
        yield Violation.hidden("machineType", tpu)
    if tpu is not True:
        return
    terms = terms_of(resource, context)
    if isinstance(terms, UnknownInput):
        yield Violation(message=f"{terms.path}: {terms.reason}", decided=False)
    elif terms is Capacity.ON_DEMAND:
        extra = _extra(resource, context)
        yield Violation(
            message=f"{_said(resource)}: {a_month(cost_of(resource, context, CHIP))}{_compared(extra)}",
            monthly=extra,
            severity=None if _strict(resource, context) else Severity.WARNING,
        )


def _said(resource: Resource) -> str:
    if resource.type == QUEUED:
        return "a V2QueuedResource cannot ask for spot, so its chips are on demand"
    return "its chips are on demand"


def _compared(extra: Amount | None) -> str:
    return ", and there is no spot price to compare with" if extra is None else f", {a_month(extra)} more than spot"


def _strict(resource: Resource, context: Context) -> bool:
    described = description_of(resource, context.resources) or resource
    return resource.type == QUEUED or label(described, "env", context.resources) != LENIENT_ENV


def _extra(resource: Resource, context: Context) -> Amount | None:
    """What the chips cost above spot in the same place; None where one of the prices is missing."""
    amount = cost_of(resource, context, CHIP)
    if amount is None:
        return None
    place = bills(context)[resource.urn].location
    full, spot = (context.book.find(CHIP, model, place) for model in (PriceModel.ON_DEMAND, PriceModel.SPOT))
    if not (isinstance(full, Price) and isinstance(spot, Price) and full.unit_price):
        return None
    return amount * (1 - Fraction(spot.unit_price) / Fraction(full.unit_price))


RULE: Final = Rule(
    id="TPU-ON-DEMAND",
    title="TPU chips are spot or reserved, not on demand",
    severity=Severity.ERROR,
    applies_to=(*SLICES, CLUSTER),
    remediation=(
        "Set spotrail:slices.<name>.capacity to spot (scheduling.provisioningModel SPOT on Compute Engine, "
        "schedulingConfig.spot true on a V2Vm), or to reserved where there is a reservation. A V2QueuedResource "
        "cannot say it: use one of the two instead. A run with a deadline is what a waiver is for."
    ),
    url="https://docs.cloud.google.com/tpu/docs/spot",
    check=each_pool(_check),
)
