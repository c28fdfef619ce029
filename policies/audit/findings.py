"""What the live audit finds beside verdicts. An id of a rule of stacks means what that rule means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final, final

from policies.audit.model import AuditFinding
from policies.audit.subjects import Subject
from policies.money import Amount
from policies.rules.model import Severity
from policies.rules.registry import rules


@final
@dataclass(frozen=True, kw_only=True)
class FindingKind:
    """One mistake that the live world can show."""

    id: str
    """`VM-IDLE`; an id of a rule of stacks where the mistake is the same one."""
    title: str
    """One sentence of at most 80 characters, without a full stop."""
    severity: Severity
    remediation: str


SHARED: Final = (
    "BUDGET-LABELS",
    "DISK-LABELS",
    "DISK-SNAPSHOT-RETENTION",
    "GCS-LABELS",
    "NET-NAT-BULK",
    "TPU-LABELS",
    "TPU-NO-TTL",
    "TPU-ON-DEMAND",
    "VM-LABELS",
)
"""Rules of stacks whose mistake shows in the live world too."""
OWN: Final = (
    FindingKind(
        id="VM-IDLE",
        title="A machine that runs does something",
        severity=Severity.WARNING,
        remediation="Stop it while nobody works, or give it a smaller machine type (spotrail:head.machine).",
    ),
    FindingKind(
        id="VM-STOPPED",
        title="A stopped machine does not keep its disks for long",
        severity=Severity.INFO,
        remediation="Delete the machine with its disks, after a snapshot where the data matters.",
    ),
    FindingKind(
        id="TPU-LEFTOVER",
        title="A slice that is gone leaves nothing behind that bills",
        severity=Severity.WARNING,
        remediation="Delete the disks and addresses that no slice uses, or make the slice again.",
    ),
    FindingKind(
        id="DISK-FANOUT",
        title="A volume with many readers has no more than the floor of today",
        severity=Severity.INFO,
        remediation=(
            "Lower its throughput where the readers do not need it: since 2026-08-03 Google asks for 20 MiB/s a "
            "reader from 21 readers up, where it asked for 100 (spotrail:model.throughput)."
        ),
    ),
    FindingKind(
        id="NET-NAT-IDLE",
        title="A NAT gateway has machines behind it",
        severity=Severity.INFO,
        remediation="Set spotrail:network.nat to false, or delete the gateway from its router.",
    ),
)


@cache
def finding_kinds() -> Mapping[str, FindingKind]:
    """Everything that the audit can find, by id. Raises ValueError where an id of ours is taken by a rule of stacks."""
    known = rules()
    found = {
        name: FindingKind(
            id=name,
            title=known[name].title,
            severity=known[name].severity,
            remediation=known[name].remediation,
        )
        for name in SHARED
    }
    for kind in OWN:
        if kind.id in known or kind.id in found:
            raise ValueError(f"{kind.id} is taken; an id means one thing")
        found[kind.id] = kind
    return MappingProxyType(dict(sorted(found.items())))


def find(
    rule: str, subject: Subject, message: str, *, monthly: Amount | None = None, severity: Severity | None = None
) -> AuditFinding:
    """A finding about a subject; `severity` where this case is less bad than its kind."""
    kind = finding_kinds()[rule]
    return AuditFinding(
        rule=rule,
        severity=severity or kind.severity,
        resource=subject.resource,
        message=message,
        monthly=monthly,
        remediation=kind.remediation,
    )
