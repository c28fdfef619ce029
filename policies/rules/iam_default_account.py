"""Machines that run as the default account of Compute Engine: often an editor of the whole project."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.resources import Opaque, Resource
from policies.rules.machines import DESCRIBED, NODE
from policies.rules.model import Context, Rule, Severity, Violation

DEFAULT: Final = "-compute@developer.gserviceaccount.com"
ACCOUNT: Final = "gcp:serviceaccount/account:Account"


def _check(machine: Resource, context: Context) -> Iterator[Violation]:
    block, email = machine.value("serviceAccount"), machine.value("serviceAccount", "email")
    if context.resources.references(machine, "serviceAccount", ACCOUNT):
        return
    if isinstance(email, Opaque):
        yield Violation.hidden("serviceAccount.email", email)
    elif email is None and (block is not None or machine.type == NODE):
        yield Violation(message="serviceAccount.email is not set: it runs as the default account of Compute Engine")
    elif isinstance(email, str) and email.endswith(DEFAULT):
        yield Violation(message=f"it runs as {email}, the default account of Compute Engine")


RULE: Final = Rule(
    id="IAM-DEFAULT-ACCOUNT",
    title="Machines run as an account of their own",
    severity=Severity.WARNING,
    applies_to=(NODE, *DESCRIBED),
    remediation="Set serviceAccount.email to an account that has just the roles needed (Identity component).",
    url="https://docs.cloud.google.com/compute/docs/access/service-accounts#default_service_account",
    check=_check,
)
