"""Alerts that tell nobody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.resources import Opaque, Resource
from policies.rules.model import Context, Rule, Severity, Violation


def _check(policy: Resource, context: Context) -> Iterator[Violation]:
    channels = policy.items("notificationChannels")
    if isinstance(channels, Opaque):
        yield Violation.hidden("notificationChannels", channels)
    elif not channels:
        yield Violation(message="notificationChannels is empty: the alert fires and nobody is told")


RULE: Final = Rule(
    id="BUDGET-ALERT-CHANNEL",
    title="Every alert policy has a notification channel",
    severity=Severity.WARNING,
    applies_to=("gcp:monitoring/alertPolicy:AlertPolicy",),
    remediation="Set spotrail:alerts.emails, or notificationChannels of the policy.",
    url="https://docs.cloud.google.com/monitoring/support/notification-options",
    check=_check,
)
