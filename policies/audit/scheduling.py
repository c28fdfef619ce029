"""Throughput by the clock as a remedy: for the volumes that the caller names, instead of what the audit proposes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from policies.audit.links import relative
from policies.audit.model import Audit, Remedy, RemedyKind, Verdict
from policies.audit.pricing import Pricing
from policies.audit.reading import names, whole
from policies.audit.record import Item, Part, Record
from policies.audit.schedule import Schedule, read_schedule
from policies.errors import InputError
from policies.estimate.model import Unpriced
from policies.hardware.disks import floor_throughput
from policies.hardware.errors import hint

FORM: Final = "VOLUME=TEXT"


def read_schedules(texts: Iterable[str]) -> Mapping[str, Schedule]:
    """The schedules of the options `--schedule VOLUME=TEXT`. Raises InputError."""
    found: dict[str, Schedule] = {}
    for text in texts:
        name, equals, schedule = text.partition("=")
        if not (name and equals):
            raise InputError(f'--schedule "{text}": it must be {FORM}, as in llama=mon-fri 08:00-18:00 UTC 1200')
        if name in found:
            raise InputError(f'--schedule "{name}" is given twice; a volume has one schedule')
        found[name] = read_schedule(schedule)
    return found


def scheduled(audit: Audit, record: Record, schedules: Mapping[str, Schedule], pricing: Pricing) -> Audit:
    """The audit with the schedule as the remedy of each named volume: at this hour, the throughput that is due now.

    A volume goes by its link, or by its name where no other has it. Raises InputError for a name that no volume of
    the record has, or more than one.
    """
    disks = {relative(str(item.get("selfLink"))): item for item in record.items(Part.DISKS)}
    by_link = {_volume(audit, name): schedule for name, schedule in schedules.items()}
    if record.missing:
        return audit
    return replace(audit, verdicts=tuple(_scheduled(each, disks, by_link, audit, pricing) for each in audit.verdicts))


def _volume(audit: Audit, name: str) -> str:
    """The link of the one volume of that name."""
    volumes = [verdict for verdict in audit.verdicts if verdict.usage.provisioned_mibps is not None]
    found = [verdict.resource for verdict in volumes if name in (verdict.name, verdict.resource)]
    if not found:
        close = hint(name, [verdict.name for verdict in volumes])
        raise InputError(f'--schedule "{name}": no volume with provisioned throughput has that name.{close}')
    if len(found) > 1:
        raise InputError(f'--schedule "{name}" is the name of {len(found)} volumes: {", ".join(found)}; write one')
    return found[0]


def _scheduled(
    verdict: Verdict, disks: Mapping[str, Item], schedules: Mapping[str, Schedule], audit: Audit, pricing: Pricing
) -> Verdict:
    schedule, disk = schedules.get(verdict.resource), disks.get(verdict.resource)
    now = verdict.usage.provisioned_mibps
    if schedule is None or disk is None or now is None:
        return verdict
    floor = floor_throughput(whole(disk, "sizeGb") or 0, len(names(disk, "users")))
    due = schedule.mibps_at(audit.recorded_at, floor)
    if due == now:
        said = f"{verdict.message}; by the clock, {schedule.text()}, it has what is due now"
        return replace(verdict, remedy=None, message=said)
    rate = pricing.throughput_rate(disk)
    remedy = Remedy(
        kind=RemedyKind.SCHEDULE_THROUGHPUT,
        to_mibps=due,
        monthly_saving=None if isinstance(rate, Unpriced) else rate * (now - schedule.mean_mibps(floor)),
        text=f"by the clock, {schedule.text()}, else {floor}: now {due}",
    )
    return replace(verdict, remedy=remedy)
