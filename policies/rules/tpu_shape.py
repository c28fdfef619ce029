"""The shape of a slice: what is asked for is one of the eight that v6e has, and all parts of it agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from policies.estimate.node_counts import NODE_POOL
from policies.hardware.errors import HardwareError
from policies.hardware.slices import DEFAULT_TPU, Shape, chips_of_machine, shape, shape_of_topology, shapes
from policies.resources import UNKNOWN, Opaque, Resource, Value, dig
from policies.rules.cluster_pools import CLUSTER, each_pool
from policies.rules.machines import (
    DESCRIBED,
    GROUPS,
    NODE,
    QUEUED,
    description_of,
    is_tpu,
    machine_type,
    machines_of,
)
from policies.rules.model import Context, Rule, Severity, Violation

WORKLOAD_POLICY: Final = "gcp:compute/resourcePolicy:ResourcePolicy"
NEITHER: Final = f"neither acceleratorType nor acceleratorConfig is set: the provider asks for {DEFAULT_TPU}, no v6e"
GENERATION: Final = "V6E"


def _check(resource: Resource, context: Context) -> Iterator[Violation]:
    if resource.type == NODE:
        yield from _node(resource)
    elif resource.type == QUEUED:
        yield from _queued(resource)
    elif resource.type in GROUPS:
        yield from _group(resource, context)
    elif resource.type == NODE_POOL:
        yield from _machine(resource, context)
        yield from _pool(resource, context)
    else:
        yield from _machine(resource, context)


def _node(node: Resource) -> Iterator[Violation]:
    # The server answers with both forms, so only what the program asked for counts.
    name, config = (node.inputs.get(key) for key in ("acceleratorType", "acceleratorConfig"))
    if name is not None and config is not None:
        yield Violation(message="acceleratorType and acceleratorConfig are both set; the API takes one of them")
    if name is None and config is None:
        yield Violation(message=NEITHER)
    yield from _named("acceleratorType", name)
    yield from _configured(config)


def _queued(queued: Resource) -> Iterator[Violation]:
    specs = queued.items("tpu", "nodeSpecs")
    if isinstance(specs, Opaque):
        yield Violation.hidden("tpu.nodeSpecs", specs)
        return
    for place, spec in enumerate(specs):
        path = f"tpu.nodeSpecs[{place}].node.acceleratorType"
        name = dig(spec, "node", "acceleratorType")
        if name is None:
            yield Violation(message=f"{path} is not set: the provider asks for {DEFAULT_TPU}, no v6e")
        yield from _named(path, name)


def _named(path: str, name: Value) -> Iterator[Violation]:
    if isinstance(name, Opaque):
        yield Violation.hidden(path, name)
    elif name is not None:
        yield from _refused(shape, name)


def _configured(config: Value) -> Iterator[Violation]:
    if config is None:
        return
    for key in ("type", "topology"):
        value = dig(config, key)
        if isinstance(value, Opaque):
            yield Violation.hidden(f"acceleratorConfig.{key}", value)
        elif key == "topology":
            yield from _refused(shape_of_topology, value)
        elif str(value).upper() != GENERATION:
            yield Violation(message=f'acceleratorConfig.type is "{value}"; for v6e it is {GENERATION}')


def _machine(machine: Resource, context: Context) -> Iterator[Violation]:
    name = machine_type(machine)
    if isinstance(name, Opaque):
        yield Violation.hidden("machineType", name)
    elif is_tpu(machine, context.resources) and chips_of_machine(str(name)) is None:
        valid = ", ".join(dict.fromkeys(shape.machine_type for shape in shapes().values()))
        yield Violation(message=f'machine type "{name}" is no v6e host; those are {valid}')


def _group(group: Resource, context: Context) -> Iterator[Violation]:
    template = description_of(group, context.resources)
    if template is None or is_tpu(group, context.resources) is not True:
        return
    size, topology = group.integer("targetSize"), _topology(group, context)
    if isinstance(size, Opaque):
        yield Violation.hidden("targetSize", size)
    elif isinstance(topology, Opaque):
        yield Violation.hidden("the acceleratorTopology of its workload policy", topology)
    elif topology is not None:
        yield from _agreed(topology, str(machine_type(template)), size or 0)
    elif (size or 0) > 1:
        yield Violation(
            message=f"its {size} TPU hosts have no acceleratorTopology: they are {size} slices of one host each",
            severity=Severity.WARNING,
        )


def _topology(group: Resource, context: Context) -> str | Opaque | None:
    """The topology that the group asks for; unknown where its policy is no part of the stack."""
    policy = next(iter(context.resources.references(group, "resourcePolicies", WORKLOAD_POLICY)), None)
    if policy is not None:
        return policy.text("workloadPolicy", "acceleratorTopology")
    return None if group.value("resourcePolicies", "workloadPolicy") is None else UNKNOWN


def _pool(pool: Resource, context: Context) -> Iterator[Violation]:
    """Nodes that form one slice must be as many as its topology has; a topology of one host makes each node a slice."""
    each = chips_of_machine(str(machine_type(pool)))
    nodes, topology = machines_of(pool, context.resources), pool.text("placementPolicy", "tpuTopology")
    if each is None:
        return
    if isinstance(topology, Opaque):
        yield Violation.hidden("placementPolicy.tpuTopology", topology)
    elif isinstance(nodes, Opaque):
        yield Violation.hidden("the number of its nodes", nodes)
    elif topology is not None and nodes:
        yield from _spanned(topology, each, nodes)
    elif nodes > 1:
        yield Violation(
            message=f"its {nodes} TPU nodes have no tpuTopology: they are {nodes} slices of one host each",
            severity=Severity.WARNING,
        )


def _spanned(topology: str, each: int, nodes: int) -> Iterator[Violation]:
    try:
        found = shape_of_topology(topology)
    except HardwareError as error:
        yield Violation(message=str(error))
        return
    wanted, rest = divmod(found.chips, each)
    if rest or not wanted:
        yield Violation(message=f"topology {topology} has {found.chips} chips; its nodes have {each} each")
    elif wanted > 1 and nodes != wanted:
        yield Violation(
            message=f"it has {nodes} nodes; topology {topology} is {found.accelerator_type}, {wanted} of {each} chips"
        )


def _agreed(topology: str, machine: str, size: int) -> Iterator[Violation]:
    try:
        found = shape_of_topology(topology)
    except HardwareError as error:
        yield Violation(message=str(error))
        return
    wanted = f"topology {topology} is {found.accelerator_type}, {found.hosts} hosts of {found.machine_type}"
    if machine != found.machine_type:
        yield Violation(message=f'the template has machine type "{machine}"; {wanted}')
    if size != found.hosts:
        yield Violation(message=f"targetSize is {size}; {wanted}")


def _refused(look_up: Callable[[str], Shape], name: Value) -> Iterator[Violation]:
    try:
        look_up(str(name))
    except HardwareError as error:
        yield Violation(message=str(error))


RULE: Final = Rule(
    id="TPU-SHAPE",
    title="A slice has one of the eight v6e shapes, and its parts agree",
    severity=Severity.ERROR,
    applies_to=(NODE, QUEUED, *DESCRIBED, *GROUPS, NODE_POOL, CLUSTER),
    remediation=(
        "Set spotrail:slices.<name>.shape to v6e-1, v6e-4, v6e-8 (one host) or v6e-16 to v6e-256 (4 chips a host); "
        "in a program set acceleratorType alone, or make machineType, acceleratorTopology and targetSize agree."
    ),
    url="https://docs.cloud.google.com/tpu/docs/v6e",
    check=each_pool(_check),
)
