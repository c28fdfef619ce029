"""What each shape becomes on each backend, and what its hosts tell Ray."""

from __future__ import annotations

import pytest

from infra.plan.capacity import Backend, Capacity, Role
from infra.plan.slices import Form, SlicePlan, max_run_seconds, plan_slice, serving_names, slice_names
from policies.hardware.slices import shape

HOSTS = [
    ("v6e-1", 1, 1),
    ("v6e-4", 1, 4),
    ("v6e-8", 1, 8),
    ("v6e-16", 4, 4),
    ("v6e-32", 8, 4),
    ("v6e-64", 16, 4),
    ("v6e-128", 32, 4),
    ("v6e-256", 64, 4),
]


def planned(accelerator_type: str, backend: Backend = Backend.GCE, capacity: Capacity = Capacity.SPOT) -> SlicePlan:
    return plan_slice(
        env="dev",
        name="trainer",
        role=Role.TRAIN,
        shape=shape(accelerator_type),
        zone="us-central1-b",
        backend=backend,
        capacity=capacity,
        reservation="",
        max_run_hours=72,
    )


@pytest.mark.parametrize(("accelerator_type", "hosts", "chips_per_host"), HOSTS)
def test_every_host_advertises_its_own_chips_and_the_first_the_slice(
    accelerator_type: str, hosts: int, chips_per_host: int
) -> None:
    plan = planned(accelerator_type)
    told = [plan.ray_resources(host) for host in range(plan.shape.hosts)]
    assert [one["TPU"] for one in told] == [chips_per_host] * hosts
    assert sum(one["TPU"] for one in told) == int(accelerator_type.removeprefix("v6e-"))
    assert [host for host, one in enumerate(told) if f"TPU-{accelerator_type}-head" in one] == [0]
    assert all(one["dev-trainer"] == 1 for one in told)


@pytest.mark.parametrize(
    ("accelerator_type", "backend", "form"),
    [
        ("v6e-1", Backend.GCE, Form.INSTANCE),
        ("v6e-8", Backend.GCE, Form.INSTANCE),
        ("v6e-16", Backend.GCE, Form.GROUP),
        ("v6e-256", Backend.GCE, Form.GROUP),
        ("v6e-8", Backend.TPU_VM, Form.NODE),
        ("v6e-16", Backend.TPU_VM, Form.NODE),
    ],
)
def test_the_shape_and_the_backend_decide_the_resource(accelerator_type: str, backend: Backend, form: Form) -> None:
    assert planned(accelerator_type, backend).form is form


@pytest.mark.parametrize(
    ("capacity", "model"),
    [(Capacity.SPOT, "SPOT"), (Capacity.ON_DEMAND, "STANDARD"), (Capacity.RESERVED, "RESERVATION_BOUND")],
)
def test_capacity_is_one_word_of_compute_engine(capacity: Capacity, model: str) -> None:
    assert planned("v6e-8", capacity=capacity).provisioning_model == model


@pytest.mark.parametrize(
    ("form", "capacity", "seconds"),
    [
        (Form.INSTANCE, Capacity.SPOT, 259_200),
        (Form.GROUP, Capacity.ON_DEMAND, 259_200),
        (Form.NODE, Capacity.SPOT, None),
        (Form.INSTANCE, Capacity.RESERVED, None),
    ],
)
def test_a_host_is_bounded_where_its_backend_can(form: Form, capacity: Capacity, seconds: int | None) -> None:
    assert max_run_seconds(form, capacity, 72) == seconds


def test_several_slices_alike_have_letters() -> None:
    assert slice_names("trainer", 1) == ("trainer",)
    assert slice_names("trainer", 2) == ("trainer-a", "trainer-b")
    assert slice_names("trainer", 26)[-1] == "trainer-z"


def test_serving_hosts_have_numbers_and_zones_where_several_serve() -> None:
    assert serving_names(2, "us-central1-b", many_zones=False) == ("serve-0", "serve-1")
    assert serving_names(1, "us-east5-b", many_zones=True) == ("serve-us-east5-b-0",)
    assert serving_names(0, "us-central1-b", many_zones=False) == ()
