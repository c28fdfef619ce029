"""Where a stack stands and for whom: what every component needs to know, in one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import pulumi_gcp as gcp

from policies.hardware.zones import region_of


@final
@dataclass(frozen=True, kw_only=True)
class Site:
    """One environment in one project."""

    env: str
    """Name of the stack; first part of every name in the cloud."""
    project: str
    """Project id."""
    zone: str
    """Default zone; its region holds the buckets, the registry and the jobs."""
    labels: Mapping[str, str]
    """Labels of everything that bills. The provider's default labels would not do: a preview does not show them."""

    @property
    def region(self) -> str:
        """Region of `zone`."""
        return region_of(self.zone)

    def labels_with(self, **more: str) -> dict[str, str]:
        """The labels of everything that bills and `more`."""
        return {**self.labels, **more}


def google_provider(site: Site, quota_project: str = "") -> gcp.Provider:
    """The explicit provider of every resource of the stack.

    Budget calls have no project of their own: without `user_project_override` and `billing_project` they are counted
    against the project of whoever runs Pulumi, and refused. `quota_project` defaults to the stack's project.
    Source: https://www.pulumi.com/registry/packages/gcp/api-docs/billing/budget/
    """
    return gcp.Provider(
        "google",
        project=site.project,
        region=site.region,
        zone=site.zone,
        user_project_override=True,
        billing_project=quota_project or site.project,
    )
