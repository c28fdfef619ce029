"""Which volume a schedule is for: one, by its link or by a name that no other has."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import pytest

from policies.audit.judge import judge
from policies.audit.model import RemedyKind
from policies.audit.record import Metric, Part
from policies.audit.schedule import read_schedule
from policies.audit.scheduling import scheduled
from policies.audit.terms import Terms
from policies.errors import InputError
from tests.policies.audit.worlds import NOW, PROJECT, URL, book, context, disk

CLOCK = read_schedule("mon-fri 08:00-18:00 UTC 1200")
"""The world is looked at on a Sunday."""
OTHER = f"projects/{PROJECT}/zones/us-central1-c/disks/coral"


def set_by_clock(*names: str) -> dict[str, Any]:
    """The remedy of each volume, by its link, where two of three have one name."""
    far = disk(
        provisionedThroughput="800",
        zone=f"{URL}/zones/us-central1-c",
        selfLink=f"{URL}/zones/us-central1-c/disks/coral",
    )
    volumes = [disk(provisionedThroughput="1200"), far, disk("reef", provisionedThroughput="1200")]
    seen = context({Part.DISKS: volumes, Part.INSTANCES: [], Part.NODES: []}, {Metric.READ_BYTES: []})
    audit = judge(seen.record, Terms(), book(), NOW.date())
    found = scheduled(audit, seen.record, dict.fromkeys(names, CLOCK), seen.pricing)
    return {each.resource: each.remedy for each in found.verdicts}


def test_a_link_means_one_of_two() -> None:
    found = set_by_clock(OTHER)
    assert (found[OTHER].kind, found[OTHER].to_mibps) == (RemedyKind.SCHEDULE_THROUGHPUT, 400)
    # 50 of 168 hours at 1,200, else 400: 638.1 on average, for 0.12 each.
    assert found[OTHER].monthly_saving.per_month == Fraction(12, 100) * (800 - (400 + 800 * Fraction(50, 168)))
    others = [remedy.kind for resource, remedy in found.items() if resource != OTHER]
    assert others == [RemedyKind.SNAPSHOT_THEN_DELETE] * 2


def test_a_name_that_nothing_else_has_is_enough() -> None:
    kinds = {resource: remedy.kind for resource, remedy in set_by_clock("reef").items()}
    assert [link.rpartition("/")[2] for link, kind in kinds.items() if kind is RemedyKind.SCHEDULE_THROUGHPUT] == [
        "reef"
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("coral", f"is the name of 2 volumes: projects/{PROJECT}/zones/us-central1-b/disks/coral, {OTHER}; write one"),
        ("reed", "no volume with provisioned throughput has that name. Did you mean reef?"),
    ],
)
def test_any_other_name_is_refused(name: str, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        set_by_clock(name)
