"""When a resource is to end: the label `ttl` of its owner, counted from its creation."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Final, final

from policies.audit.reading import said, text
from policies.audit.record import Item
from policies.audit.times import instant, when
from policies.errors import InputError

LABEL: Final = "ttl"
FORM: Final = "hours or days, as in 12h or 7d"
_TTL: Final = re.compile(r"([1-9][0-9]{0,3})([hd])", re.ASCII)
_UNITS: Final = {"h": datetime.timedelta(hours=1), "d": datetime.timedelta(days=1)}


@final
class TtlError(InputError):
    """A label `ttl` that says no time to live."""


@final
@dataclass(frozen=True, kw_only=True)
class End:
    """When a resource is to end."""

    ttl: str
    """The label: `7d`."""
    at: datetime.datetime

    def over(self, now: datetime.datetime) -> bool:
        """Whether it should be gone."""
        return now > self.at


def time_to_live(label: str) -> datetime.timedelta:
    """What a label says, in the form that stack files take: `12h`, `7d`. Raises TtlError for anything else."""
    found = _TTL.fullmatch(label)
    if found is None:
        raise TtlError(f'label {LABEL} is "{label[:63]}": the guard understands {FORM}')
    return int(found[1]) * _UNITS[found[2]]


def end_of(label: str, born: datetime.datetime) -> End:
    """When something of that label ends. Raises TtlError, also for an end after the last day that there is."""
    try:
        return End(ttl=label, at=born + time_to_live(label))
    except OverflowError:
        raise TtlError(f'label {LABEL} is "{label}": counted from {born.isoformat()} there is no such day') from None


def created(item: Item) -> datetime.datetime:
    """When a resource was made, by whichever name its API has for that. Raises InputError where it does not say."""
    for key in ("creationTimestamp", "createTime", "timeCreated"):
        if key in item:
            found = when(item, key)
            return found if found is not None else instant(text(item, key))
    raise InputError(f"{said(item, 'name') or 'a resource'}: it does not say when it was made")
