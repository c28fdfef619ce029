"""An audit with one of everything that a report has to show. Its sums can be checked by hand."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction

from policies.audit.model import (
    Audit,
    AuditFinding,
    Remedy,
    RemedyKind,
    Since,
    Usage,
    Verdict,
    VerdictKind,
)
from policies.audit.record import Missing, Window
from policies.money import ZERO, Amount
from policies.rules.model import Severity

NOW = datetime.datetime(2026, 11, 15, 10, 0, tzinfo=datetime.UTC)
ZONE = "projects/p1/zones/us-central1-b"


def verdicts(name: str = "llama-old") -> tuple[Verdict, ...]:
    """12,000 MiB/s at 0.12 a month = 1,440.00; so far 618.20; p99 a third of a hundred; an unknown one; one in use."""
    return (
        Verdict(
            resource=f"{ZONE}/disks/{name}",
            type="compute.disk",
            location="us-central1-b",
            kind=VerdictKind.IDLE_UNATTACHED,
            usage=Usage(provisioned_mibps=12_000),
            waste=Amount.by_month(1440),
            since=datetime.datetime(2026, 11, 2, 8, 30, tzinfo=datetime.UTC),
            since_confidence=Since.EXACT,
            wasted_so_far=Decimal("618.20"),
            remedy=Remedy(
                kind=RemedyKind.SNAPSHOT_THEN_DELETE,
                monthly_saving=Amount.by_month(1440),
                text="delete after snapshot",
            ),
            message="12,000 MiB/s, no reader since 11-02",
        ),
        Verdict(
            resource=f"{ZONE}/disks/serve-ml",
            type="compute.disk",
            location="us-central1-b",
            kind=VerdictKind.OVERPROVISIONED,
            usage=Usage(
                coverage=Fraction(1),
                provisioned_mibps=2400,
                mean_mibps=Fraction(100),
                p99_mibps=Fraction(100, 3),
                peak_mibps=Fraction(400),
                resolution=datetime.timedelta(minutes=1),
            ),
            waste=Amount.by_month(240),
            since=NOW - datetime.timedelta(days=7),
            since_confidence=Since.AT_LEAST,
            wasted_so_far=Decimal("55.23"),
            remedy=Remedy(
                kind=RemedyKind.LOWER_THROUGHPUT,
                to_mibps=400,
                monthly_saving=Amount.by_month(240),
                text="throughput to 400",
            ),
            message="p99 33 of 2,400 MiB/s, two readers",
        ),
        Verdict(
            resource=f"{ZONE}/disks/blind",
            type="compute.disk",
            location="us-central1-b",
            kind=VerdictKind.UNKNOWN_TELEMETRY,
            message="reader runs, 3 % of points present",
        ),
        Verdict(
            resource=f"{ZONE}/disks/busy",
            type="compute.disk",
            location="us-central1-b",
            kind=VerdictKind.IN_USE,
            waste=ZERO,
            message="mean 1,000 of 1,200 MiB/s",
        ),
    )


def audit(name: str = "llama-old", gap: str = "403 in us-east1-d", message: str = "600 GiB a day through NAT") -> Audit:
    """1,440 + 240 = 1,680.00 a month, 618.20 + 55.23 = 673.43 so far."""
    return Audit(
        project="p1",
        recorded_at=NOW,
        window=Window(start=NOW - datetime.timedelta(days=7), end=NOW - datetime.timedelta(minutes=5)),
        currency="USD",
        book_as_of=datetime.date(2026, 11, 29),
        book_sha256="ab" * 32,
        verdicts=verdicts(name),
        findings=(
            AuditFinding(
                rule="NET-NAT-BULK",
                severity=Severity.WARNING,
                resource="projects/p1/regions/us-central1/routers/nat",
                message=message,
                monthly=Amount.by_month(821),
                remediation="Read weights from a bucket of the region.",
            ),
        ),
        missing=(Missing(part="compute.disks us-east1-d", why=gap),) if gap else (),
    )
