"""Owner or editor of the project for an account of the stack: whoever takes a host over owns the bill."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.resources import Opaque, Resource
from policies.rules.model import Context, Rule, Severity, Violation

BROAD: Final = ("roles/owner", "roles/editor")


def _check(binding: Resource, context: Context) -> Iterator[Violation]:
    role = binding.text("role")
    if isinstance(role, Opaque):
        yield Violation.hidden("role", role)
    elif role in BROAD:
        yield Violation(message=f"it gives {role} on the whole project")


RULE: Final = Rule(
    id="IAM-BROAD-ROLE",
    title="No account is owner or editor of the project",
    severity=Severity.WARNING,
    applies_to=("gcp:projects/iAMMember:IAMMember", "gcp:projects/iAMBinding:IAMBinding"),
    remediation="Give the roles that are needed, on the bucket or resource that needs them.",
    url="https://docs.cloud.google.com/iam/docs/roles-overview#basic",
    check=_check,
)
