"""Every rule, proven by one table: what it finds, with what money, what it passes, and what it cannot tell yet.

A file of `cases/` has the id of its rule. A case is a small stack by logical names (`type` is the last part of the
token), and what the rule must find in it: where, how severe, in which words, for how much a month. `!unknown` and
`!secret` are values that nobody can see; `refs` are the resources that an input came from. `changes` are the steps of a
preview, with the inputs of both sides and the options of what stands.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from policies.changes import Change, Op
from policies.estimate.engine import estimate
from policies.estimate.model import Estimate
from policies.prices.book import PriceBook, load_book
from policies.resources import SECRET, STACK_TYPE, UNKNOWN, Resource, ResourceOptions, ResourceSet, Value
from policies.rules.engine import Judgement, run_rules
from policies.rules.model import PREFIXES, TITLE_LIMIT, Severity
from policies.rules.registry import rule, rules
from policies.rules.waivers import read_waivers
from policies.usage import Usage

HERE = Path(__file__).parent
AS_OF = datetime.date(2026, 11, 15)
TYPES = {
    "Address": "gcp:compute/address:Address",
    "AlertPolicy": "gcp:monitoring/alertPolicy:AlertPolicy",
    "AnywhereCache": "gcp:storage/anywhereCache:AnywhereCache",
    "AttachedDisk": "gcp:compute/attachedDisk:AttachedDisk",
    "Bucket": "gcp:storage/bucket:Bucket",
    "BucketIAMMember": "gcp:storage/bucketIAMMember:BucketIAMMember",
    "Budget": "gcp:billing/budget:Budget",
    "Cluster": "gcp:container/cluster:Cluster",
    "Disk": "gcp:compute/disk:Disk",
    "GlobalAddress": "gcp:compute/globalAddress:GlobalAddress",
    "Group": "gcp:compute/instanceGroupManager:InstanceGroupManager",
    "IAMMember": "gcp:projects/iAMMember:IAMMember",
    "Instance": "gcp:compute/instance:Instance",
    "NodePool": "gcp:container/nodePool:NodePool",
    "Provider": "pulumi:providers:gcp",
    "Queued": "gcp:tpu/v2QueuedResource:V2QueuedResource",
    "RegionDisk": "gcp:compute/regionDisk:RegionDisk",
    "ResourcePolicy": "gcp:compute/resourcePolicy:ResourcePolicy",
    "RouterNat": "gcp:compute/routerNat:RouterNat",
    "ServiceAccount": "gcp:serviceaccount/account:Account",
    "Snapshot": "gcp:compute/snapshot:Snapshot",
    "Subnetwork": "gcp:compute/subnetwork:Subnetwork",
    "Template": "gcp:compute/instanceTemplate:InstanceTemplate",
    "Topic": "gcp:pubsub/topic:Topic",
    "V2Vm": "gcp:tpu/v2Vm:V2Vm",
}
READS_NO_INPUT = {"PRICE-STALE", "STATE-REPLACED", "STATE-WAIVER-EXPIRED", "STATE-WAIVER-UNUSED"}
"""Rules about the estimate, the waivers or the kind of a step alone: no value can be hidden from them."""


class Loader(yaml.SafeLoader):
    """YAML with `!unknown` and `!secret`."""


Loader.add_constructor("!unknown", lambda loader, node: UNKNOWN)
Loader.add_constructor("!secret", lambda loader, node: SECRET)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One row of the table."""

    rule: str
    name: str
    stack: Mapping[str, Mapping[str, Any]]
    finds: tuple[Mapping[str, str], ...]
    usage: Mapping[str, Mapping[str, Any]]
    waivers: tuple[Mapping[str, Any], ...]
    changes: Mapping[str, Mapping[str, Any]]

    def judge(self, book: PriceBook) -> Judgement:
        resources = stack_of(self.stack)
        usage = Usage(
            entries={
                name: {key: Decimal(str(value)) for key, value in entry.items()} for name, entry in self.usage.items()
            }
        )
        priced = estimate(resources, usage, book, AS_OF)
        waivers = read_waivers(list(self.waivers))
        steps = [step(name, entry) for name, entry in self.changes.items()]
        return run_rules(resources, priced, AS_OF, waivers, book=book, only=(rule(self.rule),), changes=steps)


