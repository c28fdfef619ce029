"""Cloud Run jobs: runs that usage names, and the hydration of a model version as a one-off."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal

import pytest

from policies.estimate.model import Estimate, ResourceEstimate
from policies.resources import SECRET, UNKNOWN, Resource, Value

JOB = "gcp:cloudrunv2/job:Job"
SNAPSHOT = "gcp:compute/snapshot:Snapshot"
ENVIRONMENT: Mapping[str, Value] = {
    "SPOTRAIL_STAGING_TYPE": "hyperdisk-balanced",
    "SPOTRAIL_STAGING_GIB": "200",
    "SPOTRAIL_STAGING_IOPS": "3000",
    "SPOTRAIL_STAGING_THROUGHPUT": "240",
    "SPOTRAIL_HYDRATOR_MACHINE": "e2-standard-4",
    "SPOTRAIL_HYDRATOR_BOOT_TYPE": "pd-balanced",
    "SPOTRAIL_HYDRATOR_BOOT_GIB": "20",
    "SPOTRAIL_ZONE": "us-central1-b",
}

Make = Callable[..., Resource]
PriceFirst = Callable[..., ResourceEstimate]
RefusalOf = Callable[[Resource], str]
PriceStack = Callable[..., Estimate]


def job(limits: Value = None, environment: Mapping[str, Value] | None = None, **inputs: Value) -> Mapping[str, Value]:
    envs = tuple({"name": name, "value": value} for name, value in (environment or {}).items())
    container: Mapping[str, Value] = {"image": "gcloud", "resources": {"limits": limits}, "envs": envs}
    return {"location": "us-central1", "template": {"template": {"containers": (container,)}}, **inputs}


@pytest.mark.parametrize(
    ("limits", "usage", "monthly"),
    [
        # 1 vCPU and 0.5 GiB by default: 720 runs x 60 s = 43,200 s x (0.000018 + 0.5 x 0.000002) = 0.8208
        (None, {"executions": "720"}, "0.8208"),
        # 720 x 100 s = 72,000 s x (2 x 0.000018 + 4 x 0.000002) = 72,000 x 0.000044 = 3.168
        ({"cpu": "2", "memory": "4Gi"}, {"executions": "720", "execution_seconds": "100"}, "3.168"),
        # 500m is half a vCPU, 1G is 0.931... GiB: 1,000 x (0.5 x 0.000018) + 1,000 x 10^9/2^30 x 0.000002
        ({"cpu": "500m", "memory": "1G"}, {"executions": "10", "execution_seconds": "100"}, "0.010862645149"),
    ],
)
def test_a_job_bills_its_seconds(
    make: Make, price_first: PriceFirst, limits: Value, usage: Mapping[str, str], monthly: str
) -> None:
    found = price_first(make(JOB, inputs=job(limits)), it=usage)
    assert round(found.amount.monthly, 12) == Decimal(monthly)
    assert found.complete


def test_every_task_of_a_run_bills(make: Make, price_first: PriceFirst) -> None:
    template = {"taskCount": 3, "template": {"containers": ({"image": "x"},)}}
    found = price_first(make(JOB, inputs={"location": "us-central1", "template": template}), it={"executions": "240"})
    assert found.amount.monthly == Decimal("0.8208")


def test_an_unused_job_costs_nothing_and_says_what_to_set(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(JOB, "guard", job()))
    assert (found.amount.monthly, found.complete) == (Decimal(0), True)
    assert {line.note for line in found.components} == {"set usage.guard.executions"}


@pytest.mark.parametrize(
    ("inputs", "path"),
    [
        ({"location": None}, "location"),
        ({"template": {"template": UNKNOWN}}, "template.template.containers"),
        ({"template": {"taskCount": UNKNOWN}}, "template.taskCount"),
        (job({"cpu": UNKNOWN}), "template.template.containers[0].resources.limits.cpu"),
    ],
)
def test_what_cannot_be_seen_stays_unknown(
    make: Make, price_first: PriceFirst, inputs: Mapping[str, Value], path: str
) -> None:
    assert [part.path for part in price_first(make(JOB, inputs={**job(), **inputs})).unknown] == [path]


def test_a_limit_that_is_no_quantity_is_refused(make: Make, refusal_of: RefusalOf) -> None:
    assert re.search(
        r"limits\.memory is 'much'; it must be a quantity such as",
        refusal_of(make(JOB, inputs=job({"memory": "much"}))),
    )


def hydration_stack(make: Make, **environment: Value) -> tuple[Resource, ...]:
    inputs = job({"cpu": "1", "memory": "1Gi"}, {**ENVIRONMENT, **environment}, labels={"role": "hydrate"})
    fill = make(JOB, "llama-fill", inputs)
    labels = {"spotrail-size-gib": "200"}
    snapshot = make(
        SNAPSHOT, "llama", {"storageLocations": ("us-central1",), "labels": labels}, dependencies=(fill.urn,)
    )
    return fill, snapshot, make(JOB, "llama-clean", inputs, dependencies=(snapshot.urn,))


def test_a_hydration_has_its_price_once_and_outside_the_total(make: Make, price_stack: PriceStack) -> None:
    found = price_stack(*hydration_stack(make))
    (once,) = found.one_off
    # For one hour of 730 in a month:
    #   staging disk 200 x 0.08 / 730 = 16/730; throughput (240 - 140) x 0.04 / 730 = 4/730; no IOPS above 3,000
    #   hydrator 4 x 0.02 + 16 x 0.003 = 0.128; its boot disk 20 x 0.10 / 730 = 2/730
    #   job 3,600 x (0.000018 + 0.000002) = 0.072
    # 0.200 + 22/730 = 0.230136986301...
    assert [line.name for line in once.lines] == [
        "staging disk hyperdisk-balanced",
        "staging disk throughput",
        "vCPU",
        "memory",
        "hydrator boot disk pd-balanced",
        "job vCPU",
        "job memory",
    ]
    assert once.cost == Decimal("0.230136986301")
    assert not once.unpriced
    # The month knows the snapshot only: 200 x 0.05.
    assert found.amount.monthly == Decimal(10)
    assert found.resources[0].free == "runs once for each model version: see the one-off"


def test_a_longer_hydration_costs_more(make: Make, price_stack: PriceStack) -> None:
    (once,) = price_stack(*hydration_stack(make), **{"llama-fill": {"hydration_hours": "3"}}).one_off
    # 3 x 0.200 + 66/730
    assert once.cost == Decimal("0.690410958904")


@pytest.mark.parametrize(
    ("environment", "items"),
    [
        ({"SPOTRAIL_HYDRATOR_BOOT_TYPE": ""}, ["SPOTRAIL_HYDRATOR_BOOT_TYPE"]),
        ({"SPOTRAIL_HYDRATOR_MACHINE": UNKNOWN}, ["SPOTRAIL_HYDRATOR_MACHINE"]),
        ({"SPOTRAIL_STAGING_TYPE": SECRET}, ["SPOTRAIL_STAGING_TYPE"]),
        ({"SPOTRAIL_ZONE": ""}, ["SPOTRAIL_ZONE"]),
        (
            {"SPOTRAIL_ZONE": "us-east5-b"},
            [
                *["disk.hyperdisk-balanced.capacity", "disk.hyperdisk-balanced.throughput"],
                *["instance.e2.vcpu", "instance.e2.memory"],
            ],
        ),
    ],
)
def test_what_is_missing_of_a_hydration_is_named(
    make: Make, price_stack: PriceStack, environment: Mapping[str, Value], items: list[str]
) -> None:
    (once,) = price_stack(*hydration_stack(make, **environment)).one_off
    assert [part.item for part in once.unpriced] == items


def test_a_size_that_is_no_number_is_refused(make: Make, price_stack: PriceStack) -> None:
    (once,) = price_stack(*hydration_stack(make, SPOTRAIL_STAGING_GIB="big")).one_off
    assert [part.reason for part in once.unpriced] == ["SPOTRAIL_STAGING_GIB is 'big'; it must be a whole number"]


def test_the_gpu_of_a_job_has_no_price(make: Make, price_first: PriceFirst) -> None:
    template = {"template": {"containers": ({"image": "x"},), "nodeSelector": {"accelerator": "nvidia-l4"}}}
    found = price_first(make(JOB, inputs={"location": "us-central1", "template": template}))
    assert [part.item for part in found.unpriced] == ["run.job.accelerator"]
