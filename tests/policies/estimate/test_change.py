"""A change: both sides priced, one entry a resource, and deltas that add up to the last digit."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.changes import Change, Op, Reading, SourceKind
from policies.estimate.change import ChangeEstimate, estimate_change
from policies.estimate.engine import estimate
from policies.estimate.model import total
from policies.money import ZERO
from policies.prices.book import PriceBook
from policies.resources import UNKNOWN, Resource, ResourceSet, Value
from policies.usage import Usage

AS_OF = datetime.date(2026, 11, 15)
DISK = "gcp:compute/disk:Disk"
ADDRESS = "gcp:compute/address:Address"
INSTANCE = "gcp:compute/instance:Instance"
VM = "gcp:tpu/v2Vm:V2Vm"
SMALL: Mapping[str, Value] = {
    "name": "model",
    "type": "hyperdisk-ml",
    "size": 100,
    "provisionedThroughput": 2400,
    "zone": "us-east5-b",
}
LARGE: Mapping[str, Value] = {**SMALL, "size": 140, "provisionedThroughput": 12000}

Make = Callable[..., Resource]
PriceChange = Callable[..., ChangeEstimate]


def preview(*changes: Change, hidden: int = 0, possible: tuple[Resource, ...] = ()) -> Reading:
    return Reading(
        kind=SourceKind.PREVIEW,
        project="p",
        stack="dev",
        before=ResourceSet(tuple(change.before for change in changes if change.before)),
        after=ResourceSet(tuple(change.after for change in changes if change.after)),
        changes=changes,
        hidden=hidden,
        possible=possible,
    )


def step(op: Op, before: Resource | None, after: Resource | None) -> Change:
    either = after or before
    assert either is not None
    return Change(urn=either.urn, op=op, before=before, after=after)


@pytest.fixture(scope="session")
def price_change(book: PriceBook) -> PriceChange:
    def priced(reading: Reading, usage: Usage | None = None) -> ChangeEstimate:
        return estimate_change(reading, usage or Usage(), book, AS_OF)

    return priced


@pytest.mark.parametrize("op", [Op.UPDATE, Op.REPLACE])
def test_a_growing_disk_is_one_resource_with_two_prices(make: Make, price_change: PriceChange, op: Op) -> None:
    found = price_change(preview(step(op, make(DISK, "model", SMALL), make(DISK, "model", LARGE))))
    # 100 x 0.08 + 2,400 x 0.12 = 296; 140 x 0.08 + 12,000 x 0.12 = 1,451.20
    assert found.before is not None
    assert (found.before.amount.monthly, found.after.amount.monthly) == (Decimal(296), Decimal("1451.2"))
    assert found.delta is not None
    assert found.delta.monthly == Decimal("1155.2")
    assert [(each.op, each.delta.monthly) for each in found.resources] == [(op, Decimal("1155.2"))]


def test_a_deletion_takes_its_price_away(make: Make, price_change: PriceChange) -> None:
    found = price_change(preview(step(Op.DELETE, make(DISK, "model", SMALL), None)))
    assert [(each.op, each.after, each.delta.monthly) for each in found.resources] == [(Op.DELETE, None, Decimal(-296))]
    assert (found.after.amount, found.delta) == (ZERO, found.resources[0].delta)


def test_what_is_hidden_leaves_the_change_known(make: Make, price_change: PriceChange) -> None:
    slice = make(VM, "trainer", {"acceleratorType": "v6e-16", "zone": "us-east5-b"})
    usage = Usage(entries={"a-hidden-bucket": {"gib": Decimal(5)}})
    found = price_change(preview(step(Op.CREATE, None, slice), hidden=4), usage)
    # 16 x 2.70 x 730
    assert found.delta is not None
    assert found.delta.monthly == Decimal(31536)
    assert (found.hidden, found.whole) == (4, False)
    # A key may be meant for what is hidden.
    assert found.after.notes == ()


def test_usage_may_speak_of_what_goes(make: Make, price_change: PriceChange) -> None:
    usage = Usage(entries={"model": {"attached_readers": Decimal(2)}, "modle": {"gib": Decimal(2)}})
    found = price_change(preview(step(Op.DELETE, make(DISK, "model", SMALL), None)), usage)
    assert found.after.notes == ("usage: modle matches no resource of this stack. Did you mean model?",)


def test_an_interrupted_creation_is_priced_outside_the_total(make: Make, price_change: PriceChange) -> None:
    orphan = make(DISK, "orphan", SMALL)
    state = Reading(kind=SourceKind.STATE, project="p", stack="dev", after=ResourceSet(()), possible=(orphan,))
    found = price_change(state)
    assert [each.amount.monthly for each in found.possible] == [Decimal(296)]
    assert (found.after.amount, found.resources, found.before, found.delta) == (ZERO, (), None, None)


@pytest.mark.parametrize(("kind", "op"), [(SourceKind.PROGRAM, Op.CREATE), (SourceKind.STATE, Op.SAME)])
def test_a_source_without_steps_lists_what_it_has(
    make: Make, price_change: PriceChange, kind: SourceKind, op: Op
) -> None:
    stack = ResourceSet((make("pulumi:pulumi:Stack", "p-dev"), make(DISK, "model", SMALL)))
    found = price_change(Reading(kind=kind, project="p", stack="dev", after=stack))
    assert [(each.urn, each.op, each.before) for each in found.resources] == [(stack.resources[1].urn, op, None)]
    assert found.after.amount.monthly == Decimal(296)


def test_two_files_without_steps_are_compared_by_urn(make: Make, price_change: PriceChange) -> None:
    kept, gone, new = (make(DISK, name, SMALL) for name in ("kept", "gone", "new"))
    found = price_change(
        Reading(
            kind=SourceKind.PREVIEW,
            project="p",
            stack="dev",
            before=ResourceSet((kept, gone)),
            after=ResourceSet((new, kept)),
        )
    )
    assert [(each.urn, each.op, each.delta.monthly) for each in found.resources] == [
        (new.urn, Op.CREATE, Decimal(296)),
        (kept.urn, Op.SAME, Decimal(0)),
        (gone.urn, Op.DELETE, Decimal(-296)),
    ]


def test_an_unchanged_address_that_loses_its_vm_changes_its_price(make: Make, price_change: PriceChange) -> None:
    address = make(ADDRESS, "front", {"name": "front", "region": "us-central1", "address": "203.0.113.7"})
    head = make(
        INSTANCE,
        "head",
        {
            "machineType": "e2-standard-4",
            "zone": "us-central1-b",
            "bootDisk": {"source": "boot"},
            "networkInterfaces": ({"accessConfigs": ({"natIp": "203.0.113.7"},)},),
        },
    )
    found = price_change(preview(step(Op.SAME, address, address), step(Op.DELETE, head, None)))
    kept, gone = found.resources
    # in use 0.005 x 730 = 3.65, reserved and unused 0.01 x 730 = 7.30
    assert kept.delta.monthly == Decimal("3.65")
    # 4 x 0.02 x 730 + 16 x 0.003 x 730 = 93.44
    assert gone.delta.monthly == Decimal("-93.44")


def test_an_unknown_size_makes_one_side_a_lower_bound(make: Make, price_change: PriceChange) -> None:
    later = make(DISK, "model", {**SMALL, "size": UNKNOWN})
    found = price_change(preview(step(Op.UPDATE, make(DISK, "model", SMALL), later)))
    assert found.before is not None
    assert (found.before.complete, found.after.complete) == (True, False)
    assert found.after.amount.monthly == Decimal(288)


sides = st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(any)
"""For a resource, which of three disks it is before and after; 0 is none."""


@given(stack=st.lists(sides, max_size=12), hidden=st.integers(0, 3))
@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_deltas_add_up_exactly(
    make: Make, book: PriceBook, price_change: PriceChange, stack: list[tuple[int, int]], hidden: int
) -> None:
    # 7 GiB of extreme by the month and 3 vCPUs by the hour: parts that no number of cents can hold.
    kinds: tuple[Mapping[str, Value], ...] = (
        SMALL,
        {"type": "hyperdisk-extreme", "size": 7, "provisionedIops": 333, "zone": "us-central1-b"},
        {**LARGE, "size": UNKNOWN},
    )

    def disk(index: int, kind: int) -> Resource | None:
        return make(DISK, f"disk-{index}", kinds[kind - 1]) if kind else None

    changes = []
    for index, (old, new) in enumerate(stack):
        op = (Op.SAME if old == new else Op.UPDATE) if old and new else Op.CREATE if new else Op.DELETE
        changes.append(step(op, disk(index, old), disk(index, new)))
    reading = preview(*changes, hidden=hidden)
    found = price_change(reading)
    assert [each.urn for each in found.resources] == [change.urn for change in changes]
    assert found.delta == total(each.delta for each in found.resources)
    assert all(each.delta == ZERO for each in found.resources if each.op is Op.SAME)
    assert found.after.amount == estimate(reading.after, Usage(), book, AS_OF).amount
    assert found.delta is not None
    by_hand = sum((price(new) - price(old) for old, new in stack), Fraction(0))
    assert found.delta.per_month == by_hand


def price(kind: int) -> Fraction:
    """296; 7 x 0.125 + 333 x 0.032; of the unknown size the throughput alone, 12,000 x 0.12."""
    return (Fraction(0), Fraction(296), Fraction("11.531"), Fraction(1440))[kind]
