"""A throughput schedule: office hours high, nights at the floor, as one line of text that fits a label too.

`mon-fri 08:00-18:00 Europe/Berlin 1200`: from eight to six on working days 1,200 MiB/s, else the floor of the volume.
Google takes a change of the throughput once in six hours, so two changes are never closer, and never more than four a
day. Source: https://cloud.google.com/compute/docs/disks/hd-types/hyperdisk-ml
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Final, final

from policies.errors import InputError
from policies.hardware.errors import hint

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
SPACING: Final = datetime.timedelta(hours=6)
"""Between two changes of the throughput of a volume."""
EXAMPLE: Final = "mon-fri 08:00-18:00 Europe/Berlin 1200"
LABEL_MOST: Final = 63
"""Characters of the value of a label."""
_DAY: Final = 24 * 60
_WEEK: Final = 7 * _DAY
_RANGE: Final = re.compile(r"([01]?\d|2[0-3]):?([0-5]\d)-(?:([01]?\d|2[0-3]):?([0-5]\d)|24:?00)", re.ASCII)


@final
@dataclass(frozen=True, kw_only=True)
class Schedule:
    """When a volume has the throughput that its readers want, and when it has the floor."""

    days: tuple[int, ...]
    """0 for Monday; those on which the high hours begin."""
    start: int
    """Minute of the day at which the high hours begin."""
    end: int
    """Minute of the day at which they end; at or before `start`, it is that of the next day."""
    zone: str
    """IANA name: `Europe/Berlin`."""
    mibps: int
    """Throughput in the high hours."""

    def __post_init__(self) -> None:
        if not self.days or set(self.days) - set(range(7)):
            raise InputError(f"schedule: the days are {self.days}; name at least one of {', '.join(DAYS)}")
        if self.mibps <= 0:
            raise InputError(f"schedule: the throughput is {self.mibps} MiB/s; it must be more than 0")
        gap = min(self._gaps())
        if gap < SPACING:
            raise InputError(
                f"schedule: two changes lie {gap} apart; Google takes a change of the throughput once in 6 hours, "
                f"as in {EXAMPLE}"
            )

    @property
    def length(self) -> int:
        """Minutes of the high hours of one day."""
        return (self.end - self.start) % _DAY or _DAY

    def high_at(self, moment: datetime.datetime) -> bool:
        """Whether the high hours are on. By the clock on the wall, so that summer time moves nothing."""
        local = moment.astimezone(zoneinfo.ZoneInfo(self.zone))
        return self._high(local.weekday() * _DAY + local.hour * 60 + local.minute)

    def mibps_at(self, moment: datetime.datetime, floor: int) -> int:
        """The throughput to set; never below the floor of the volume."""
        return max(self.mibps, floor) if self.high_at(moment) else floor

    @property
    def share(self) -> Fraction:
        """The part of a week in the high hours."""
        return Fraction(sum(map(self._high, range(_WEEK))), _WEEK)

    def mean_mibps(self, floor: int) -> Fraction:
        """What a week is billed for, on average."""
        return floor + (max(self.mibps, floor) - floor) * self.share

    def text(self) -> str:
        """As a stack file has it."""
        return f"{_days_text(self.days)} {_clock(self.start)}-{_clock(self.end)} {self.zone} {self.mibps}"

    def label(self) -> str:
        """As the value of a label: lower case, no colon, comma or slash. Raises InputError where it is too long."""
        found = self.text().lower().replace(" ", "_").replace(":", "").replace("/", "--").replace(",", "")
        if len(found) > LABEL_MOST:
            raise InputError(
                f'schedule "{self.text()}" does not fit a label of {LABEL_MOST} characters; use fewer days'
            )
        return found

    def _high(self, minute: int) -> bool:
        return any((minute - day * _DAY - self.start) % _WEEK < self.length for day in self.days)

    def _gaps(self) -> tuple[datetime.timedelta, ...]:
        """The times between the changes of a week, round the week."""
        starts = {(day * _DAY + self.start) % _WEEK for day in self.days}
        ends = {(day * _DAY + self.start + self.length) % _WEEK for day in self.days}
        # What ends as the next begins is no change.
        changes = sorted((starts | ends) - (starts & ends))
        if not changes:
            return (datetime.timedelta(days=7),)
        following = [*changes[1:], changes[0] + _WEEK]
        return tuple(datetime.timedelta(minutes=later - now) for now, later in zip(changes, following, strict=True))


def read_schedule(text: str) -> Schedule:
    """A schedule from its text or label form. Raises InputError that names the part, the rule and an example."""
    parts = text.split() if " " in text.strip() else _label_parts(text.strip())
    if len(parts) != 4:
        raise InputError(f'schedule "{text}": it has four parts, days, hours, time zone and MiB/s, as in {EXAMPLE}')
    days, hours, zone, mibps = parts
    start, end = _hours(text, hours)
    if not (mibps.isascii() and mibps.isdecimal()):
        raise InputError(f'schedule "{text}": the throughput is "{mibps}"; it must be whole MiB/s, as in {EXAMPLE}')
    return Schedule(days=_days(text, days), start=start, end=end, zone=_zone(text, zone), mibps=int(mibps))


def _label_parts(text: str) -> list[str]:
    """Days and hours come first and MiB/s last; a time zone may have an underscore of its own."""
    parts = text.split("_")
    return [*parts[:2], "_".join(parts[2:-1]).replace("--", "/"), parts[-1]] if len(parts) >= 4 else parts


def _days(text: str, part: str) -> tuple[int, ...]:
    found: set[int] = set()
    for piece in _pieces(part.lower()):
        first, dash, last = piece.partition("-")
        for name in (first, *([last] if dash else [])):
            if name not in DAYS:
                raise InputError(
                    f'schedule "{text}": "{name}" is no day; days are {", ".join(DAYS)}, as in mon-fri,sun'
                )
        begin = DAYS.index(first)
        span = (DAYS.index(last) - begin) % 7 if dash else 0
        found.update((begin + step) % 7 for step in range(span + 1))
    return tuple(sorted(found))


def _pieces(part: str) -> list[str]:
    """`mon,fri` and, in a label, `monfri`."""
    return part.split(",") if "," in part or "-" in part else [part[at : at + 3] for at in range(0, len(part), 3)]


def _hours(text: str, part: str) -> tuple[int, int]:
    found = _RANGE.fullmatch(part)
    if found is None:
        raise InputError(f'schedule "{text}": the hours are "{part}"; write them as 08:00-18:00')
    start = int(found.group(1)) * 60 + int(found.group(2))
    return start, int(found.group(3) or 0) * 60 + int(found.group(4) or 0)


def _zone(text: str, part: str) -> str:
    zones = _zones()
    name = zones.get(part.lower())
    if name is None:
        raise InputError(
            f'schedule "{text}": "{part}" is no time zone, as Europe/Berlin is.{hint(part, tuple(zones.values()))}'
        )
    return name


@cache
def _zones() -> Mapping[str, str]:
    return {name.lower(): name for name in sorted(zoneinfo.available_timezones())}


def _days_text(days: tuple[int, ...]) -> str:
    """`mon-fri` for days on end, also over the weekend; else each of them."""
    first = next((day for day in days if (day - 1) % 7 not in days), days[0])
    run = tuple((first + step) % 7 for step in range(len(days)))
    if len(days) > 2 and set(run) == set(days):
        return f"{DAYS[run[0]]}-{DAYS[run[-1]]}"
    return ",".join(DAYS[day] for day in days)


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