def stack_of(found: Mapping[str, Mapping[str, Any]]) -> ResourceSet:
    urns = {name: f"urn:pulumi:dev::acme::{TYPES[entry['type']]}::{name}" for name, entry in found.items()}
    stack = Resource(urn=f"urn:pulumi:dev::acme::{STACK_TYPE}::stack", type=STACK_TYPE, name="stack", custom=False)
    return ResourceSet((stack, *(resource(name, entry, urns) for name, entry in found.items())))


def resource(name: str, entry: Mapping[str, Any], urns: Mapping[str, str]) -> Resource:
    assert set(entry) <= {"type", "inputs", "outputs", "refs", "protect", "provider"}
    return Resource(
        urn=urns[name],
        type=TYPES[entry["type"]],
        name=name,
        inputs={key: plain(value) for key, value in entry.get("inputs", {}).items()},
        outputs={key: plain(value) for key, value in entry.get("outputs", {}).items()},
        options=ResourceOptions(
            protect=entry.get("protect", False),
            provider=f"{urns[entry['provider']]}::id" if "provider" in entry else "",
            property_dependencies={
                key: tuple(urns[other] for other in others) for key, others in entry.get("refs", {}).items()
            },
        ),
    )


def step(name: str, entry: Mapping[str, Any]) -> Change:
    assert set(entry) <= {"type", "op", "before", "after", "reasons", "changed", "protect", "retain"}
    urn = f"urn:pulumi:dev::acme::{TYPES[entry['type']]}::{name}"

    def side(inputs: Mapping[str, Any] | None) -> Resource | None:
        if inputs is None:
            return None
        options = ResourceOptions(protect=entry.get("protect", False), retain_on_delete=entry.get("retain", False))
        found = {key: plain(value) for key, value in inputs.items()}
        return Resource(urn=urn, type=TYPES[entry["type"]], name=name, inputs=found, options=options)

    return Change(
        urn=urn,
        op=Op(entry["op"]),
        before=side(entry.get("before")),
        after=side(entry.get("after")),
        replace_reasons=tuple(entry.get("reasons", ())),
        changed=tuple(entry.get("changed", ())),
    )


def plain(value: Any) -> Value:
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return tuple(plain(inner) for inner in value)
    return Decimal(str(value)) if isinstance(value, float) else value


def table() -> tuple[Case, ...]:
    rows = []
    for path in sorted((HERE / "cases").glob("*.yaml")):
        for row in yaml.load(path.read_text(), Loader=Loader):
            assert set(row) <= {"name", "stack", "finds", "usage", "waivers", "changes"}, path
            rows.append(
                Case(
                    rule=path.stem,
                    name=row["name"],
                    stack=row.get("stack", {}),
                    finds=tuple(row.get("finds", ())),
                    usage=row.get("usage", {}),
                    waivers=tuple(row.get("waivers", ())),
                    changes=row.get("changes", {}),
                )
            )
    return tuple(rows)


CASES = table()


@pytest.fixture(scope="module")
def book() -> PriceBook:
    return load_book(HERE / "book.csv")


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.rule}: {case.name}") for case in CASES])
def test_a_rule_finds_what_the_case_says(case: Case, book: PriceBook) -> None:
    judged = case.judge(book)
    found = [
        (
            finding.urn.rpartition("::")[2],
            finding.severity.value,
            str(finding.monthly.monthly.quantize(Decimal("0.01"))) if finding.monthly else None,
        )
        for finding in judged.findings
    ]
    assert found == [(want["at"], want["severity"], want.get("monthly")) for want in case.finds], judged.findings
    for finding, want in zip(judged.findings, case.finds, strict=True):
        assert want["says"] in finding.message
    if not case.finds:
        assert judged.passed == (rule(case.rule),), "the rule looked at nothing: the case proves nothing"


ODD: tuple[Value, ...] = (
    *(None, True, -1, 0, 10**12, Decimal("0.5"), "", "x", UNKNOWN, SECRET),
    *((), {}, ({},), ("x",), (None,), (UNKNOWN,), {"a": 1}),
)
"""What a file may hold where a rule looks for something else."""
NOTHING = Estimate(currency="USD", resources=())


