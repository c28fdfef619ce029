"""What says that money is being lost, and ends what its owner has dated.

The budget tells by the month, from billing data that is up to a day old. Alerts tell by the minute of what has
metrics. The guard job finds what has none, tells by Pub/Sub and a webhook, and may lower throughput and end slices. A
dashboard shows all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import pulumi
import pulumi_gcp as gcp

from infra.components.alert_policies import AlertPolicies, AlertTerms
from infra.components.budget import BudgetTerms, budget
from infra.components.guard_job import GuardJob, GuardTerms
from infra.components.notification import Slack, channels
from infra.components.site import Site
from infra.plan.dashboard import Shown, dashboard_json
from infra.plan.names import cloud_name


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
    alerts: AlertTerms
    guard: GuardTerms | None
    """None: no guard job, and no alert on what it finds."""


@final
class CostGuard(pulumi.ComponentResource):
    """Channels, topics, budget, alert policies, the guard job and the dashboard."""

    topic: gcp.pubsub.Topic
    """Of the budget."""
    budget: gcp.billing.Budget
    job: GuardJob | None

    def __init__(self, name: str, args: CostGuardArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("spotrail:infra:CostGuard", name, None, opts)
        site, child = args.site, pulumi.ResourceOptions(parent=self)
        told = list(channels(site, args.emails, args.slack, child))
        self.topic = gcp.pubsub.Topic(
            "budget", name=cloud_name(site.env, "budget"), labels=site.labels_with(role="budget"), opts=child
        )
        self.budget = budget(site, args.budget, args.project_number, self.topic, told, child)
        policies = AlertPolicies(site, args.alerts, told, child)
        policies.spend_rate()
        policies.idle_throughput()
        self.job = GuardJob(site, args.guard, child) if args.guard else None
        if self.job:
            policies.guard_findings()
            policies.guard_silent()
        gcp.monitoring.Dashboard("dashboard", dashboard_json=dashboard_json(_shown(args)), opts=child)
        self.register_outputs({"topic": self.topic.id, "budget": self.budget.name})


def _shown(args: CostGuardArgs) -> Shown:
    return Shown(
        stack=args.site.env,
        chips=args.alerts.chips,
        volumes=tuple((volume.device_name, volume.throughput) for volume in args.alerts.volumes),
        monthly=args.budget.monthly,
        currency=args.budget.currency,
        guarded=args.guard is not None,
    )
