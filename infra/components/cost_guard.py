"""What says that money is being lost: a budget, and alerts on what the bill shows only days later.

- The budget tells at fractions of the month that are spent or forecast, by mail, Slack and Pub/Sub. It stops nothing,
  and billing data is hours to a day old. It counts what carries the label `env` of the stack; transfers and logs carry
  none. It filters by the number of the project: Google turns an id into the number, and every preview would differ.
- Spend rate: more TPU chips at work in the project than this stack declares. Minutes old.
- Idle throughput: a volume whose hosts run and that nobody reads, one condition a volume. A volume that no host has
  attached has no series at all, so no alert can find it; nodes of the Cloud TPU API may have none either.
Source: https://cloud.google.com/billing/docs/how-to/budgets-programmatic-notifications,
https://cloud.google.com/monitoring/promql/create-promql-alerts-console and
https://cloud.google.com/monitoring/api/metrics_gcp_c
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, final

import pulumi
import pulumi_gcp as gcp

from infra.components.site import Site
from infra.plan.names import cloud_name

PUBSUB_SCHEMA: Final = "1.0"
MOST_CONDITIONS: Final = 6
"""Conditions of one alert policy."""
BYTES_PER_MIB: Final = 1024 * 1024
READ_BYTES: Final = "compute_googleapis_com:instance_disk_read_bytes_count"
ACTIVE_CHIPS: Final = "compute_googleapis_com:instance_tpu_active_chips"
READ_WINDOW: Final = "10m"
CHIP_WINDOW: Final = "600s"
EVALUATION: Final = "60s"


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


@final
@dataclass(frozen=True, kw_only=True)
class Slack:
    """A Slack channel."""

    channel: str
    token: pulumi.Output[str]
    """Secret."""


@final
@dataclass(frozen=True, kw_only=True)
class WatchedVolume:
    """A volume that hosts of the stack have attached."""

    device_name: str
    throughput: int
    """Provisioned MiB/s."""

    def idle_below(self, percent: int) -> int:
        """Bytes per second below which it counts as idle."""
        return self.throughput * BYTES_PER_MIB * percent // 100


@final
@dataclass(frozen=True, kw_only=True)
class CostGuardArgs:
    """What to watch, and whom to tell."""

    site: Site
    project_number: pulumi.Input[int]
    budget: BudgetTerms
    emails: tuple[str, ...]
    slack: Slack | None
    """None: nobody on Slack."""
    chips: int
    """TPU chips that the stack declares."""
    volumes: tuple[WatchedVolume, ...]
    idle_percent: int
    """Part of its throughput below which a volume is idle."""
    idle_hours: int
    """Hours without a break before the alert."""


@final
class CostGuard(pulumi.ComponentResource):
    """Channels, topic, budget and alert policies."""

    topic: gcp.pubsub.Topic
    budget: gcp.billing.Budget

    def __init__(self, name: str, args: CostGuardArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("spotrail:infra:CostGuard", name, None, opts)
        self._args = args
        self._channels = [*map(self._email, args.emails), *([self._slack(args.slack)] if args.slack else [])]
        self.topic = gcp.pubsub.Topic(
            "budget",
            name=cloud_name(args.site.env, "budget"),
            labels=args.site.labels_with(role="budget"),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.budget = self._budget()
        self._spend_rate()
        for first in range(0, len(args.volumes), MOST_CONDITIONS):
            self._idle_throughput(first, args.volumes[first : first + MOST_CONDITIONS])
        self.register_outputs({"topic": self.topic.id, "budget": self.budget.name})

    def _email(self, address: str) -> gcp.monitoring.NotificationChannel:
        return gcp.monitoring.NotificationChannel(
            f"email-{address}",
            type="email",
            display_name=f"spotrail {self._args.site.env}: {address}",
            labels={"email_address": address},
            user_labels=dict(self._args.site.labels),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _slack(self, slack: Slack) -> gcp.monitoring.NotificationChannel:
        return gcp.monitoring.NotificationChannel(
            "slack",
            type="slack",
            display_name=f"spotrail {self._args.site.env}: {slack.channel}",
            labels={"channel_name": slack.channel},
            sensitive_labels=gcp.monitoring.NotificationChannelSensitiveLabelsArgs(auth_token=slack.token),
            user_labels=dict(self._args.site.labels),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _budget(self) -> gcp.billing.Budget:
        site, terms = self._args.site, self._args.budget
        return gcp.billing.Budget(
            "budget",
            display_name=f"spotrail {site.env}",
            billing_account=terms.billing_account,
            amount=gcp.billing.BudgetAmountArgs(
                specified_amount=gcp.billing.BudgetAmountSpecifiedAmountArgs(
                    currency_code=terms.currency, units=str(terms.monthly)
                )
            ),
            budget_filter=gcp.billing.BudgetBudgetFilterArgs(
                projects=[pulumi.Output.format("projects/{0}", self._args.project_number)],
                labels={"env": site.env},
                calendar_period="MONTH",
            ),
            threshold_rules=[
                *(_threshold(fraction, "CURRENT_SPEND") for fraction in terms.current),
                *(_threshold(fraction, "FORECASTED_SPEND") for fraction in terms.forecast),
            ],
            all_updates_rule=gcp.billing.BudgetAllUpdatesRuleArgs(
                pubsub_topic=self.topic.id,
                schema_version=PUBSUB_SCHEMA,
                monitoring_notification_channels=[channel.id for channel in self._channels],
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _spend_rate(self) -> None:
        args = self._args
        text = (
            f"More than {args.chips} TPU chips are at work in {args.site.project}; the stack {args.site.env} declares "
            f"{args.chips}. A forgotten v6e-8 costs thousands a month.\n\n"
            f"1. `gcloud compute instances list --project={args.site.project} --filter=machineType~ct6e` names the "
            "hosts.\n"
            "2. Delete what nobody uses, or declare it in the stack file.\n"
            "3. The chips of all stacks of a project count together: give each stack a project of its own."
        )
        condition = _condition(
            f"more than {args.chips} active TPU chips", f"sum({ACTIVE_CHIPS}) > {args.chips}", CHIP_WINDOW
        )
        self._policy("spend-rate", "TPU chips beyond the stack", [condition], text)

    def _idle_throughput(self, first: int, volumes: Sequence[WatchedVolume]) -> None:
        args = self._args
        conditions = [
            _condition(
                f"{volume.device_name} read at less than {args.idle_percent} % of {volume.throughput} MiB/s",
                f'sum(rate({READ_BYTES}{{monitored_resource="gce_instance",device_name="{volume.device_name}"}}'
                f"[{READ_WINDOW}])) < {volume.idle_below(args.idle_percent)}",
                f"{args.idle_hours * 3600}s",
            )
            for volume in volumes
        ]
        text = (
            f"For {args.idle_hours} hours the hosts of a model volume have read less than {args.idle_percent} % of the "
            "throughput that is billed, whether it is used or not.\n\n"
            "1. A model that sits in memory is not read any more: lower `spotrail:model.throughput` in the stack file "
            "to the floor (400 MiB/s, 0.12 a GiB, 20 a reader from the 21st on). It can change once in six hours, "
            "while hosts are attached, and the next cold start is slower.\n"
            "2. If nobody serves: set `spotrail:serving.hosts` to 0, or `pulumi destroy` the stack. The snapshot and "
            "the bucket keep the model."
        )
        suffix = f"-{first // MOST_CONDITIONS + 1}" if first else ""
        self._policy(f"idle-throughput{suffix}", "Provisioned throughput that nobody reads", conditions, text)

    def _policy(
        self, name: str, title: str, conditions: list[gcp.monitoring.AlertPolicyConditionArgs], text: str
    ) -> None:
        site = self._args.site
        gcp.monitoring.AlertPolicy(
            name,
            display_name=f"spotrail {site.env}: {title}",
            combiner="OR",
            conditions=conditions,
            documentation=gcp.monitoring.AlertPolicyDocumentationArgs(
                content=text, mime_type="text/markdown", subject=f"spotrail {site.env}: {title}"
            ),
            notification_channels=[channel.id for channel in self._channels],
            severity="WARNING",
            user_labels=dict(site.labels),
            opts=pulumi.ResourceOptions(parent=self),
        )


def _condition(title: str, query: str, duration: str) -> gcp.monitoring.AlertPolicyConditionArgs:
    """A PromQL condition; metrics that have no series yet, as on a first day, are no mistake."""
    return gcp.monitoring.AlertPolicyConditionArgs(
        display_name=title,
        condition_prometheus_query_language=gcp.monitoring.AlertPolicyConditionConditionPrometheusQueryLanguageArgs(
            query=query, duration=duration, evaluation_interval=EVALUATION, disable_metric_validation=True
        ),
    )


def _threshold(fraction: Decimal, basis: str) -> gcp.billing.BudgetThresholdRuleArgs:
    return gcp.billing.BudgetThresholdRuleArgs(threshold_percent=float(fraction), spend_basis=basis)