def places(value: Value, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of everything in `value`."""
    if isinstance(value, Mapping):
        inner: Iterable[tuple[str | int, Value]] = value.items()
    else:
        inner = enumerate(value) if isinstance(value, tuple) else ()
    for key, each in inner:
        yield (*path, key)
        yield from places(each, (*path, key))


def with_odd(value: Value, path: tuple[str | int, ...], odd: Value) -> Value:
    """`value` with something else at `path`."""
    if not path:
        return odd
    if isinstance(value, Mapping):
        return {key: with_odd(each, path[1:], odd) if key == path[0] else each for key, each in value.items()}
    assert isinstance(value, tuple)
    return tuple(with_odd(each, path[1:], odd) if at == path[0] else each for at, each in enumerate(value))


def oddities(found: Resource) -> Iterator[Resource]:
    """The resource with each part of its inputs replaced by some other thing; a fourth of all, always the same."""
    chosen = random.Random(found.urn)
    for path in places(found.inputs):
        for odd in chosen.sample(ODD, 4):
            inputs = with_odd(found.inputs, path, odd)
            assert isinstance(inputs, Mapping)
            yield replace(found, inputs=inputs)


def attempts(case: Case) -> Iterator[tuple[ResourceSet, tuple[Change, ...]]]:
    """The stack and the steps of a case, each time with one oddity."""
    stack = tuple(stack_of(case.stack))
    for at, each in enumerate(stack):
        yield from ((ResourceSet((*stack[:at], odd, *stack[at + 1 :])), ()) for odd in oddities(each))
    for entry in (step(name, entry) for name, entry in case.changes.items()):
        if entry.before:
            yield from ((ResourceSet(stack), (replace(entry, before=odd),)) for odd in oddities(entry.before))
        if entry.after:
            yield from ((ResourceSet(stack), (replace(entry, after=odd),)) for odd in oddities(entry.after))


@pytest.mark.parametrize("name", rules())
def test_no_input_makes_a_rule_fail(name: str, book: PriceBook) -> None:
    tried = [attempt for case in CASES if case.rule == name for attempt in attempts(case)]
    assert tried
    for resources, changes in tried:
        judged = run_rules(resources, NOTHING, AS_OF, book=book, only=(rule(name),), changes=changes)
        assert [finding for finding in judged.findings if finding.failed] == []


@pytest.mark.parametrize("name", rules())
def test_every_rule_has_a_case_that_fails_one_that_passes_and_one_that_it_cannot_tell(name: str) -> None:
    mine = [case for case in CASES if case.rule == name]
    undecided = [case for case in mine if any("cannot tell yet: " in want["says"] for want in case.finds)]
    assert [case for case in mine if not case.finds], "no case passes"
    assert [case for case in mine if case.finds and case not in undecided], "no case fails"
    assert bool(undecided) is (name not in READS_NO_INPUT)


def test_every_file_of_cases_belongs_to_a_rule() -> None:
    assert {path.stem for path in (HERE / "cases").iterdir()} == set(rules())


@pytest.mark.parametrize("name", rules())
def test_the_prose_of_a_rule_is_fit_to_print(name: str) -> None:
    found = rules()[name]
    assert found.id.startswith(PREFIXES)
    assert found.id == found.id.upper()
    assert 0 < len(found.title) <= TITLE_LIMIT
    assert found.remediation.endswith(".")
    assert found.url.startswith("https://")
    assert len(set(found.applies_to)) == len(found.applies_to)


def test_a_rule_lives_in_the_file_of_its_name() -> None:
    folder = Path(rules.__wrapped__.__code__.co_filename).parent
    for name in rules():
        assert (folder / f"{name.lower().replace('-', '_')}.py").exists()


def test_the_shipped_severities_block_only_what_cannot_work_or_loses_data() -> None:
    errors = {name for name, found in rules().items() if found.severity is Severity.ERROR}
    assert len(rules()) >= 40
    assert {"TPU-ON-DEMAND", "DISK-DEFAULT-THROUGHPUT", "DISK-SHARED-WRITE", "GCS-FORCE-DESTROY"} <= errors
    assert errors.isdisjoint({"GCS-SOFT-DELETE", "DISK-THROUGHPUT-ABOVE-FLOOR", "PRICE-STALE", "TPU-ZONE-DEAR"})
