"""The parts of a stack file that ask for TPUs: `spotrail:slices` and `spotrail:serving`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypedDict

from infra.plan.capacity import Backend, Capacity
from infra.plan.slices import MOST_ALIKE
from infra.settings import formats
from infra.settings.model import ServingSettings, SliceSettings
from infra.settings.section import Rule, Section, passes
from policies.hardware.disks import disk_type
from policies.hardware.machines import BootDiskStatus, boot_disk_verdict
from policies.hardware.runtimes import RuntimeStatus, judge_runtime
from policies.hardware.slices import shape

MOST_RUN_HOURS: Final = 120 * 24
"""Compute Engine bounds the life of a VM at 120 days."""
MOST_HOSTS: Final = 500
GCE_ONLY: Final = ("boot_disk_type", "boot_disk_gib", "boot_image", "max_run_hours", "reservation")
"""Keys that the Cloud TPU API has nothing for."""
HINTS: Final = {
    "spot": "What a slice asks for is one word: capacity: spot.",
    "preemptible": "What a slice asks for is one word: capacity: spot.",
    "on_demand": "What a slice asks for is one word: capacity: on-demand.",
    "reserved": "What a slice asks for is one word: capacity: reserved, with the name of the reservation.",
    "queued": "\nA queued resource that Pulumi makes cannot ask for spot: V2QueuedResource has no such field, and the "
    "full price is paid.\nLeave it out; backend: tpu-vm with capacity: spot makes a V2Vm that asks for spot.",
    "machine": "The shape decides the machine type.",
    "hosts": "The shape decides the number of hosts; several slices alike: count.",
    "throughput": "The model volume has the throughput: spotrail:model.throughput.",
}


def read_slices(top: Section, zone: str, zone_rule: Rule) -> tuple[SliceSettings, ...]:
    """`spotrail:slices`, in the order of their names."""
    found = top.raw("slices") if top.has("slices") else {}
    if not isinstance(found, Mapping):
        top.mistakes.add("slices", found, "It must be a mapping: the name of each slice, and its settings below.")
        return ()
    return tuple(_slice(top, str(name), values, zone, zone_rule) for name, values in sorted(found.items()))


def read_serving(top: Section, zone: str, zone_rule: Rule) -> ServingSettings:
    """`spotrail:serving`."""
    hints = {**HINTS, "zone": "It is a list: zones: [us-central1-b]."}
    hints.pop("hosts")
    part = top.part("serving", ServingSettings, hints=hints)
    return ServingSettings(
        zones=part.texts("zones", zone_rule, default=(zone,)),
        shape=part.text("shape", _one_host),
        hosts=part.integer("hosts", 0, MOST_HOSTS),
        image=part.text("image", formats.serving_image),
        port=part.integer("port", 1024, 65535),
        **_hosts(part),
    )


def _slice(top: Section, name: str, values: object, zone: str, zone_rule: Rule) -> SliceSettings:
    part = Section(top.mistakes, f"slices.{name}", values, SliceSettings, not_keys=("name",), hints=HINTS)
    return SliceSettings(
        name=name,
        shape=part.text("shape", passes(shape)),
        zone=part.text("zone", zone_rule, default=zone),
        count=part.integer("count", 1, MOST_ALIKE),
        mount_model=part.flag("mount_model"),
        image=part.text("image", formats.container_image),
        **_hosts(part),
    )


class _Hosts(TypedDict):
    backend: Backend
    capacity: Capacity
    reservation: str
    boot_disk_type: str
    boot_disk_gib: int
    boot_image: str
    runtime: str
    max_run_hours: int


def _hosts(part: Section) -> _Hosts:
    backend = _backend(part)
    capacity = _capacity(part, backend)
    if capacity is Capacity.RESERVED and part.has("max_run_hours"):
        doubt = "It is not used: what is bound to a reservation ends with the reservation."
        part.mistakes.warn(part.at("max_run_hours"), part.raw("max_run_hours"), doubt)
    return _Hosts(
        backend=backend,
        capacity=capacity,
        reservation=part.text("reservation", formats.RESERVATION),
        boot_disk_type=part.text("boot_disk_type", _boot_disk_type),
        boot_disk_gib=part.integer("boot_disk_gib", 10, 65536, "GiB"),
        boot_image=part.text("boot_image", formats.BOOT_IMAGE),
        runtime=_runtime(part, backend),
        max_run_hours=part.integer("max_run_hours", 1, MOST_RUN_HOURS, "hours (120 days, the most of Compute Engine)"),
    )


def _backend(part: Section) -> Backend:
    backend = part.choice("backend", Backend)
    if backend is Backend.TPU_VM:
        for key in GCE_ONLY:
            if part.has(key):
                part.mistakes.add(part.at(key), part.raw(key), _not_on_tpu_vm(key))
    return backend


def _not_on_tpu_vm(key: str) -> str:
    reasons = {
        "max_run_hours": "The Cloud TPU API has no bound on the life of a node; spotrail:ttl and the guard end it.",
        "reservation": "The Cloud TPU API takes a reserved node from the project's own reservation, without a name.",
        "boot_image": "The Cloud TPU API boots the runtime version: set runtime.",
    }
    fixed = "The Cloud TPU API fixes the boot disk at 100 GiB."
    return f"{reasons.get(key, fixed)} Leave it out, or use backend: gce."


def _capacity(part: Section, backend: Backend) -> Capacity:
    capacity = part.choice("capacity", Capacity)
    named = part.has("reservation")
    if capacity is Capacity.RESERVED and backend is Backend.GCE and not named:
        rule = "capacity: reserved on gce needs the name of the reservation (gcloud compute reservations list)."
        part.mistakes.add(part.at("reservation"), part.raw("reservation"), rule)
    if capacity is not Capacity.RESERVED and named:
        rule = (
            f"capacity is {capacity.value}: a reservation would not be used. Write capacity: reserved, or leave it out."
        )
        part.mistakes.add(part.at("reservation"), part.raw("reservation"), rule)
    return capacity


def _runtime(part: Section, backend: Backend) -> str:
    runtime = part.text("runtime")
    if not part.has("runtime") or part.mistakes.at(part.at("runtime")):
        return runtime
    verdict = judge_runtime(runtime)
    if verdict.status is RuntimeStatus.WRONG:
        part.mistakes.add(part.at("runtime"), runtime, f"{verdict.reason[:1].upper()}{verdict.reason[1:]}.")
    elif verdict.status is RuntimeStatus.WARNING:
        part.mistakes.warn(part.at("runtime"), runtime, f"{verdict.reason[:1].upper()}{verdict.reason[1:]}.")
    elif backend is Backend.GCE:
        part.mistakes.warn(part.at("runtime"), runtime, "It is not used: on gce, boot_image decides what a host boots.")
    return runtime


def _one_host(name: str) -> str | None:
    if broken := passes(shape)(name):
        return broken
    found = shape(name)
    if not found.multi_host:
        return None
    return f"A serving host is one VM; {name} has {found.hosts}. At most v6e-8, and more of them: hosts."


def _boot_disk_type(name: str) -> str | None:
    unknown = passes(disk_type)(name)
    verdict = boot_disk_verdict("ct6e-standard-8t", name)
    return None if verdict.status is BootDiskStatus.OK else unknown or f"{verdict.reason}."
