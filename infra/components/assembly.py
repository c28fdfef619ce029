"""From the settings to the arguments of the components: which value goes where, and nothing else."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Final

import pulumi

from infra.components import scripts
from infra.components.alert_policies import AlertTerms, WatchedVolume
from infra.components.boot_disk import BootDisk
from infra.components.buckets import Buckets, BucketsArgs
from infra.components.budget import BudgetTerms
from infra.components.cost_guard import CostGuardArgs
from infra.components.guard_job import GuardTerms
from infra.components.head_node import HeadNode, HeadNodeArgs
from infra.components.identity import Account, Identity, IdentityArgs
from infra.components.image_registry import ImageRegistry, ImageRegistryArgs, repository_id
from infra.components.model_volume import ModelVolume, ModelVolumeArgs, Staging, disk_name
from infra.components.network import Network, NetworkArgs
from infra.components.notification import Slack
from infra.components.services import ServicesArgs
from infra.components.site import Site
from infra.components.slice_parts import TpuSliceArgs
from infra.components.tpu_slice import TpuSlice
from infra.plan import names
from infra.plan.addresses import subnetworks
from infra.plan.capacity import Backend, Role
from infra.plan.machines import STAGING_TYPE
from infra.plan.slices import SlicePlan, plan_slice, serving_names, slice_names
from infra.plan.startup import image_reference
from infra.settings import Settings
from infra.settings.model import ServingSettings, SliceSettings
from policies.audit.schedule import read_schedule
from policies.hardware.slices import shape
from policies.hardware.zones import region_of

NETWORKED: Final = (Account.HEAD, Account.WORKER, Account.SERVER)
"""Accounts whose machines talk to each other and take connections."""
PULLING: Final = (Account.HEAD, Account.WORKER, Account.SERVER)
"""Accounts whose machines fetch images and packages."""


def site(settings: Settings) -> Site:
    """Where the stack stands."""
    return Site(env=settings.env, project=settings.project, zone=settings.zone, labels=settings.labels)


def services(settings: Settings) -> ServicesArgs:
    """What the stack asks of Google beyond the base."""
    return ServicesArgs(
        tpu_api=_uses_tpu_api(settings),
        federation=settings.ci is not None,
        guard=settings.guard.enabled,
        secrets=bool(settings.guard.webhook),
    )


def buckets(settings: Settings) -> BucketsArgs:
    """The buckets, as the settings clean them."""
    found = settings.buckets
    return BucketsArgs(
        site=site(settings),
        temporary_prefix=found.temporary_prefix,
        temporary_days=found.temporary_days,
        abandoned_upload_days=found.abandoned_upload_days,
    )


def identity(settings: Settings, made: Buckets) -> IdentityArgs:
    """The accounts, with their roles on the buckets `made`."""
    return IdentityArgs(
        site=site(settings),
        buckets={purpose: bucket.name for purpose, bucket in made.all.items()},
        ci_repository=settings.ci.repository if settings.ci else "",
    )


def network(settings: Settings, accounts: Identity) -> NetworkArgs:
    """The network, open to the machines of `accounts`."""
    return NetworkArgs(
        site=site(settings),
        cidr=settings.network.cidr,
        regions=settings.regions,
        accounts={account.value: accounts.email(account) for account in NETWORKED},
        tags_let_in=_uses_tpu_api(settings),
        nat=settings.network.nat,
    )


def registry(settings: Settings, accounts: Identity) -> ImageRegistryArgs:
    """The registry, readable by the machines of `accounts`."""
    found = settings.registry
    return ImageRegistryArgs(
        site=site(settings),
        name=found.name,
        keep_versions=found.keep_versions,
        untagged_days=found.untagged_days,
        python_mirror=found.python_mirror,
        apt_mirror=found.apt_mirror,
        readers={account.value: accounts.email(account) for account in PULLING},
    )


def head_address(settings: Settings) -> str:
    """Internal address of the head: the last that Google leaves free in its subnetwork, so that no machine that is
    given just any address gets there first."""
    cidr = subnetworks(settings.network.cidr, settings.regions)[region_of(settings.head.zone)]
    return str(ipaddress.IPv4Network(cidr)[-3])


def head(settings: Settings, net: Network, accounts: Identity) -> HeadNodeArgs:
    """The Ray head in `net`."""
    found = settings.head
    return HeadNodeArgs(
        site=site(settings),
        zone=found.zone,
        machine=found.machine,
        boot=BootDisk(image=found.boot_image, type=found.boot_disk_type, gib=found.boot_disk_gib),
        address=head_address(settings),
        subnetwork=net.subnetwork_of(region_of(found.zone)),
        service_account=accounts.email(Account.HEAD),
        startup_script=scripts.head(settings),
    )


def volume_name(settings: Settings) -> str:
    """Logical name of the model volume."""
    return names.volume_name(settings.model.name, settings.model.manifest_sha256)


def volume(settings: Settings, accounts: Identity) -> ModelVolumeArgs:
    """The model volume in every zone that reads it, staged in the stack's own zone, beside the bucket."""
    model, hydration = settings.model, settings.hydration
    return ModelVolumeArgs(
        site=site(settings),
        model=model.name,
        manifest_sha256=model.manifest_sha256,
        size_gib=model.size_gib,
        throughput=model.throughput,
        schedule=read_schedule(model.schedule).label() if model.schedule else "",
        zones=settings.model_zones,
        staging=Staging(
            disk_type=STAGING_TYPE,
            iops=hydration.staging_iops,
            throughput=hydration.staging_throughput,
            hydrator_machine=hydration.machine,
            hydrator_boot_type=hydration.boot_disk_type,
            hydrator_boot_gib=hydration.boot_disk_gib,
            zone=settings.zone,
        ),
        image=hydration.image,
        service_account=accounts.email(Account.PIPELINE),
        fill=scripts.fill(settings, site(settings)),
        clean=scripts.clean(settings),
    )


