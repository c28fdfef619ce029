"""External addresses on machines: money for each, and a door for everybody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.estimate.model import UnknownInput, total
from policies.estimate.node_counts import NODE_POOL, as_asked, cluster_of
from policies.estimate.node_pools import private_nodes
from policies.money import Amount
from policies.resources import Opaque, Resource, Value, dig, dotted
from policies.rules.bills import a_month, bills, cost_of, lines_of
from policies.rules.cluster_pools import CLUSTER, each_pool
from policies.rules.machines import DESCRIBED, INSTANCE, NODE, QUEUED, TEMPLATES, groups_of, machines_of
from policies.rules.model import Context, Rule, Severity, Violation

ITEM: Final = "network.ip.in-use"


def _check(machine: Resource, context: Context) -> Iterator[Violation]:
    if machine.type == NODE_POOL:
        yield from _nodes(machine, context)
        return
    found = _asked(machine)
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
        yield Violation(
            message=f"{hosts} an external address ({', '.join(asked)}): {_amount(machine, money, context)}",
            monthly=money,
        )


def _nodes(pool: Resource, context: Context) -> Iterator[Violation]:
    """The nodes of a GKE pool: each has an address unless the pool or its cluster keeps them private."""
    many = machines_of(pool, context.resources)
    private = private_nodes(as_asked(pool), (), cluster_of(pool, context.resources))
    if isinstance(private, UnknownInput):
        yield Violation(message=f"{private.path}: {private.reason}", decided=False)
    elif not private and many != 0:
        money = cost_of(pool, context, ITEM)
        nodes = f"{many} {'node has' if many == 1 else 'nodes have'}" if isinstance(many, int) else "its nodes have"
        yield Violation(
            message=f"{nodes} an external address (enablePrivateNodes is not set): {a_month(money)}", monthly=money
        )


def _asked(machine: Resource) -> Iterator[tuple[str, Value]]:
    """Where an address may be asked for, and what stands there."""
    if machine.type == NODE:
        yield from _node(machine)
    elif machine.type == QUEUED:
        specs = machine.items("tpu", "nodeSpecs")
        if isinstance(specs, Opaque):
            yield "tpu.nodeSpecs", specs
            return
        for place in range(len(specs)):
            yield from _node(machine, "tpu", "nodeSpecs", place, "node")
    else:
        yield from _interfaces(machine)


def _node(node: Resource, *at: str | int) -> Iterator[tuple[str, Value]]:
    path = (*at, "networkConfig", "enableExternalIps")
    yield dotted(path), node.flag(*path)
    configs = node.items(*at, "networkConfigs")
    if isinstance(configs, Opaque):
        yield dotted((*at, "networkConfigs")), configs
        return
    for place, config in enumerate(configs):
        yield dotted((*at, "networkConfigs", place, "enableExternalIps")), dig(config, "enableExternalIps")


def _interfaces(machine: Resource) -> Iterator[tuple[str, Value]]:
    interfaces = machine.items("networkInterfaces")
    if isinstance(interfaces, Opaque):
        yield "networkInterfaces", interfaces
        return
    for place, interface in enumerate(interfaces):
        yield f"networkInterfaces[{place}].accessConfigs", dig(interface, "accessConfigs")


def _amount(machine: Resource, money: Amount | None, context: Context) -> str:
    found = bills(context).get(machine.urn)
    if machine.type == INSTANCE and found and found.complete and not lines_of(machine, context, ITEM):
        return "billed with the reserved address"
    return a_month(money)


def _money(machine: Resource, context: Context) -> Amount | None:
    """Of the machine itself or, for a template, of all its groups."""
    billed = groups_of(machine, context.resources) if machine.type in TEMPLATES else (machine,)
    found = [cost for each in billed if (cost := cost_of(each, context, ITEM))]
    return total(found) if found else None


RULE: Final = Rule(
    id="NET-EXTERNAL-IP",
    title="No machine has an external address",
    severity=Severity.WARNING,
    applies_to=(NODE, QUEUED, *DESCRIBED, NODE_POOL, CLUSTER),
    remediation=(
        "Take accessConfigs out (enableExternalIps false; on GKE networkConfig.enablePrivateNodes true); reach "
        "machines through IAP, Google APIs through Private Google Access, and the rest through spotrail:network.nat."
    ),
    url="https://cloud.google.com/vpc/network-pricing#ipaddress",
    check=each_pool(_check),
)
