"""A plan that is killed anywhere and run again ends in the same world as one that was not."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.audit.model import Remedy, RemedyKind, VerdictKind
from policies.audit.remedies.applying import Outcome, Result, apply_plan
from policies.audit.remedies.model import Measure, RemedyPlan, Step
from policies.audit.remedies.steps import steps_of
from tests.policies.audit.remedies.small_world import DISK, SNAPSHOT, Killed, SmallWorld
from tests.policies.report.audit_sample import NOW

ADDRESS = "projects/p/regions/us-central1/addresses/ip"
SERVE = "projects/p/zones/us-central1-b/disks/serve"
HOST = "projects/p/zones/us-central1-b/instances/vm"
HOSTS = tuple(f"projects/p/zones/us-central1-b/instances/{name}" for name in "abc")
PARKED = "projects/p/zones/us-central1-b/disks/parked"
STEPS = 7


def world() -> dict[str, dict[str, Any]]:
    return {
        DISK: {"id": "42", "name": "llama", "provisionedThroughput": "12000"},
        SERVE: {"id": "43", "name": "serve", "provisionedThroughput": "2400", "users": [HOST]},
        ADDRESS: {"id": "7", "name": "ip", "status": "RESERVED"},
        HOST: {"id": "9", "name": "vm", "status": "RUNNING"},
        HOSTS[0]: {"id": "10", "name": "a", "status": "TERMINATED"},
        HOSTS[1]: {"id": "11", "name": "b", "status": "TERMINATED"},
        HOSTS[2]: {"id": "12", "name": "c", "status": "TERMINATED"},
        PARKED: {"id": "44", "name": "parked", "users": [*HOSTS]},
    }


def measure(resource: str, kind: RemedyKind, mibps: int | None = None) -> Measure:
    steps = steps_of(resource, Remedy(kind=kind, to_mibps=mibps, text=""), world()[resource])
    return Measure(resource=resource, verdict=VerdictKind.ORPHANED, kind=kind, saving=None, why="because", steps=steps)


def plan() -> RemedyPlan:
    return RemedyPlan(
        project="p",
        recorded_at=NOW,
        measures=(
            measure(DISK, RemedyKind.SNAPSHOT_THEN_DELETE),
            measure(SERVE, RemedyKind.LOWER_THROUGHPUT, 400),
            measure(ADDRESS, RemedyKind.RELEASE_ADDRESS),
            measure(PARKED, RemedyKind.DETACH),
        ),
    )


def yes(_: Measure, __: Step) -> bool:
    return True


def outcomes(hands: SmallWorld, of: RemedyPlan | None = None) -> list[Outcome]:
    return [result.outcome for result in apply_plan(of or plan(), hands, yes)]


def finished() -> dict[str, dict[str, Any]]:
    hands = SmallWorld(world())
    assert outcomes(hands) == [Outcome.DONE] * STEPS
    return hands.items


def test_an_uninterrupted_run_does_each_step_once() -> None:
    end = finished()
    assert set(end) == {SNAPSHOT, SERVE, HOST, PARKED, *HOSTS}
    assert end[PARKED]["users"] == []
    assert end[SERVE]["provisionedThroughput"] == "400"


def test_a_second_run_does_nothing() -> None:
    hands = SmallWorld(finished())
    assert outcomes(hands) == [Outcome.ALREADY] * STEPS
    assert hands.acted == []


def test_killed_at_any_call_and_run_again_it_ends_in_the_same_world() -> None:
    calls = SmallWorld(world())
    outcomes(calls)
    assert calls.calls > 10
    for killed_at in range(calls.calls):
        hands = SmallWorld(world(), killed_at=killed_at)
        with pytest.raises(Killed):
            outcomes(hands)
        again = SmallWorld(hands.items)
        assert all(outcome.good for outcome in outcomes(again)), killed_at
        assert again.items == finished(), killed_at
        assert sorted(hands.acted + again.acted) == sorted(calls.acted), killed_at


@given(st.lists(st.integers(0, 60), max_size=6))
def test_killed_again_and_again(kills: list[int]) -> None:
    items = world()
    for killed_at in kills:
        hands = SmallWorld(items, killed_at=killed_at)
        try:
            outcomes(hands)
        except Killed:
            items = hands.items
    again = SmallWorld(items)
    outcomes(again)
    assert again.items == finished()


@pytest.mark.parametrize("step", range(STEPS))
def test_a_lost_answer_is_no_failure(step: int) -> None:
    text = [each.text for one in plan().measures for each in one.steps][step]
    hands = SmallWorld(world(), lost=frozenset({text}))
    assert outcomes(hands) == [Outcome.DONE] * STEPS
    assert hands.items == finished()


def test_a_disk_is_never_deleted_without_its_snapshot() -> None:
    first = plan().measures[0].steps[0].text
    hands = SmallWorld(world(), fails=frozenset({first}))
    assert outcomes(hands) == [Outcome.FAILED, Outcome.SKIPPED, *[Outcome.DONE] * 5]
    assert DISK in hands.items


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({DISK: {"users": [HOST]}}, "llama: users is"),
        ({DISK: {"id": "77"}}, "llama: id is 77, where 42 was expected"),
        ({DISK: {"lastAttachTimestamp": "2026-11-28T00:00:00Z"}}, "llama: lastAttachTimestamp is 2026-11-28T00:00:00Z"),
    ],
)
def test_a_changed_world_is_refused(change: dict[str, dict[str, Any]], why: str) -> None:
    items = world()
    for resource, fields in change.items():
        items[resource].update(fields)
    before = copy.deepcopy(items[DISK])
    hands = SmallWorld(items)
    results = list(apply_plan(plan(), hands, yes))
    assert [result.outcome for result in results[:2]] == [Outcome.CHANGED, Outcome.SKIPPED]
    assert results[0].why.startswith(why)
    assert hands.items[DISK] == before


def test_a_world_that_changes_while_the_question_is_asked_is_refused() -> None:
    hands = SmallWorld(world())

    def attach_first(_: Measure, __: Step) -> bool:
        hands.items[DISK]["users"] = [HOST]
        return True

    results = list(apply_plan(plan(), hands, attach_first))
    assert results[0].outcome is Outcome.CHANGED
    assert DISK in hands.items


def test_what_is_declined_is_left_alone() -> None:
    hands = SmallWorld(world())
    results: list[Result] = list(apply_plan(plan(), hands, lambda _, __: False))
    assert [each.outcome for each in results] == [
        Outcome.DECLINED, Outcome.SKIPPED, *[Outcome.DECLINED] * 3, *[Outcome.SKIPPED] * 2,
    ]  # fmt: skip
    assert hands.items == world()


def test_a_snapshot_of_before_somebody_wrote_is_not_taken_for_one_of_now() -> None:
    items = world()
    first = measure(DISK, RemedyKind.SNAPSHOT_THEN_DELETE)
    hands = SmallWorld(items, killed_at=6)
    with pytest.raises(Killed):
        outcomes(hands, RemedyPlan(project="p", recorded_at=NOW, measures=(first,)))
    assert SNAPSHOT in hands.items
    # Attached, written to and detached again: what the first snapshot holds is old.
    hands.items[DISK].update(lastAttachTimestamp="2026-11-27T00:00:00Z", lastDetachTimestamp="2026-11-28T00:00:00Z")
    items = hands.items
    assert outcomes(SmallWorld(items), RemedyPlan(project="p", recorded_at=NOW, measures=(first,))) == [
        Outcome.ALREADY, Outcome.CHANGED,
    ]  # fmt: skip
    steps = steps_of(DISK, Remedy(kind=RemedyKind.SNAPSHOT_THEN_DELETE, text=""), items[DISK])
    second = dataclasses.replace(first, steps=steps)
    again = SmallWorld(items)
    assert outcomes(again, RemedyPlan(project="p", recorded_at=NOW, measures=(second,))) == [Outcome.DONE] * 2
    assert again.acted == ["create-snapshot", "delete-disk"]
    assert len([link for link in again.items if "/snapshots/" in link]) == 2
