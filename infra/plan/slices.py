"""What a slice becomes: which resource makes it, on which terms, and what each of its hosts tells Ray."""

from __future__ import annotations

import enum
import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from infra.plan.capacity import Backend, Capacity, Role
from infra.plan.names import cloud_name
from policies.hardware.slices import Shape

MOST_ALIKE: Final = len(string.ascii_lowercase)
SECONDS_PER_HOUR: Final = 3600


@final
class Form(enum.Enum):
    """The resource that makes a slice."""

    INSTANCE = "instance"
    """One `compute.Instance`: a slice of one host on Compute Engine."""
    GROUP = "group"
    """Instance template, workload policy with the topology, and managed group: many hosts on Compute Engine."""
    NODE = "node"
    """One `tpu.V2Vm`, whatever the number of hosts."""


@final
@dataclass(frozen=True, kw_only=True)
class SlicePlan:
    """One slice, decided."""

    name: str
    """Logical name: `trainer`, or `trainer-a` where there are several."""
    cloud_name: str
    """Its name in the cloud, `dev-trainer`: of the instance, the group (hosts get a suffix of 5), or the node."""
    role: Role
    """What it is there for."""
    shape: Shape
    """Topology, hosts, chips a host and machine type."""
    zone: str
    """Zone of all of its hosts."""
    form: Form
    """The resource that makes it."""
    capacity: Capacity
    """As the settings ask."""
    reservation: str = ""
    """Name of the reservation on Compute Engine; empty elsewhere."""
    max_run_seconds: int | None = None
    """Bound of each host's life; None where the backend has none: a V2Vm, and what a reservation ends."""

    @property
    def provisioning_model(self) -> str:
        """`scheduling.provisioning_model` of Compute Engine."""
        models = {Capacity.SPOT: "SPOT", Capacity.ON_DEMAND: "STANDARD", Capacity.RESERVED: "RESERVATION_BOUND"}
        return models[self.capacity]

    def ray_resources(self, host: int) -> Mapping[str, int]:
        """What `host` (from 0) advertises to Ray: the chips that it has itself, never those of the slice.

        Every host carries the slice's own name, so that a job can be kept on one slice; host 0 carries
        `TPU-v6e-16-head` as well, the resource by which Ray takes a whole slice at once.
        """
        return ray_resources(self.cloud_name, self.shape.accelerator_type, self.shape.chips_per_host, host)


def ray_resources(slice_name: str, accelerator_type: str, chips_per_host: int, host: int) -> Mapping[str, int]:
    """As `SlicePlan.ray_resources`, for a startup script, which learns on the host which host it is."""
    own = {"TPU": chips_per_host, slice_name: 1}
    return own | ({f"TPU-{accelerator_type}-head": 1} if host == 0 else {})


def form_of(shape: Shape, backend: Backend) -> Form:
    """The resource that makes a slice of `shape` on `backend`."""
    if backend is Backend.TPU_VM:
        return Form.NODE
    return Form.GROUP if shape.multi_host else Form.INSTANCE


def slice_names(name: str, count: int) -> tuple[str, ...]:
    """Logical names of `count` slices alike: the name itself for one, else `<name>-a`, `<name>-b` ... (26 at most)."""
    if count == 1:
        return (name,)
    return tuple(f"{name}-{letter}" for letter in string.ascii_lowercase[:count])


def max_run_seconds(form: Form, capacity: Capacity, hours: int) -> int | None:
    """The bound of a host's life in seconds, or None where the backend has none.

    The Cloud TPU API has no such field; what is bound to a reservation ends with the reservation.
    """
    if form is Form.NODE or capacity is Capacity.RESERVED:
        return None
    return hours * SECONDS_PER_HOUR


def plan_slice(
    *,
    env: str,
    name: str,
    role: Role,
    shape: Shape,
    zone: str,
    backend: Backend,
    capacity: Capacity,
    reservation: str,
    max_run_hours: int,
) -> SlicePlan:
    """Decide one slice. `env` is the stack, `name` the logical name."""
    form = form_of(shape, backend)
    return SlicePlan(
        name=name,
        cloud_name=cloud_name(env, name),
        role=role,
        shape=shape,
        zone=zone,
        form=form,
        capacity=capacity,
        reservation=reservation,
        max_run_seconds=max_run_seconds(form, capacity, max_run_hours),
    )


def serving_names(hosts: int, zone: str, *, many_zones: bool) -> tuple[str, ...]:
    """Logical names of the serving hosts of `zone`: `serve-0`, `serve-1` ...; with the zone where several serve."""
    prefix = f"serve-{zone}" if many_zones else "serve"
    return tuple(f"{prefix}-{host}" for host in range(hosts))
