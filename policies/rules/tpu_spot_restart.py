"""Spot machines that ask to be restarted or migrated: Compute Engine refuses them, after everything else was made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.estimate.capacity import Capacity
from policies.estimate.model import UnknownInput
from policies.resources import Opaque, Resource
from policies.rules.machines import DESCRIBED, is_tpu, terms_of
from policies.rules.model import Context, Rule, Severity, Violation

TERMINATE: Final = "TERMINATE"


def _check(resource: Resource, context: Context) -> Iterator[Violation]:
    terms, tpu = terms_of(resource, context), is_tpu(resource, context.resources)
    if isinstance(terms, UnknownInput):
        yield Violation(message=f"{terms.path}: {terms.reason}", decided=False)
    if terms is Capacity.SPOT:
        yield from _restart(resource)
    if terms is Capacity.SPOT or tpu is True:
        yield from _maintenance(resource, spot=terms is Capacity.SPOT)
    elif isinstance(tpu, Opaque):
        yield Violation.hidden("machineType", tpu)


def _restart(resource: Resource) -> Iterator[Violation]:
    restart = resource.flag("scheduling", "automaticRestart")
    if isinstance(restart, Opaque):
        yield Violation.hidden("scheduling.automaticRestart", restart)
    elif restart is not False:
        said = "true" if restart else "not set, which means true"
        yield Violation(message=f"scheduling.automaticRestart is {said}; a spot machine must say false")


def _maintenance(resource: Resource, *, spot: bool) -> Iterator[Violation]:
    action = resource.text("scheduling", "onHostMaintenance")
    what = "a spot machine" if spot else "a TPU host"
    if isinstance(action, Opaque):
        yield Violation.hidden("scheduling.onHostMaintenance", action)
    elif action is None:
        yield Violation(
            message=f"scheduling.onHostMaintenance is not set; {what} must be terminated, say {TERMINATE}",
            severity=Severity.WARNING,
        )
    elif action != TERMINATE:
        yield Violation(message=f'scheduling.onHostMaintenance is "{action}"; {what} takes {TERMINATE} only')


RULE: Final = Rule(
    id="TPU-SPOT-RESTART",
    title="Spot machines and TPU hosts are terminated, never restarted or migrated",
    severity=Severity.ERROR,
    applies_to=DESCRIBED,
    remediation=(
        "Set scheduling.automaticRestart to false and scheduling.onHostMaintenance to TERMINATE; the TpuSlice "
        "component does."
    ),
    url="https://docs.cloud.google.com/compute/docs/instances/spot",
    check=_check,
)
