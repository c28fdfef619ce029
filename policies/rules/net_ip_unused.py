"""External addresses that are reserved and that nothing uses: twice the price of one in use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.resources import Opaque, Resource
from policies.rules.bills import a_month, bills, cost_of
from policies.rules.model import Context, Rule, Severity, Violation

ADDRESSES: Final = ("gcp:compute/address:Address", "gcp:compute/globalAddress:GlobalAddress")
ITEM: Final = "network.ip.unused"


def _check(address: Resource, context: Context) -> Iterator[Violation]:
    kind = address.text("addressType")
    if isinstance(kind, Opaque):
        yield Violation.hidden("addressType", kind)
    elif _bills_unused(address, context):
        cost = cost_of(address, context)
        yield Violation(message=f"nothing in the stack uses it: {a_month(cost)}", monthly=cost)


def _bills_unused(address: Resource, context: Context) -> bool:
    """Whether the estimate counts it as unused, with a price or without: the bill and the rule have one opinion."""
    found = bills(context).get(address.urn)
    items = [line.item for line in found.components] + [part.item for part in found.unpriced] if found else []
    return ITEM in items


RULE: Final = Rule(
    id="NET-IP-UNUSED",
    title="Every reserved external address is used",
    severity=Severity.WARNING,
    applies_to=ADDRESSES,
    remediation="Remove the address, or give it to the machine or gateway that it was reserved for.",
    url="https://cloud.google.com/vpc/network-pricing#ipaddress",
    check=_check,
    absence=True,
)
