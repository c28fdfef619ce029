"""A subnetwork without Private Google Access: reads of buckets go through NAT and bill, or do not go at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.resources import Opaque, Resource
from policies.rules.machines import DESCRIBED, NODE
from policies.rules.model import Context, Rule, Severity, Violation

SUBNETWORK: Final = "gcp:compute/subnetwork:Subnetwork"
NAT: Final = "gcp:compute/routerNat:RouterNat"


def _check(subnetwork: Resource, context: Context) -> Iterator[Violation]:
    if subnetwork.text("purpose") not in (None, "PRIVATE") or not context.resources.of_type(NODE, *DESCRIBED):
        return
    access = subnetwork.flag("privateIpGoogleAccess")
    if isinstance(access, Opaque):
        yield Violation.hidden("privateIpGoogleAccess", access)
    elif not access:
        said = "not set" if access is None else "false"
        yield Violation(message=f"privateIpGoogleAccess is {said}: {_consequence(context)}")


def _consequence(context: Context) -> str:
    if context.resources.of_type(NAT):
        return "every byte that its machines read from a bucket goes through Cloud NAT, which bills each GiB"
    return "machines without an external address reach neither buckets nor Google's APIs"


RULE: Final = Rule(
    id="NET-PRIVATE-ACCESS",
    title="Subnetworks with machines have Private Google Access",
    severity=Severity.WARNING,
    applies_to=(SUBNETWORK,),
    remediation="Set privateIpGoogleAccess to true; the Network component does. It costs nothing.",
    url="https://docs.cloud.google.com/vpc/docs/private-google-access",
    check=_check,
)
