"""Cloud Run services: kept instances are counted, the rest is usage, and neither is free for want of a price."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

import pytest

from policies.estimate.model import ResourceEstimate
from policies.resources import UNKNOWN, Resource, Value

SERVICE = "gcp:cloudrunv2/service:Service"
SIZE: Mapping[str, Value] = {"resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}

Make = Callable[..., Resource]
PriceFirst = Callable[..., ResourceEstimate]


def service(**template: Value) -> Mapping[str, Value]:
    return {"location": "us-central1", "template": {"containers": (SIZE,), **template}}


def test_kept_instances_are_counted_all_month(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(SERVICE, inputs=service(scaling={"minInstanceCount": 3})))
    # 3 x 2 vCPU x 730 x 3,600 s and 3 x 1 GiB x 730 x 3,600 s
    assert [(part.item, part.quantity, part.unit) for part in found.unpriced] == [
        ("run.service.vcpu-kept", Decimal(15768000), "vCPU-second"),
        ("run.service.memory-kept", Decimal(7884000), "GiB-second"),
    ]


def test_requests_are_usage(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(SERVICE, inputs=service()), it={"executions": "500000", "execution_seconds": "0.2"})
    # 500,000 x 0.2 s = 100,000 s of 2 vCPUs and 1 GiB
    assert [(part.item, part.quantity) for part in found.unpriced] == [
        ("run.service.vcpu", Decimal(200000)),
        ("run.service.memory", Decimal(100000)),
        ("run.service.requests", Decimal("0.5")),
    ]


def test_an_idle_service_says_when_it_would_be_unpriced(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(SERVICE, inputs=service()))
    assert found.complete
    assert len(found.notes) == 3
    assert all("unpriced as soon as usage.it.executions is set" in note for note in found.notes)


def test_gpus_have_no_price(make: Make, price_first: PriceFirst) -> None:
    found = price_first(make(SERVICE, inputs=service(nodeSelector={"accelerator": "nvidia-l4"})))
    assert [part.item for part in found.unpriced] == ["run.service.accelerator"]


@pytest.mark.parametrize(
    ("inputs", "path"),
    [
        ({**service(), "location": UNKNOWN}, "location"),
        ({"location": "us-central1", "template": {"containers": UNKNOWN}}, "template.containers"),
        ({**service(), "scaling": {"minInstanceCount": UNKNOWN}}, "scaling.minInstanceCount"),
    ],
)
def test_what_decides_and_cannot_be_seen_is_named(
    make: Make, price_first: PriceFirst, inputs: Mapping[str, Value], path: str
) -> None:
    assert [part.path for part in price_first(make(SERVICE, inputs=inputs)).unknown] == [path]


@pytest.mark.parametrize(
    ("inputs", "items"),
    [
        (
            {"template": {"metadata": {"annotations": {"autoscaling.knative.dev/minScale": "2"}}}},
            {"run.service.vcpu-kept": Decimal(10512000), "run.service.memory-kept": Decimal(5256000)},
        ),
        (
            {"metadata": {"annotations": {"run.googleapis.com/minScale": "2"}}},
            {"run.service.vcpu-kept": Decimal(10512000), "run.service.memory-kept": Decimal(5256000)},
        ),
        (
            {"template": {"spec": {"nodeSelector": {"run.googleapis.com/accelerator": "nvidia-l4"}}}},
            {"run.service.accelerator": None},
        ),
    ],
)
def test_a_service_of_the_first_api_is_counted_alike(
    make: Make, price_first: PriceFirst, inputs: Mapping[str, Mapping[str, Value]], items: Mapping[str, Decimal | None]
) -> None:
    template = dict(inputs.get("template", {}))
    spec = template.get("spec", {})
    assert isinstance(spec, Mapping)
    template["spec"] = {**spec, "containers": (SIZE,)}
    service = make("gcp:cloudrun/service:Service", inputs={**inputs, "location": "us-central1", "template": template})
    # 2 kept x 2 vCPU and 1 GiB x 730 x 3,600 s
    assert {part.item: part.quantity for part in price_first(service).unpriced} == items


def test_a_container_of_the_first_api_that_nobody_can_see_is_named(make: Make, price_first: PriceFirst) -> None:
    inputs = {"location": "us-central1", "template": {"spec": {"containers": UNKNOWN}}}
    found = price_first(make("gcp:cloudrun/service:Service", inputs=inputs))
    assert [part.path for part in found.unknown] == ["template.spec.containers"]
