"""From the plain values of a stack file to `Settings`: one function a part of the file."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from infra.plan.names import (
    LABELS_LIMIT,
    label_key_doubt,
    label_key_mistake,
    name_mistake,
    sanitise_label,
)
from infra.settings import formats
from infra.settings.mistakes import Mistakes
from infra.settings.model import (
    BucketSettings,
    HeadSettings,
    HydrationSettings,
    ModelSettings,
    NetworkSettings,
    RegistrySettings,
    Settings,
)
from infra.settings.oversight import AlertSettings, BudgetSettings, CiSettings, GuardSettings
from infra.settings.section import Rule, Section, passes
from infra.settings.tpu import read_serving, read_slices
from policies.audit.schedule import read_schedule
from policies.hardware.disks import disk_type
from policies.hardware.zones import check_zone, region_of

SLACK_TOKEN: Final = "slack_token"
WAIVERS: Final = "waivers"
SEVERITY: Final = "severity"
FIXED_LABELS: Final = ("owner", "env", "ttl", "managed-by", "role", "slice", "spotrail-size-gib")
MOST_LABELS: Final = LABELS_LIMIT - 8
MOST_GIB: Final = 65536
GUARD_HOURS: Final = (1, 2, 3, 4, 6)
"""Hours between two runs of the guard. Seldomer, and no alert could look back far enough to miss one."""


def read(values: Mapping[str, object], *, env: str, project: str, mistakes: Mistakes) -> Settings:
    """The settings in `values`: key of `spotrail:` to plain value.

    What is wrong goes to `mistakes` and gets a stand-in: nothing may be built from the result before
    `mistakes.settle()`.
    """
    not_keys = ("env", "project", "more_labels", "has_slack_token")
    top = Section(
        mistakes, "", values, Settings, not_keys=not_keys, more_keys=("labels", SLACK_TOKEN, WAIVERS, SEVERITY)
    )
    extra_zones = top.texts("extra_zones", passes(region_of))
    zone_rule = passes(lambda zone: check_zone(zone, extra_zones))
    zone = top.text("zone", zone_rule)
    # The program needs neither: policies/rules/waivers.py and severities.py read them and say what is wrong in them.
    if top.has(WAIVERS) and not isinstance(waivers := top.raw(WAIVERS), list):
        mistakes.add(WAIVERS, waivers, "It must be a list of mappings with rule, urn, reason and until.")
    if top.has(SEVERITY) and not isinstance(severity := top.raw(SEVERITY), Mapping):
        mistakes.add(SEVERITY, severity, "It must be a mapping of rule ids to error, warning, info or off.")
    return Settings(
        env=env,
        project=project,
        owner=top.text("owner", _owner),
        ttl=top.text("ttl", formats.TTL),
        zone=zone,
        extra_zones=extra_zones,
        more_labels=_labels(top),
        slices=read_slices(top, zone, zone_rule),
        serving=read_serving(top, zone, zone_rule),
        head=_head(top.part("head", HeadSettings), zone),
        model=_model(top.part("model", ModelSettings)),
        hydration=_hydration(top.part("hydration", HydrationSettings)),
        network=_network(top.part("network", NetworkSettings)),
        buckets=_buckets(top.part("buckets", BucketSettings)),
        registry=_registry(top.part("registry", RegistrySettings)),
        budget=_budget(top.part("budget", BudgetSettings), project),
        alerts=_alerts(top.part("alerts", AlertSettings)),
        guard=_guard(top.part("guard", GuardSettings)),
        ci=_ci(top.part("ci", CiSettings)) if top.has("ci") else None,
        has_slack_token=top.has(SLACK_TOKEN),
    )


def _owner(value: str) -> str | None:
    return _label_value(value) if value else "It must not be empty: it is a label of everything that bills."


def _label_value(value: str) -> str | None:
    made = sanitise_label(value)
    return f'{made.reason} Legal would be "{made.value}".' if made.changed else None


def _labels(top: Section) -> Mapping[str, str]:
    found = top.raw("labels") if top.has("labels") else {}
    if not isinstance(found, Mapping):
        top.mistakes.add("labels", found, "It must be a mapping of label to value.")
        return {}
    if len(found) > MOST_LABELS:
        top.mistakes.add(
            "labels", found, f"At most {MOST_LABELS} labels: a resource has {LABELS_LIMIT}, and 8 are ours."
        )
    for key, value in found.items():
        path = f"labels.{key}"
        broken = "It must be text." if not isinstance(value, str) else _label_value(value)
        if key in FIXED_LABELS:
            broken = "spotrail sets this label itself, from spotrail:owner, spotrail:ttl and what a thing is for."
        if problem := label_key_mistake(key) or broken:
            top.mistakes.add(path, value, problem)
        elif doubt := label_key_doubt(key):
            top.mistakes.warn(path, value, doubt)
    return {key: value for key, value in found.items() if isinstance(value, str)}


def _head(part: Section, zone: str) -> HeadSettings:
    return HeadSettings(
        zone=part.text("zone", passes(region_of), default=zone),
        machine=part.text("machine", formats.MACHINE),
        boot_disk_type=part.text("boot_disk_type", passes(disk_type)),
        boot_disk_gib=part.integer("boot_disk_gib", 10, MOST_GIB, "GiB"),
        boot_image=part.text("boot_image", formats.BOOT_IMAGE),
        ray_version=part.text("ray_version", formats.VERSION),
    )


def _model(part: Section) -> ModelSettings:
    return ModelSettings(
        name=part.text("name", name_mistake),
        manifest_sha256=part.text("manifest_sha256", formats.SHA256),
        path=part.text("path", formats.model_path),
        size_gib=part.integer("size_gib", 4, MOST_GIB, "GiB"),
        throughput=part.integer("throughput", 400, 1_200_000, "MiB/s"),
        schedule=part.text("schedule", _schedule),
    )


def _schedule(value: str) -> str | None:
    """A schedule that fits into the label by which the guard knows it."""
    return passes(lambda text: read_schedule(text).label())(value) if value else None


def _hydration(part: Section) -> HydrationSettings:
    return HydrationSettings(
        machine=part.text("machine", formats.MACHINE),
        boot_disk_type=part.text("boot_disk_type", passes(disk_type)),
        boot_disk_gib=part.integer("boot_disk_gib", 10, MOST_GIB, "GiB"),
        boot_image=part.text("boot_image", formats.BOOT_IMAGE),
        staging_iops=part.integer("staging_iops", 2000, 160_000),
        staging_throughput=part.integer("staging_throughput", 140, 2400, "MiB/s"),
        timeout_minutes=part.integer("timeout_minutes", 10, 24 * 60, "minutes"),
        image=part.text("image", formats.full_image),
    )


def _network(part: Section) -> NetworkSettings:
    return NetworkSettings(cidr=part.text("cidr"), nat=part.flag("nat"))


def _buckets(part: Section) -> BucketSettings:
    return BucketSettings(
        temporary_prefix=part.text("temporary_prefix", formats.PREFIX),
        temporary_days=part.integer("temporary_days", 1, 365, "days"),
        abandoned_upload_days=part.integer("abandoned_upload_days", 1, 365, "days"),
    )


def _registry(part: Section) -> RegistrySettings:
    mirror: Rule = lambda value: formats.REPOSITORY_ID(value) if value else None  # noqa: E731
    return RegistrySettings(
        name=part.text("name", formats.REPOSITORY_ID),
        keep_versions=part.integer("keep_versions", 1, 100),
        untagged_days=part.integer("untagged_days", 1, 365, "days"),
        python_mirror=part.text("python_mirror", mirror),
        apt_mirror=part.text("apt_mirror", mirror),
    )


def _budget(part: Section, project: str) -> BudgetSettings:
    return BudgetSettings(
        monthly=part.integer("monthly", 1, 1_000_000_000),
        billing_account=part.text("billing_account", formats.BILLING_ACCOUNT),
        currency=part.text("currency", formats.CURRENCY),
        current_thresholds=part.fractions("current_thresholds", Decimal("0.01"), Decimal(10)),
        forecast_thresholds=part.fractions("forecast_thresholds", Decimal("0.01"), Decimal(10)),
        quota_project=part.text("quota_project", formats.PROJECT, default=project),
    )


def _alerts(part: Section) -> AlertSettings:
    return AlertSettings(
        emails=part.texts("emails", formats.EMAIL),
        slack_channel=part.text("slack_channel", formats.SLACK_CHANNEL),
    )


def _guard(part: Section) -> GuardSettings:
    return GuardSettings(
        enabled=part.flag("enabled"),
        apply=part.flag("apply"),
        every_hours=part.one_of("every_hours", GUARD_HOURS),
        image=part.text("image", formats.job_image),
        window_days=part.integer("window_days", 1, 42, "days"),
        webhook=part.text("webhook", lambda value: formats.SECRET_ID(value) if value else None),
        idle_dollars=part.integer("idle_dollars", 1, 1_000_000),
        idle_percent=part.integer("idle_percent", 1, 50, "%"),
        idle_hours=part.integer("idle_hours", 1, 23, "hours"),
    )


def _ci(part: Section) -> CiSettings:
    return CiSettings(repository=part.text("repository", formats.REPOSITORY))
