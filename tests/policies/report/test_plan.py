"""What a plan says beside its price: assumed usage, quotas."""

from __future__ import annotations

from decimal import Decimal

from policies.report.plan import QuotaNeed, usage_words
from policies.usage import ResourceUsage, Usage


def test_the_usage_that_was_assumed_is_said() -> None:
    defaults = ResourceUsage(hours_per_day=Decimal(10), gib=Decimal(5000))
    entries = {"checkpoints": {"gib": Decimal(100), "churn_gib_per_day": Decimal("2400.5")}}
    assert usage_words(Usage(defaults=defaults, entries=entries)) == (
        "hours_per_day 10, gib 5,000, readers 1, execution_seconds 60, hydration_hours 1; all other usage is 0",
        "checkpoints: gib 100, churn_gib_per_day 2,400.5",
    )


def test_a_quota_is_enough_only_where_its_default_is_known() -> None:
    for default, enough in ((8, True), (7, False), (None, False)):
        need = QuotaNeed(metric="chips", location="us-central1-b", needed=8, default=default)
        assert need.enough is enough
