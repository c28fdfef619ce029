"""Access scopes on TPU hosts: a missing one fails late, in the middle of a run that bills."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.resources import Opaque, Resource
from policies.rules.machines import DESCRIBED, NODE, is_tpu
from policies.rules.model import Context, Rule, Severity, Violation

SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform", "cloud-platform")
"""The scope, by its URL and by the alias that the provider takes."""


def _check(machine: Resource, context: Context) -> Iterator[Violation]:
    tpu = is_tpu(machine, context.resources)
    if isinstance(tpu, Opaque):
        yield Violation.hidden("machineType", tpu)
    scopes = machine.items("serviceAccount", "scopes") if tpu is True else SCOPES
    if isinstance(scopes, Opaque):
        yield Violation.hidden("serviceAccount.scopes", scopes)
    elif not set(SCOPES).intersection(scope for scope in scopes if isinstance(scope, str)):
        hidden = next((scope for scope in scopes if isinstance(scope, Opaque)), None)
        if hidden:
            yield Violation.hidden("serviceAccount.scopes", hidden)
        elif machine.type != NODE or scopes:
            yield Violation(message=f"serviceAccount.scopes is {_said(scopes)}; without cloud-platform calls fail late")


def _said(scopes: tuple[object, ...]) -> str:
    return ", ".join(map(str, scopes)) or "not set"


RULE: Final = Rule(
    id="IAM-SCOPES",
    title="TPU hosts have the scope cloud-platform; roles limit what they may do",
    severity=Severity.WARNING,
    applies_to=(NODE, *DESCRIBED),
    remediation=f"Set serviceAccount.scopes to [{SCOPES[0]}] and give the account few roles.",
    url="https://docs.cloud.google.com/compute/docs/access/service-accounts#scopes_best_practice",
    check=_check,
)
