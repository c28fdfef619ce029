"""External addresses that are reserved and that nothing uses: twice the price of one in use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.resources import Opaque, Resource, texts
from policies.rules.bills import a_month, cost_of
from policies.rules.model import Context, Rule, Severity, Violation

ADDRESS: Final = "gcp:compute/address:Address"
INTERNAL: Final = "INTERNAL"


def _check(address: Resource, context: Context) -> Iterator[Violation]:
    kind = address.text("addressType")
    if isinstance(kind, Opaque):
        yield Violation.hidden("addressType", kind)
    elif kind != INTERNAL and not _used(address, context):
        cost = cost_of(address, context)
        yield Violation(message=f"nothing in the stack uses it: {a_month(cost)}", monthly=cost)


def _used(address: Resource, context: Context) -> bool:
    number = address.value("address")
    for other in context.resources:
        if any(address.urn in urns for urns in other.options.property_dependencies.values()):
            return True
        if other is not address and isinstance(number, str) and number in texts(other.inputs):
            return True
    return False


RULE: Final = Rule(
    id="NET-IP-UNUSED",
    title="Every reserved external address is used",
    severity=Severity.WARNING,
    applies_to=(ADDRESS,),
    remediation="Remove the address, or give it to the machine or gateway that it was reserved for.",
    url="https://cloud.google.com/vpc/network-pricing#ipaddress",
    check=_check,
)
