"""Which remedies are taken: labels, names, the half-seen world, and what the guard may do by itself."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from policies.audit.model import Audit, Remedy, RemedyKind, Verdict, VerdictKind
from policies.audit.record import Missing, Part, Record
from policies.audit.remedies.checking import check_plan
from policies.audit.remedies.planning import Choice, plan_remedies, setting_hint
from policies.errors import InputError
from policies.money import Amount
from tests.policies.report.audit_sample import NOW, audit

ZONE = "projects/p/zones/us-central1-b"
EVERYTHING = Choice()
OURS = (("env", "dev"), ("managed-by", "spotrail"), ("role", "model"))


def verdict(name: str, kind: RemedyKind, *, saving: int = 100, labels: Any = OURS, what: Any = None) -> Verdict:
    return Verdict(
        resource=f"{ZONE}/disks/{name}",
        type="compute.disk",
        location="us-central1-b",
        kind=what or VerdictKind.IDLE_UNATTACHED,
        remedy=Remedy(kind=kind, to_mibps=400, monthly_saving=Amount.by_month(saving), text="..."),
        message="no reader",
        labels=labels,
    )


def seen(*verdicts: Verdict) -> tuple[Audit, Record]:
    """The audit, and a record with a disk for each verdict."""
    found = dataclasses.replace(audit(gap=""), project="p", verdicts=verdicts, findings=())
    disks = tuple(
        {
            "id": str(number),
            "name": each.name,
            "selfLink": f"https://www.googleapis.com/compute/v1/{each.resource}",
            "provisionedThroughput": "1200",
            "metageneration": "1",
        }
        for number, each in enumerate(verdicts)
    )
    return found, Record(project="p", recorded_at=NOW, window=found.window, inventory={Part.DISKS: disks})


def names(*verdicts: Verdict, choice: Choice = EVERYTHING) -> list[str]:
    return [measure.resource.rpartition("/")[2] for measure in plan_remedies(*seen(*verdicts), choice).measures]


LOWER = RemedyKind.LOWER_THROUGHPUT
DELETE = RemedyKind.SNAPSHOT_THEN_DELETE


def test_what_saves_most_comes_first() -> None:
    assert names(verdict("a", LOWER, saving=5), verdict("b", DELETE, saving=50), verdict("c", LOWER, saving=7)) == [
        "b", "c", "a",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "why"),
    [
        ((), "it is not labelled managed-by=spotrail; name it with --resource"),
        ((("managed-by", "terraform"),), "it is not labelled managed-by=spotrail"),
        ((*OURS, ("protect", "true")), "it is labelled protect=true; name it with --resource"),
    ],
)
def test_what_is_not_ours_or_protected_has_to_be_named(labels: Any, why: str) -> None:
    plan = plan_remedies(*seen(verdict("a", LOWER, labels=labels)), Choice())
    assert plan.measures == ()
    assert plan.refused[0].why.startswith(why)
    assert names(verdict("a", LOWER, labels=labels), choice=Choice(resources=("a",))) == ["a"]


def test_only_what_is_named_is_touched() -> None:
    both = (verdict("a", LOWER), verdict("b", LOWER))
    assert names(*both, choice=Choice(resources=(f"{ZONE}/disks/b",))) == ["b"]
    link = f"https://www.googleapis.com/compute/v1/{ZONE}/disks/b"
    assert names(*both, choice=Choice(resources=(link,))) == ["b"]
    with pytest.raises(InputError, match=r'--resource "llamma": .* Did you mean llama'):
        names(verdict("llama", LOWER), choice=Choice(resources=("llamma",)))


def test_a_name_of_two_resources_is_refused() -> None:
    twin = dataclasses.replace(verdict("a", LOWER), resource="projects/p/zones/us-east1-d/disks/a")
    with pytest.raises(InputError, match="is the name of 2 resources"):
        names(verdict("a", LOWER), twin, choice=Choice(resources=("a",)))


def test_another_stack_is_left_alone() -> None:
    assert names(verdict("a", LOWER), choice=Choice(stack="dev")) == ["a"]
    plan = plan_remedies(*seen(verdict("a", LOWER)), Choice(stack="prod"))
    assert plan.refused[0].why == "it is of the stack dev, not of prod"


def test_the_guard_lowers_throughput_and_ends_what_is_over() -> None:
    ended = verdict("c", RemedyKind.DELETE_NODE, what=VerdictKind.EXPIRED)
    preempted = verdict("d", RemedyKind.DELETE_NODE, what=VerdictKind.PREEMPTED)
    safe = Choice(safe_only=True)
    assert sorted(names(verdict("a", LOWER), verdict("b", DELETE), ended, preempted, choice=safe)) == ["a", "c"]
    assert names(verdict("b", DELETE), choice=dataclasses.replace(safe, resources=("b",))) == []


@pytest.mark.parametrize("kind", [RemedyKind.DELETE_SNAPSHOT, RemedyKind.DELETE_IMAGE, RemedyKind.EXPIRE_VERSIONS])
def test_a_last_copy_goes_only_when_it_is_named(kind: RemedyKind) -> None:
    plan = plan_remedies(*seen(verdict("a", kind)), Choice())
    assert (plan.measures, plan.refused[0].why[:27]) == ((), "data of it is gone for good")
    assert names(verdict("a", kind), choice=Choice(resources=("a",))) == ["a"]


def test_what_a_training_run_calls_its_heartbeat_stands_for_no_disk() -> None:
    found, record = seen(verdict("a", LOWER))
    named = {"name": f"{ZONE}/disks/a", "id": "7", "provisionedThroughput": "1"}
    both = dataclasses.replace(record, inventory={**record.inventory, Part.HEARTBEATS: (named,)})
    assert plan_remedies(found, both, Choice()) == plan_remedies(found, record, Choice())


def test_a_schedule_has_to_be_given() -> None:
    by_the_clock = verdict("a", RemedyKind.SCHEDULE_THROUGHPUT)
    plan = plan_remedies(*seen(by_the_clock), Choice())
    assert plan.refused[0].why.startswith('its readers come and go: say when, as in --schedule "a=mon-fri')
    assert names(by_the_clock, choice=Choice(scheduled=("a",))) == ["a"]
    assert names(by_the_clock, choice=Choice(scheduled=("a",), safe_only=True)) == ["a"]
    assert names(by_the_clock, choice=Choice(scheduled=(f"{ZONE}/disks/a",), safe_only=True)) == ["a"]
    assert names(by_the_clock, choice=Choice(scheduled=("b",), safe_only=True)) == []


def test_a_half_seen_world_gets_no_measures() -> None:
    found, record = seen(verdict("a", LOWER))
    half = dataclasses.replace(record, missing=(Missing(part="tpu.nodes us-east1-d", why="403"),))
    plan = plan_remedies(found, half, Choice(resources=("a",)))
    assert plan.measures == ()
    assert "1 part of the project could not be read; nothing is done in a half-seen world" in plan.refused[0].why


@pytest.mark.parametrize(
    ("resource", "why"),
    [
        ("projects/other/zones/us-central1-b/disks/a", "it is of another project, other"),
        ("projects/p/zones/us-central1-b/disks/..", "names no resource"),
        ("b/../a", "names no resource"),
    ],
)
def test_a_link_that_leads_elsewhere_is_left_alone(resource: str, why: str) -> None:
    """A record is a file that somebody may have written; the other remedies stay."""
    found, record = seen(verdict("a", LOWER), dataclasses.replace(verdict("x", LOWER), resource=resource))
    plan = plan_remedies(found, record, Choice())
    assert [measure.resource for measure in plan.measures] == [f"{ZONE}/disks/a"]
    assert why in plan.refused[0].why


def test_a_project_may_be_named_by_its_number() -> None:
    found, record = seen(verdict("a", LOWER))
    plan = plan_remedies(dataclasses.replace(found, project="481516234210"), record, Choice())
    assert len(plan.measures) == 1
    check_plan(plan)


def test_what_the_record_does_not_hold_is_refused() -> None:
    found, record = seen(verdict("a", LOWER))
    plan = plan_remedies(found, dataclasses.replace(record, inventory={}), Choice())
    assert plan.refused[0].why == "the record does not hold it"


@pytest.mark.parametrize(
    ("labels", "kind", "text"),
    [
        (OURS, LOWER, "Pulumi.dev.yaml: set spotrail:model.throughput to 400, or the next up sets it back"),
        (OURS, DELETE, "Pulumi.dev.yaml: take the zone out of spotrail:serving.zones"),
        ((("env", "dev"), ("managed-by", "spotrail"), ("slice", "trainer-a")), RemedyKind.RESIZE_GROUP,
         "Pulumi.dev.yaml: take trainer-a out of spotrail:slices"),
        (OURS, RemedyKind.SCHEDULE_THROUGHPUT, "Pulumi.dev.yaml: set spotrail:model.schedule, so that the guard"),
        ((), LOWER, ""),
    ],
)  # fmt: skip
def test_the_stack_is_told_what_to_change(labels: Any, kind: RemedyKind, text: str) -> None:
    said = setting_hint("a", dict(labels), Remedy(kind=kind, to_mibps=400, text=""))
    assert said.startswith(text)
    assert bool(said) == bool(text)
