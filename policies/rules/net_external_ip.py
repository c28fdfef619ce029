"""External addresses on machines: money for each, and a door for everybody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.estimate.model import total
from policies.money import Amount
from policies.resources import Opaque, Resource, Value, dig
from policies.rules.bills import a_month, cost_of
from policies.rules.machines import DESCRIBED, NODE, TEMPLATES, groups_of, machines_of
from policies.rules.model import Context, Rule, Severity, Violation

ITEM: Final = "network.ip.in-use"


def _check(machine: Resource, context: Context) -> Iterator[Violation]:
    found = _node(machine) if machine.type == NODE else _interfaces(machine)
    asked = []
    for path, value in found:
        if isinstance(value, Opaque):
            yield Violation.hidden(path, value)
        elif value:
            asked.append(path)
    if asked:
        many = machines_of(machine, context.resources)
        hosts = (
            f"{many} {'machine has' if many == 1 else 'machines have'}"
            if isinstance(many, int)
            else "its machines have"
        )
        money = _money(machine, context)
        yield Violation(message=f"{hosts} an external address ({', '.join(asked)}): {a_month(money)}", monthly=money)


def _node(node: Resource) -> Iterator[tuple[str, Value]]:
    yield "networkConfig.enableExternalIps", node.flag("networkConfig", "enableExternalIps")
    configs = node.items("networkConfigs")
    for place, config in enumerate(() if isinstance(configs, Opaque) else configs):
        yield f"networkConfigs[{place}].enableExternalIps", dig(config, "enableExternalIps")
    if isinstance(configs, Opaque):
        yield "networkConfigs", configs


def _interfaces(machine: Resource) -> Iterator[tuple[str, Value]]:
    interfaces = machine.items("networkInterfaces")
    if isinstance(interfaces, Opaque):
        yield "networkInterfaces", interfaces
        return
    for place, interface in enumerate(interfaces):
        yield f"networkInterfaces[{place}].accessConfigs", dig(interface, "accessConfigs")


def _money(machine: Resource, context: Context) -> Amount | None:
    """Of the machine itself or, for a template, of all its groups."""
    billed = groups_of(machine, context.resources) if machine.type in TEMPLATES else (machine,)
    found = [cost for each in billed if (cost := cost_of(each, context, ITEM))]
    return total(found) if found else None


RULE: Final = Rule(
    id="NET-EXTERNAL-IP",
    title="No machine has an external address",
    severity=Severity.WARNING,
    applies_to=(NODE, *DESCRIBED),
    remediation=(
        "Take accessConfigs out (enableExternalIps false); reach machines through IAP, Google APIs through Private "
        "Google Access, and the rest through spotrail:network.nat."
    ),
    url="https://cloud.google.com/vpc/network-pricing#ipaddress",
    check=_check,
)
