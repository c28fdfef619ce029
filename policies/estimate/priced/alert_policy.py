"""Alert policies: by the condition, and by the time series that the conditions return."""

from __future__ import annotations

from typing import Final

from policies.estimate.market import Market, bill, unknown
from policies.estimate.model import ResourceEstimate
from policies.estimate.registry import Priced
from policies.resources import Opaque, Resource

POLICY: Final = "gcp:monitoring/alertPolicy:AlertPolicy"


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """The conditions of one policy for a month."""
    conditions = resource.items("conditions")
    if isinstance(conditions, Opaque):
        return bill(resource, "global", "alert policy", (unknown(conditions, "conditions", decides="how many bill"),))
    parts = (
        market.line("conditions", "alerting.condition", len(conditions), "condition-month", "global"),
        market.used(
            resource,
            "time_series_millions",
            "time series",
            "alerting.time-series",
            market.usage_of(resource).time_series_millions,
            "million",
            "global",
        ),
    )
    return bill(resource, "global", "alert policy", parts)


PRICED: Final = Priced(types=(POLICY,), price=price)
