"""The alert policies of a stack: which query, in which words, to whom. The queries are in infra/plan/alerts.py.

- Spend rate: more TPU chips at work in the project than this stack declares. Minutes old.
- Idle throughput: a volume whose hosts run and that nobody reads, one condition a volume.
- What the guard found: what has no series by itself, from the guard's own metrics.
- A guard that has not run.
Source: https://cloud.google.com/monitoring/promql/create-promql-alerts-console
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import pulumi
import pulumi_gcp as gcp

from infra.components.site import Site
from infra.plan.alerts import Alert, chips_beyond, guard_findings, guard_silent, idle_volume

MOST_CONDITIONS: Final = 6
"""Conditions of one alert policy."""
BYTES_PER_MIB: Final = 1024 * 1024


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
class AlertTerms:
    """When somebody is told."""

    chips: int
    """TPU chips that the stack declares."""
    volumes: tuple[WatchedVolume, ...]
    idle_percent: int
    """Part of its throughput below which a volume is idle."""
    idle_hours: int
    """Hours that an alert on a volume looks back."""
    idle_dollars: int
    """Idle money a month beyond which the guard's alert fires."""
    every_hours: int
    """Hours between two runs of the guard."""
    by_clock: bool
    """Whether the guard sets throughput by the clock: at night it is low because nobody reads."""


@final
class AlertPolicies:
    """Makes the policies of one stack."""

    def __init__(
        self,
        site: Site,
        terms: AlertTerms,
        channels: Sequence[gcp.monitoring.NotificationChannel],
        opts: pulumi.ResourceOptions,
    ) -> None:
        self._site, self._terms, self._channels, self._opts = site, terms, channels, opts

    def spend_rate(self) -> gcp.monitoring.AlertPolicy:
        """More chips at work than declared."""
        chips, project = self._terms.chips, self._site.project
        text = (
            f"More than {chips} TPU chips are at work in {project}; the stack {self._site.env} declares "
            f"{chips}. A forgotten v6e-8 costs thousands a month.\n\n"
            f"1. `gcloud compute instances list --project={project} --filter=machineType~ct6e` names the hosts.\n"
            "2. Delete what nobody uses, or declare it in the stack file.\n"
            "3. The chips of all stacks of a project count together: give each stack a project of its own."
        )
        condition = _condition(f"more than {chips} active TPU chips", chips_beyond(chips))
        return self._policy("spend-rate", "TPU chips beyond the stack", [condition], text)

    def idle_throughput(self) -> list[gcp.monitoring.AlertPolicy]:
        """A condition for each volume, in as many policies as they need; none where throughput goes by the clock."""
        volumes = () if self._terms.by_clock else self._terms.volumes
        parts = [volumes[first : first + MOST_CONDITIONS] for first in range(0, len(volumes), MOST_CONDITIONS)]
        return [self._idle_volumes(f"-{number}" if number > 1 else "", part) for number, part in enumerate(parts, 1)]

    def _idle_volumes(self, suffix: str, volumes: Sequence[WatchedVolume]) -> gcp.monitoring.AlertPolicy:
        percent, hours = self._terms.idle_percent, self._terms.idle_hours
        conditions = [
            _condition(
                f"{volume.device_name} read at less than {percent} % of {volume.throughput} MiB/s",
                idle_volume(volume.device_name, volume.idle_below(percent), hours),
            )
            for volume in volumes
        ]
        text = (
            f"For {hours} hours the hosts of a model volume have read less than {percent} % of the "
            "throughput that is billed, whether it is used or not.\n\n"
            "1. A model that sits in memory is not read any more: lower `spotrail:model.throughput` in the stack file "
            "to the floor (400 MiB/s, 0.12 a GiB, 20 a reader from the 21st on). It can change once in six hours, "
            "while hosts are attached, and the next cold start is slower.\n"
            "2. If nobody serves: set `spotrail:serving.hosts` to 0, or `pulumi destroy` the stack. The snapshot and "
            "the bucket keep the model."
        )
        return self._policy(f"idle-throughput{suffix}", "Provisioned throughput that nobody reads", conditions, text)

    def guard_findings(self) -> gcp.monitoring.AlertPolicy:
        """What the guard found and what has no metrics of its own."""
        terms, env, project = self._terms, self._site.env, self._site.project
        text = (
            f"The guard of {env} found money that is lost in {project}. The label `finding` of the incident says what: "
            f"idle things for more than {terms.idle_dollars} a month, volumes that nothing has attached, slices past "
            "their `ttl`, training runs without a heartbeat, or parts of the project that it could not read.\n\n"
            f"1. `spotrail audit --project {project}` says which, what each costs, and what would end it.\n"
            f"2. `spotrail audit --project {project} --stack {env} --apply` asks before each step; "
            "`spotrail:guard.apply: true` lets the guard do what is safe by itself."
        )
        alert = guard_findings(env, terms.every_hours, terms.idle_dollars)
        return self._policy("guard-findings", "Money that is lost", [_condition("what the guard found", alert)], text)

    def guard_silent(self) -> gcp.monitoring.AlertPolicy:
        """No run of the guard for longer than two are apart."""
        env, project = self._site.env, self._site.project
        text = (
            f"The guard of {env} runs every {self._terms.every_hours} h and has not done its work for more than twice "
            "that. Nobody looks for idle volumes, and no slice is ended at its `ttl`.\n\n"
            f"1. `gcloud run jobs executions list --job={env}-guard --project={project}` shows what failed; the log "
            "of an execution says why.\n"
            f"2. `gcloud run jobs execute {env}-guard --project={project}` runs it now."
        )
        condition = _condition("the guard has not run", guard_silent(env, self._terms.every_hours))
        return self._policy("guard-silent", "The guard has not run", [condition], text)

    def _policy(
        self, name: str, title: str, conditions: list[gcp.monitoring.AlertPolicyConditionArgs], text: str
    ) -> gcp.monitoring.AlertPolicy:
        subject = f"spotrail {self._site.env}: {title}"
        return gcp.monitoring.AlertPolicy(
            name,
            display_name=subject,
            combiner="OR",
            conditions=conditions,
            documentation=gcp.monitoring.AlertPolicyDocumentationArgs(
                content=text, mime_type="text/markdown", subject=subject
            ),
            notification_channels=[channel.id for channel in self._channels],
            severity="WARNING",
            user_labels=dict(self._site.labels),
            opts=self._opts,
        )


def _condition(title: str, alert: Alert) -> gcp.monitoring.AlertPolicyConditionArgs:
    """A PromQL condition; metrics that have no series yet, as on a first day, are no mistake."""
    query = gcp.monitoring.AlertPolicyConditionConditionPrometheusQueryLanguageArgs(
        query=alert.query,
        duration=f"{alert.hold_minutes * 60}s",
        evaluation_interval=f"{alert.every_minutes * 60}s",
        disable_metric_validation=True,
    )
    return gcp.monitoring.AlertPolicyConditionArgs(display_name=title, condition_prometheus_query_language=query)
