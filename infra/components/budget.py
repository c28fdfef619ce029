"""The budget of a stack: tells at fractions of the month that are spent or forecast, by mail, Slack and Pub/Sub.

It stops nothing, and billing data is hours to a day old. It counts what carries the label `env` of the stack;
transfers and logs carry none. It filters by the number of the project: Google turns an id into the number, and every
preview would differ.
Source: https://cloud.google.com/billing/docs/how-to/budgets-programmatic-notifications
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, final

import pulumi
import pulumi_gcp as gcp

from infra.components.site import Site

PUBSUB_SCHEMA: Final = "1.0"


@final
@dataclass(frozen=True, kw_only=True)
class BudgetTerms:
    """What a month may cost."""

    billing_account: str
    monthly: int
    """Whole units of `currency`."""
    currency: str
    current: tuple[Decimal, ...]
    """Fractions of `monthly` that are spent."""
    forecast: tuple[Decimal, ...]
    """Fractions of `monthly` that the month is forecast to reach."""


def budget(
    site: Site,
    terms: BudgetTerms,
    project_number: pulumi.Input[int],
    topic: gcp.pubsub.Topic,
    channels: Sequence[gcp.monitoring.NotificationChannel],
    opts: pulumi.ResourceOptions,
) -> gcp.billing.Budget:
    """The budget, which writes to `topic` and to `channels`."""
    amount = gcp.billing.BudgetAmountSpecifiedAmountArgs(currency_code=terms.currency, units=str(terms.monthly))
    return gcp.billing.Budget(
        "budget",
        display_name=f"spotrail {site.env}",
        billing_account=terms.billing_account,
        amount=gcp.billing.BudgetAmountArgs(specified_amount=amount),
        budget_filter=gcp.billing.BudgetBudgetFilterArgs(
            projects=[pulumi.Output.format("projects/{0}", project_number)],
            labels={"env": site.env},
            calendar_period="MONTH",
        ),
        threshold_rules=[
            *(_threshold(fraction, "CURRENT_SPEND") for fraction in terms.current),
            *(_threshold(fraction, "FORECASTED_SPEND") for fraction in terms.forecast),
        ],
        all_updates_rule=gcp.billing.BudgetAllUpdatesRuleArgs(
            pubsub_topic=topic.id,
            schema_version=PUBSUB_SCHEMA,
            monitoring_notification_channels=[channel.id for channel in channels],
        ),
        opts=opts,
    )


def _threshold(fraction: Decimal, basis: str) -> gcp.billing.BudgetThresholdRuleArgs:
    return gcp.billing.BudgetThresholdRuleArgs(threshold_percent=float(fraction), spend_basis=basis)
