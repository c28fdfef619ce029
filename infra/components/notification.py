"""Whom alerts and the budget reach: a channel for each e-mail address, and one for Slack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import pulumi
import pulumi_gcp as gcp

from infra.components.site import Site


@final
@dataclass(frozen=True, kw_only=True)
class Slack:
    """A Slack channel."""

    channel: str
    token: pulumi.Output[str]
    """Secret."""


def channels(
    site: Site, emails: tuple[str, ...], slack: Slack | None, opts: pulumi.ResourceOptions
) -> Iterator[gcp.monitoring.NotificationChannel]:
    """The channels of a stack, those of Slack last."""
    for address in emails:
        yield gcp.monitoring.NotificationChannel(
            f"email-{address}",
            type="email",
            display_name=f"spotrail {site.env}: {address}",
            labels={"email_address": address},
            user_labels=dict(site.labels),
            opts=opts,
        )
    if slack:
        yield gcp.monitoring.NotificationChannel(
            "slack",
            type="slack",
            display_name=f"spotrail {site.env}: {slack.channel}",
            labels={"channel_name": slack.channel},
            sensitive_labels=gcp.monitoring.NotificationChannelSensitiveLabelsArgs(auth_token=slack.token),
            user_labels=dict(site.labels),
            opts=opts,
        )
