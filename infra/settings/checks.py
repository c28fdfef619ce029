"""What no single setting can tell: names that become too long, disks that their readers overload, machines and disks
that do not fit, addresses that run out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from infra.plan import names
from infra.plan.addresses import room, subnetworks
from infra.plan.disks import ACCESS_MODE, MODEL_VOLUME_TYPE, READ_ONLY, Attachment, DataDisk, attach_mistakes
from infra.plan.machines import STAGING_TYPE, Judgement, judge_hydrator, judge_machine
from infra.plan.slices import serving_names, slice_names
from infra.settings.mistakes import Mistakes
from infra.settings.model import Settings
from policies.audit.schedule import read_schedule
from policies.errors import InputError
from policies.hardware.disks import check_disk
from policies.hardware.slices import shape
from policies.hardware.zones import region_of

BUCKETS: Final = ("checkpoints", "datasets", "models")
ACCOUNTS: Final = ("head", "worker", "server", "hydrator", "pipeline", "guard", "guard-run", "ci-preview")
"""Ids of the service accounts, behind the name of the stack."""
TAKEN: Final = ("head", *BUCKETS)
"""Logical names that the stack has already."""
STACK_NAME: Final = "stack name"
"""Where mistakes of it are noted: it is no setting."""
MOST_CHANNELS: Final = 5
"""Notification channels of one budget."""


def check(settings: Settings, mistakes: Mistakes) -> None:
    """Note everything that is wrong between the settings. What is wrong by itself already is left alone."""
    _stack_name(settings, mistakes)
    _slice_names(settings, mistakes)
    _model_names(settings, mistakes)
    _model_volume(settings, mistakes)
    _schedule(settings, mistakes)
    _machines(settings, mistakes)
    _boot_disks(settings, mistakes)
    _network(settings, mistakes)
    _registry(settings, mistakes)
    _serving_zones(settings, mistakes)
    _thresholds(settings, mistakes)
    _channels(settings, mistakes)
    _guard(settings, mistakes)


def _stack_name(settings: Settings, mistakes: Mistakes) -> None:
    project = "" if mistakes.at("gcp:project") else settings.project
    derived = (
        names.name_mistake(settings.env),
        *(
            names.derived_mistake("a service account", names.cloud_name(settings.env, account), names.ACCOUNT_LIMIT)
            for account in ACCOUNTS
        ),
        *(names.bucket_mistake(names.bucket_name(project, settings.env, bucket)) for bucket in BUCKETS if project),
    )
    for broken in filter(None, derived):
        mistakes.add(STACK_NAME, settings.env, broken)


def _slice_names(settings: Settings, mistakes: Mistakes) -> None:
    many_zones = len(settings.serving.zones) > 1
    served = [name for zone in settings.serving.zones for name in serving_names(1000, zone, many_zones=many_zones)]
    volume = names.volume_name(settings.model.name, settings.model.manifest_sha256)
    owners = dict.fromkeys(TAKEN, "the stack") | dict.fromkeys(served, "the serving hosts")
    for one in settings.slices:
        path = f"slices.{one.name}"
        if broken := names.name_mistake(one.name):
            mistakes.add(path, one.name, broken)
        for name in slice_names(one.name, one.count):
            longest = names.cloud_name(settings.env, name) + names.LONGEST_SLICE_SUFFIX
            if not mistakes.at(STACK_NAME) and (broken := names.derived_mistake("the name", longest)):
                mistakes.add(path, one.name, broken)
            if name.startswith(volume):
                rule = f'Names that start with "{volume}" belong to the model volume and what fills it; choose another.'
                mistakes.add(path, one.name, rule)
            if name in owners:
                mistakes.add(path, one.name, f'"{name}" is a name of {owners[name]} already; choose another.')
            owners[name] = f"spotrail:{path}"


def _model_names(settings: Settings, mistakes: Mistakes) -> None:
    parts = (STACK_NAME, "model.name", "model.manifest_sha256", "zone", "slices", "serving")
    if any(mistakes.at(path) for path in parts):
        return
    version = (settings.env, settings.model.name, settings.model.manifest_sha256)
    derived = (
        *(names.cloud_name(settings.env, names.volume_name(*version[1:], zone)) for zone in settings.model_zones),
        *(names.execution_name(*version, step) for step in ("fill", "clean")),
        names.staging_disk_name(*version),
        names.hydrator_name(*version),
        names.snapshot_name(*version),
    )
    if broken := names.derived_mistake("the name", max(derived, key=len)):
        mistakes.add("model.name", settings.model.name, broken)


def _model_volume(settings: Settings, mistakes: Mistakes) -> None:
    model, hydration = settings.model, settings.hydration
    if mistakes.at("model"):
        return
    for broken in check_disk(MODEL_VOLUME_TYPE, model.size_gib, model.throughput):
        mistakes.add("model.throughput", model.throughput, _sentence(broken))
    for broken in check_disk(STAGING_TYPE, model.size_gib, iops=hydration.staging_iops):
        mistakes.add("hydration.staging_iops", hydration.staging_iops, _sentence(broken))
    for broken in check_disk(STAGING_TYPE, model.size_gib, hydration.staging_throughput):
        mistakes.add("hydration.staging_throughput", hydration.staging_throughput, _sentence(broken))
    if mistakes.at("slices") or mistakes.at("serving"):
        return
    for zone in settings.model_zones:
        disk = DataDisk(
            name=names.volume_name(model.name, model.manifest_sha256),
            type=MODEL_VOLUME_TYPE,
            gib=model.size_gib,
            throughput=model.throughput,
            access_mode=ACCESS_MODE,
            zone=zone,
        )
        for broken in attach_mistakes(disk, tuple(readers(settings, zone))):
            mistakes.add("model.throughput", model.throughput, f"{broken}.")


def _schedule(settings: Settings, mistakes: Mistakes) -> None:
    """A schedule is kept by the guard, and its high hours have the throughput that the stack is priced with."""
    model, guard = settings.model, settings.guard
    if not model.schedule or mistakes.at("model.schedule"):
        return
    if not (guard.enabled and guard.apply and guard.every_hours == 1) and not mistakes.at("guard"):
        rule = "The guard keeps it, every hour: set spotrail:guard.enabled and .apply to true, and .every_hours to 1."
        mistakes.add("model.schedule", model.schedule, rule)
    mibps = read_schedule(model.schedule).mibps
    if mibps != model.throughput and not mistakes.at("model.throughput"):
        rule = (
            f"Its high hours have {mibps} MiB/s and spotrail:model.throughput is {model.throughput}: write the same "
            "in both, so that the price of the stack is the most that it can be."
        )
        mistakes.add("model.schedule", model.schedule, rule)


def readers(settings: Settings, zone: str) -> Iterator[Attachment]:
    """Everybody who attaches the model volume of `zone`."""
    if zone in settings.serving.zones and settings.serving.hosts:
        yield Attachment(name="serving", hosts=settings.serving.hosts, zone=zone, mode=READ_ONLY)
    for one in settings.slices:
        if one.mount_model and one.zone == zone:
            hosts = shape(one.shape).hosts * one.count
            yield Attachment(name=one.name, hosts=hosts, zone=zone, mode=READ_ONLY)


def _machines(settings: Settings, mistakes: Mistakes) -> None:
    head, hydration = settings.head, settings.hydration
    _judged(mistakes, "head", head.machine, head.boot_disk_type, judge_machine(head.machine, head.boot_disk_type))
    judged = judge_hydrator(hydration.machine, hydration.boot_disk_type)
    _judged(mistakes, "hydration", hydration.machine, hydration.boot_disk_type, judged)


def _judged(mistakes: Mistakes, part: str, machine: str, boot: str, judgements: Iterator[Judgement]) -> None:
    for judgement in judgements:
        path = f"{part}.{judgement.about}"
        if mistakes.at(path):
            continue
        note = mistakes.add if judgement.refused else mistakes.warn
        note(path, machine if judgement.about == "machine" else boot, judgement.message)


def _boot_disks(settings: Settings, mistakes: Mistakes) -> None:
    parts = [
        ("head", settings.head.boot_disk_type, settings.head.boot_disk_gib),
        ("hydration", settings.hydration.boot_disk_type, settings.hydration.boot_disk_gib),
        ("serving", settings.serving.boot_disk_type, settings.serving.boot_disk_gib),
        *((f"slices.{one.name}", one.boot_disk_type, one.boot_disk_gib) for one in settings.slices),
    ]
    for path, disk_type, gib in parts:
        if not mistakes.at(f"{path}.boot_disk_type"):
            for broken in check_disk(disk_type, gib):
                mistakes.add(f"{path}.boot_disk_gib", gib, _sentence(broken))


def _network(settings: Settings, mistakes: Mistakes) -> None:
    if any(mistakes.at(path) for path in ("zone", "slices", "serving", "head.zone", "extra_zones")):
        return
    try:
        parts = subnetworks(settings.network.cidr, settings.regions)
    except InputError as error:
        mistakes.add("network.cidr", settings.network.cidr, str(error))
        return
    for region, part in parts.items():
        needed, places = machines_in(settings, region), room(part)
        if needed > places:
            rule = f"{region} gets {part}, which has room for {places:,} machines; the stack has {needed:,} there."
            mistakes.add("network.cidr", settings.network.cidr, rule)


def machines_in(settings: Settings, region: str) -> int:
    """Machines of the stack in `region`: TPU hosts, the head, and the hydrator while it fills."""
    serving = settings.serving
    found = sum(serving.hosts for zone in serving.zones if region_of(zone) == region)
    found += sum(shape(one.shape).hosts * one.count for one in settings.slices if region_of(one.zone) == region)
    return found + (region_of(settings.head.zone) == region) + (settings.region == region)


def _registry(settings: Settings, mistakes: Mistakes) -> None:
    """Repositories of one name in one project, and machines that cannot reach the packages that they need."""
    found = settings.registry
    named = {"name": found.name, "python_mirror": found.python_mirror, "apt_mirror": found.apt_mirror}
    owners: dict[str, str] = {}
    for key, repository in named.items():
        path = f"registry.{key}"
        if not repository:
            continue
        if broken := names.derived_mistake("the repository", names.cloud_name(settings.env, repository)):
            mistakes.add(path, repository, broken)
        if repository in owners:
            rule = f"It is the repository of spotrail:{owners[repository]} already; choose another."
            mistakes.add(path, repository, rule)
        owners[repository] = path
    for key in ("python_mirror", "apt_mirror"):
        if not named[key] and not settings.network.nat:
            doubt = "Machines have no way out: packages come from this mirror, or through spotrail:network.nat."
            mistakes.warn(f"registry.{key}", "", doubt)


def _serving_zones(settings: Settings, mistakes: Mistakes) -> None:
    if not settings.serving.zones and not mistakes.at("serving"):
        mistakes.add("serving.zones", [], "At least one zone, or leave the key out: then it is the stack's own.")


def _thresholds(settings: Settings, mistakes: Mistakes) -> None:
    budget = settings.budget
    if not mistakes.at("budget") and not (budget.current_thresholds or budget.forecast_thresholds):
        mistakes.add("budget.current_thresholds", [], "A budget without a threshold tells nobody anything: [0.5, 1].")


def _channels(settings: Settings, mistakes: Mistakes) -> None:
    emails, slack = settings.alerts.emails, settings.alerts.slack_channel
    if settings.has_slack_token and not slack:
        mistakes.add(
            "alerts.slack_channel", slack, "spotrail:slack_token is set, and no channel to write to: #ml-alerts."
        )
    if slack and not settings.has_slack_token:
        rule = "It needs the token of a Slack app: pulumi config set --secret spotrail:slack_token xoxb-..."
        mistakes.add("alerts.slack_channel", slack, rule)
    channels = len(emails) + bool(slack)
    if not channels:
        mistakes.add("alerts.emails", list(emails), "An alert that reaches nobody is none: name an e-mail address.")
    if channels > MOST_CHANNELS:
        mistakes.add("alerts.emails", list(emails), f"A budget takes {MOST_CHANNELS} channels, Slack among them.")


def _guard(settings: Settings, mistakes: Mistakes) -> None:
    """Settings of a job that does not run."""
    guard = settings.guard
    if guard.enabled or mistakes.at("guard"):
        return
    if guard.apply:
        rule = "There is no guard that could apply anything: spotrail:guard.enabled is false."
        mistakes.add("guard.apply", guard.apply, rule)
    if guard.webhook:
        rule = "There is no guard that could tell it anything: spotrail:guard.enabled is false."
        mistakes.add("guard.webhook", guard.webhook, rule)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('?') else '.'}"
