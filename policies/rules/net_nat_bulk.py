"""Weights and datasets through Cloud NAT: every host pulls its own copy, and every GiB bills."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Final

from policies.estimate.location import locate
from policies.prices.book import Price, PriceModel
from policies.resources import Opaque, Resource, texts
from policies.rules.bills import a_month, cost_of
from policies.rules.machines import description_of, is_tpu, machines_of, slices_of
from policies.rules.model import Context, Rule, Severity, Violation

ITEM: Final = "network.nat.data"
LAUNCH_GIB: Final = 1024
HUBS: Final = ("huggingface", "hf download", "snapshot_download", "kaggle", "modelscope")
"""Words that give a download from a model hub away."""


def _check(gateway: Resource, context: Context) -> Iterator[Violation]:
    hosts, hidden, hub = _tpus(context)
    for name, count in hidden:
        yield Violation.hidden(f"the number of machines of {name}", count)
    if not hosts:
        return
    money = cost_of(gateway, context, ITEM)
    through = f"; by its usage it bills {a_month(money)} for data" if money else ""
    yield Violation(
        message=f"{hosts} TPU hosts can pull through it: {_launch(gateway, hosts, context)}{_seen(hub)}{through}",
        monthly=money or None,
        severity=None if hub else Severity.INFO,
    )


@lru_cache(maxsize=1)
def _tpus(context: Context) -> tuple[int, tuple[tuple[str, Opaque], ...], str | None]:
    """How many TPU hosts there are, of what nobody can see it, and the first word of a hub. Read once a judgement."""
    slices = [each for each in slices_of(context.resources) if is_tpu(each, context.resources) is not False]
    counts = [(each.name, machines_of(each, context.resources)) for each in slices]
    hosts = sum(count for _, count in counts if isinstance(count, int))
    hidden = tuple((name, count) for name, count in counts if isinstance(count, Opaque))
    return hosts, hidden, next((word for each in slices for word in _hubs(each, context)), None)


def _hubs(resource: Resource, context: Context) -> Iterator[str]:
    """Words of a model hub in what the hosts run at their start."""
    described = description_of(resource, context.resources)
    for key in ("metadata", "metadataStartupScript"):
        for text in texts(described.value(key) if described else None):
            yield from (word for word in HUBS if word in text.lower())


def _seen(hub: str | None) -> str:
    return f', and their startup script mentions "{hub}"' if hub else ""


def _launch(gateway: Resource, hosts: int, context: Context) -> str:
    region = locate(gateway, context.resources, "region")
    price = context.book.find(ITEM, PriceModel.ON_DEMAND, region) if isinstance(region, str) else None
    if not isinstance(price, Price):
        return f"{LAUNCH_GIB:,} GiB each, and no price for it is known"
    return f"{LAUNCH_GIB:,} GiB each cost {price.cost(Decimal(LAUNCH_GIB * hosts)):,.2f} a launch"


RULE: Final = Rule(
    id="NET-NAT-BULK",
    title="TPU hosts do not pull weights or datasets through Cloud NAT",
    severity=Severity.WARNING,
    applies_to=("gcp:compute/routerNat:RouterNat",),
    remediation=(
        "Copy the weights once into the models bucket and read them from there or from the model volume (by Private "
        "Google Access, not NAT); then set spotrail:network.nat to false."
    ),
    url="https://cloud.google.com/nat/pricing",
    check=_check,
)
