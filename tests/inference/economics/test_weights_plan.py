"""The plan for weights, against figures that are computed by hand, and its optimum against every other choice."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from inference.economics.assumptions import BUCKET_RATE, VM_CAP
from inference.economics.weights_sources import Rates, Source
from inference.weights_plan import Plan, Way, best_cost, break_evens, cost_at, curve
from policies.errors import InputError
from policies.hardware.slices import shape
from policies.prices.book import PriceModel

PlanOf = Callable[..., Plan]
# 16 replicas x 8 a day x 730/24 days
STARTS = Fraction(16 * 8 * 730, 24)
CHIP = Fraction(6, 10)
MIB = 120 * 1024


def way(plan: Plan, source: Source) -> Way:
    (found,) = (each for each in plan.ways if each.source is source)
    return found


def line(found: Way, name: str) -> Fraction:
    (amount,) = (each.monthly for each in found.lines if each.name == name)
    assert amount is not None
    return amount


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        # 122,880 MiB by: the volume of 1200 for one reader; 1000 through FUSE; 2000 downloaded, then 5000 from memory
        ({"throughput": 1200}, (Fraction(1024, 10), Fraction(12288, 100), Fraction(6144, 100) + Fraction(24576, 1000))),
        # a VM reads 2400 of a volume that has more
        ({"throughput": 9600}, (Fraction(512, 10), Fraction(12288, 100), Fraction(86016, 1000))),
        # four at once share the 1200
        ({"throughput": 1200, "at_once": 4}, (Fraction(4096, 10), Fraction(12288, 100), Fraction(86016, 1000))),
        # a replica of four hosts, each with a quarter: a host reads 30,720 MiB, and four of them share
        (
            {"throughput": 1200, "shape": shape("v6e-16"), "hosts": 4, "replicas": 8},
            (Fraction(1024, 10), Fraction(3072, 100), Fraction(21504, 1000)),
        ),
        # each of them reads everything
        (
            {"throughput": 1200, "shape": shape("v6e-16"), "hosts": 4, "replicas": 8, "whole": True},
            (Fraction(4096, 10), Fraction(12288, 100), Fraction(86016, 1000)),
        ),
    ],
)
def test_cold_starts(changes: dict[str, Any], seconds: tuple[Fraction, ...], plan_of: PlanOf) -> None:
    assert tuple(each.start.seconds for each in plan_of(**changes).ways) == seconds


def test_readers_share_the_bucket(plan_of: PlanOf) -> None:
    # 8.388608 Gbit/s are 1000 MiB/s, for 16 replicas
    rates = Rates(bucket=BUCKET_RATE.given(Decimal("8.388608")))
    plan = plan_of(at_once=16, rates=rates)
    for source in (Source.FUSE, Source.DOWNLOAD):
        start = way(plan, source).start
        assert (start.mibps, start.limit) == (Fraction(1000, 16), "its share of the bucket")


def test_the_bill_of_a_volume(plan_of: PlanOf) -> None:
    found = way(plan_of(throughput=1200), Source.DISK)
    # 120 GiB and 5 % are 126; an hour of a second volume for the one update; 104.2 s of 8 chips a start
    assert {each.name: each.monthly for each in found.lines} == {
        "bucket": Fraction(240, 100),
        "uploads (class A)": Fraction(30 * 5, 10**6),
        "volume capacity": Fraction(126 * 8, 100),
        "volume throughput": Fraction(144),
        "second volume at updates, capacity": Fraction(126 * 8, 73_000),
        "second volume at updates, throughput": Fraction(144, 730),
        "snapshot of the volume": Fraction(6),
        "reads (class B)": Fraction(3840 * 4, 10**7),
        "transfer out of the bucket": Fraction(0),
        "accelerators waiting": pytest.approx(STARTS * Fraction(1024, 10) / 3600 * 8 * CHIP, abs=1e-9),
    }
    assert found.monthly == sum(each.monthly or 0 for each in found.lines)
    assert found.fixed + found.by_starts == found.monthly


def test_the_bill_of_a_bucket(plan_of: PlanOf) -> None:
    fuse, download = (way(plan_of(), source) for source in (Source.FUSE, Source.DOWNLOAD))
    # 30 files of 4 GiB: one look at each, and 615 pieces of 200 MiB or 3840 of 32 MiB
    assert line(fuse, "reads (class B)") == pytest.approx(STARTS * 645 * Fraction(4, 10**7), abs=1e-9)
    assert line(download, "reads (class B)") == pytest.approx(STARTS * 3870 * Fraction(4, 10**7), abs=1e-9)
    assert line(fuse, "listings (class A)") == pytest.approx(STARTS * Fraction(5, 10**6), abs=1e-9)
    assert line(download, "accelerators waiting") == pytest.approx(
        STARTS * Fraction(86016, 1000) / 3600 * 8 * CHIP, abs=1e-9
    )
    memory = {each.name: (each.quantity, each.monthly) for each in (*fuse.lines, *download.lines)}
    assert memory["file cache in memory"] == memory["RAM disk"] == (Fraction(16 * 120), Fraction(0))


def test_what_is_paid_while_nobody_reads(plan_of: PlanOf) -> None:
    plan = plan_of(throughput=1200)
    # 3893.3 starts, one at a time, of 102.4 s are 110.7 of 730 hours
    assert plan.idle == 1 - STARTS * Fraction(1024, 10) / 3600 / 730
    assert plan_of(throughput=400, restarts_per_day=Fraction(1000)).idle == 0


def test_a_bucket_in_another_region_is_paid_by_the_gib(plan_of: PlanOf) -> None:
    plan = plan_of(bucket="us-east1")
    assert line(way(plan, Source.DOWNLOAD), "transfer out of the bucket") == pytest.approx(
        STARTS * 120 * Fraction(2, 100), abs=1e-9
    )
    # A volume is filled once a version.
    assert line(way(plan, Source.DISK), "transfer out of the bucket") == Fraction(240, 100)
    assert plan.cheapest is way(plan, Source.DISK)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"at_once": 16},
        {"at_once": 16, "restarts_per_day": Fraction(1, 10)},
        {"at_once": 4, "restarts_per_day": Fraction(40), "capacity": PriceModel.ON_DEMAND},
        {"replicas": 30, "at_once": 30, "updates_per_month": Fraction(200)},
    ],
)
def test_no_other_throughput_is_cheaper(changes: dict[str, Any], plan_of: PlanOf) -> None:
    plan = plan_of(**changes)
    assert plan.best == plan.throughput
    best = way(plan, Source.DISK).monthly
    tried = {plan.fleet.least, plan.fleet.most, *(mibps for mibps, _ in list(curve(plan))[::5])}
    tried |= {plan.throughput - 1, plan.throughput + 1}
    within = sorted(mibps for mibps in tried if plan.fleet.least <= mibps <= plan.fleet.most)
    assert len(within) > 2
    for mibps in within:
        other = plan_of(**changes, throughput=mibps)
        assert way(other, Source.DISK).monthly >= best - Fraction(1, 10**6)


def test_the_best_throughput_by_hand(plan_of: PlanOf) -> None:
    plan = plan_of(at_once=16, updates_per_month=Fraction(0))
    # sqrt(starts x 4.80 an hour x 122,880 MiB x 16 readers / 3600 / 0.12) = 9222.3
    b = STARTS * 8 * CHIP * MIB * 16 / 3600
    assert abs(plan.throughput**2 - b / Fraction(12, 100)) < 2 * plan.throughput
    assert plan.throughput == 9222


def test_throughput_stays_within_what_the_volume_and_its_readers_take(plan_of: PlanOf) -> None:
    seldom, often = plan_of(restarts_per_day=Fraction(1, 100)), plan_of(restarts_per_day=Fraction(200))
    assert (seldom.throughput, often.throughput) == (400, 2400)
    # 30 readers need 20 MiB/s each
    assert plan_of(replicas=30, restarts_per_day=Fraction(1, 1000)).throughput == 600
    faster = Rates(vm_cap=VM_CAP.given(Decimal(5000)))
    assert plan_of(restarts_per_day=Fraction(200), rates=faster).throughput == 5000


def test_unset_google_provisions_by_the_size(plan_of: PlanOf) -> None:
    assert plan_of().unset == 24 * 126


def test_break_even_is_where_the_costs_meet(plan_of: PlanOf) -> None:
    plan = plan_of()
    found = {(each.cheaper, each.than): each.restarts_per_day for each in break_evens(plan)}
    at = found[Source.DISK, Source.DOWNLOAD]
    download = way(plan, Source.DOWNLOAD)
    for restarts, wins in ((at, True), (at - Fraction(2, 1000), False)):
        again = plan_of(restarts_per_day=restarts)
        assert (way(again, Source.DISK).monthly < way(again, Source.DOWNLOAD).monthly) is wins
        assert best_cost(plan, restarts) == pytest.approx(way(again, Source.DISK).monthly, abs=1e-6)
        assert cost_at(download, plan, restarts) == pytest.approx(way(again, Source.DOWNLOAD).monthly, abs=1e-6)


def test_break_even_with_a_throughput_that_was_given(plan_of: PlanOf) -> None:
    plan = plan_of(throughput=2400)
    (at,) = (
        each.restarts_per_day for each in break_evens(plan) if each.than is Source.FUSE and each.cheaper is Source.DISK
    )
    disk, fuse = way(plan, Source.DISK), way(plan, Source.FUSE)
    assert cost_at(disk, plan, at) == cost_at(fuse, plan, at)
    assert at == (disk.fixed - fuse.fixed) / ((fuse.by_starts - disk.by_starts) / 8)


def test_a_way_that_is_never_cheaper_has_no_break_even(plan_of: PlanOf) -> None:
    found = break_evens(plan_of(throughput=400, at_once=16))
    assert [each for each in found if each.cheaper is Source.DISK] == []


@pytest.mark.parametrize(
    ("item", "incomplete", "known"),
    [
        ("disk.hyperdisk-ml.throughput", [Source.DISK], Source.DOWNLOAD),
        ("snapshot.standard.capacity", [Source.DISK], Source.DOWNLOAD),
        ("storage.standard.class-b", list(Source), None),
        ("tpu.v6e.chip", list(Source), None),
    ],
)
def test_without_a_price_nothing_is_called_cheapest(
    item: str, incomplete: list[Source], known: Source | None, plan_of: PlanOf
) -> None:
    plan = plan_of(left_out=[item])
    assert [each.source for each in plan.ways if not each.complete] == incomplete
    assert plan.cheapest is None
    assert {missing.item for missing in plan.missing} == {item}
    assert (plan.cheapest_known.source if plan.cheapest_known else None) is known
    assert (plan.best is None) is (item in ("disk.hyperdisk-ml.throughput", "tpu.v6e.chip"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"at_once": 17}, r"--at-once 17: there are 16 replicas; name at most so many"),
        ({"replicas": 2501}, r"one hyperdisk-ml volume has at most 2,500 readers"),
        ({"throughput": 300}, r"throughput 300 MiB/s: hyperdisk-ml of 126 GiB takes 400 to 201,600 MiB/s"),
        ({"throughput": 300_000}, r"takes 400 to 201,600 MiB/s"),
        (
            {"replicas": 100, "at_once": 1, "throughput": 1999},
            r"--throughput 1999: 100 readers need at least 2000 MiB/s",
        ),
        ({"size_bytes": 2**47}, r"size 137,626 GiB: hyperdisk-ml takes 4 to 65,536 GiB"),
        ({"restarts_per_day": Fraction(0)}, r"--restarts-per-day 0: nothing to plan"),
    ],
)
def test_fleets_that_cannot_be(changes: dict[str, Any], message: str, plan_of: PlanOf) -> None:
    with pytest.raises(InputError, match=message):
        plan_of(**changes)


def test_what_does_not_fit_is_warned_of(plan_of: PlanOf) -> None:
    plan = plan_of(size_bytes=800 * 2**30)
    # 8 x 32 GB x 0.9; twice 800 GiB in memory of 1,440
    assert way(plan, Source.DISK).warnings == ("v6e-8 has 215 GiB for weights: 800 GiB do not fit",)
    assert way(plan, Source.FUSE).warnings[0].startswith("GCS FUSE: 1.56 TiB of memory are needed on each host")
    assert [each.warnings for each in plan_of().ways] == [(), (), ()]