def slices(
    settings: Settings, net: Network, accounts: Identity, model: ModelVolume
) -> Iterator[tuple[str, TpuSliceArgs]]:
    """Every slice by its logical name: those that train, then those that serve."""
    for plan, found in planned(settings):
        mounted = model.mount_in(plan.zone) if plan.role is Role.SERVE or _mounts(found) else None
        account = Account.SERVER if plan.role is Role.SERVE else Account.WORKER
        yield (
            plan.name,
            TpuSliceArgs(
                site=site(settings),
                plan=plan,
                boot=BootDisk(image=found.boot_image, type=found.boot_disk_type, gib=found.boot_disk_gib),
                runtime=found.runtime,
                network=net.network.id,
                subnetwork=net.subnetwork_of(region_of(plan.zone)),
                service_account=accounts.email(account),
                startup_script=scripts.worker(
                    settings,
                    plan,
                    image=found.image,
                    head_address=head_address(settings),
                    model_device=mounted.device_name if mounted else "",
                ),
                model=mounted,
            ),
        )


def planned(settings: Settings) -> Iterator[tuple[SlicePlan, SliceSettings | ServingSettings]]:
    """Every slice, decided, with the settings that it comes from."""
    for found in settings.slices:
        for name in slice_names(found.name, found.count):
            yield _plan(settings, name, Role.TRAIN, found.zone, found), found
    serving = settings.serving
    for zone in serving.zones:
        for name in serving_names(serving.hosts, zone, many_zones=len(serving.zones) > 1):
            yield _plan(settings, name, Role.SERVE, zone, serving), serving


def guard(settings: Settings, made: Buckets, slack_token: pulumi.Output[str] | None) -> CostGuardArgs:
    """What watches the stack. `made` knows the number of the project."""
    budget, alerts, model = settings.budget, settings.alerts, settings.model
    return CostGuardArgs(
        site=site(settings),
        project_number=made.project_number,
        budget=BudgetTerms(
            billing_account=budget.billing_account,
            monthly=budget.monthly,
            currency=budget.currency,
            current=budget.current_thresholds,
            forecast=budget.forecast_thresholds,
        ),
        emails=alerts.emails,
        slack=Slack(channel=alerts.slack_channel, token=slack_token) if slack_token else None,
        alerts=AlertTerms(
            chips=sum(plan.shape.chips for plan, _ in planned(settings)),
            volumes=tuple(
                WatchedVolume(
                    device_name=disk_name(settings.env, model.name, model.manifest_sha256, zone),
                    throughput=model.throughput,
                )
                for zone in settings.model_zones
            ),
            idle_percent=settings.guard.idle_percent,
            idle_hours=settings.guard.idle_hours,
            idle_dollars=settings.guard.idle_dollars,
            every_hours=settings.guard.every_hours,
            by_clock=bool(model.schedule),
        ),
        guard=_guard_terms(settings) if settings.guard.enabled else None,
    )


def _guard_terms(settings: Settings) -> GuardTerms:
    found = settings.guard
    registry = repository_id(settings.env, settings.registry.name)
    return GuardTerms(
        image=image_reference(found.image, region=settings.region, project=settings.project, registry=registry),
        every_hours=found.every_hours,
        window_days=found.window_days,
        apply=found.apply,
        webhook=found.webhook,
    )


def outputs(
    made: Buckets,
    accounts: Identity,
    images: ImageRegistry,
    ray: HeadNode,
    model: ModelVolume,
    made_slices: Mapping[str, TpuSlice],
) -> Mapping[str, object]:
    """What a person, or a script of theirs, asks the stack for."""
    return {
        "head_address": ray.address,
        "tunnel_command": ray.tunnel_command,
        "submit_address": ray.submit_address,
        "buckets": {purpose: pulumi.Output.concat("gs://", bucket.name) for purpose, bucket in made.all.items()},
        "registry": images.url,
        "volumes": {zone: disk.name for zone, disk in model.disks.items()},
        "slices": {name: one.cloud_name for name, one in made_slices.items()},
        "ci_account": accounts.ci_account,
        "ci_provider": accounts.ci_provider,
    }


def _plan(settings: Settings, name: str, role: Role, zone: str, found: SliceSettings | ServingSettings) -> SlicePlan:
    return plan_slice(
        env=settings.env,
        name=name,
        role=role,
        shape=shape(found.shape),
        zone=zone,
        backend=found.backend,
        capacity=found.capacity,
        reservation=found.reservation,
        max_run_hours=found.max_run_hours,
    )


def _mounts(found: SliceSettings | ServingSettings) -> bool:
    return isinstance(found, SliceSettings) and found.mount_model


def _uses_tpu_api(settings: Settings) -> bool:
    return any(found.backend is Backend.TPU_VM for _, found in planned(settings))
