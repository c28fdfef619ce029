"""The Google APIs that a stack calls.

An API is never disabled when a stack is destroyed: another stack of the project may need it, and disabling Compute
Engine would take that stack's machines along. Everything else in the program depends on this component, since an API
that was just enabled refuses calls for a moment and a new project has none of them.
Source: https://www.pulumi.com/registry/packages/gcp/api-docs/projects/service/
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import pulumi
import pulumi_gcp as gcp

BASE: Final = (
    "artifactregistry",
    "billingbudgets",
    "cloudresourcemanager",
    "compute",
    "iam",
    "iamcredentials",
    "iap",
    "logging",
    "monitoring",
    "pubsub",
    "run",
    "serviceusage",
    "storage",
)
"""What every stack calls, without `.googleapis.com`."""


@final
@dataclass(frozen=True, kw_only=True)
class ServicesArgs:
    """What the stack asks for beyond the base."""

    tpu_api: bool = False
    """Whether a slice uses the Cloud TPU API; slices on Compute Engine do not."""
    federation: bool = False
    """Whether a CI repository may exchange tokens."""
    guard: bool = False
    """Whether the guard runs: on a schedule, and it lists nodes of the Cloud TPU API even where there are none."""
    secrets: bool = False
    """Whether the guard has a webhook, whose URL a secret holds."""

    @property
    def apis(self) -> tuple[str, ...]:
        """The APIs to enable, without `.googleapis.com`, in order of their names."""
        asked = {
            "cloudscheduler": self.guard,
            "secretmanager": self.secrets,
            "sts": self.federation,
            "tpu": self.tpu_api or self.guard,
        }
        return tuple(sorted((*BASE, *(api for api, wanted in asked.items() if wanted))))


@final
class Services(pulumi.ComponentResource):
    """`projects.Service` for each API."""

    apis: pulumi.Output[list[str]]
    """Host names of the enabled APIs."""

    def __init__(self, name: str, args: ServicesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("spotrail:infra:Services", name, None, opts)
        enabled = [
            gcp.projects.Service(
                api,
                service=f"{api}.googleapis.com",
                disable_on_destroy=False,
                opts=pulumi.ResourceOptions(parent=self),
            )
            for api in args.apis
        ]
        self.apis = pulumi.Output.all(*(service.service for service in enabled))
        self.register_outputs({"apis": self.apis})
