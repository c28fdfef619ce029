"""The exit code that an audit deserves, and the one of what was done about it."""

from __future__ import annotations

import dataclasses
from decimal import Decimal

import pytest

from policies.audit.model import Audit, Remedy, RemedyKind, Verdict, VerdictKind
from policies.audit.outcome import applied_exit, audit_exit
from policies.audit.remedies.applying import Outcome, Result
from policies.exit_codes import ExitCode
from policies.money import Amount
from tests.policies.audit.remedies.test_checking import plan
from tests.policies.report.audit_sample import audit

FINE, VIOLATED, UNDECIDED, FAILED = (
    ExitCode.FINE, ExitCode.VIOLATED, ExitCode.UNDECIDED, ExitCode.CLOUD_FAILED,
)  # fmt: skip


def verdict(kind: VerdictKind, waste: str | None, *, remedy: bool = False) -> Verdict:
    what = Remedy(kind=RemedyKind.LOWER_THROUGHPUT, to_mibps=400, text="throughput to 400")
    return Verdict(
        resource="projects/p/zones/z/disks/d",
        type="compute.disk",
        location="z",
        kind=kind,
        waste=None if waste is None else Amount.by_month(Decimal(waste)),
        remedy=what if remedy else None,
        message="why",
    )


def seen(*verdicts: Verdict, gap: str = "") -> Audit:
    return dataclasses.replace(audit(gap=gap), verdicts=verdicts, findings=())


BUSY = verdict(VerdictKind.IN_USE, "0")
IDLE = verdict(VerdictKind.IDLE_ATTACHED, "0.0000001", remedy=True)
DARK = verdict(VerdictKind.UNKNOWN_TELEMETRY, None)
UNPRICED = verdict(VerdictKind.IDLE_ATTACHED, None, remedy=True)


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (seen(), FINE),
        (seen(BUSY), FINE),
        (seen(verdict(VerdictKind.TOO_NEW, None)), FINE),
        (seen(IDLE), VIOLATED),
        (seen(BUSY, DARK), UNDECIDED),
        (seen(IDLE, DARK), VIOLATED),
        (seen(UNPRICED), UNDECIDED),
        (seen(IDLE, UNPRICED), VIOLATED),
        (seen(IDLE, gap="503"), UNDECIDED),
        (seen(gap="503"), UNDECIDED),
    ],
)
def test_the_code_of_an_audit(found: Audit, code: ExitCode) -> None:
    assert audit_exit(found) is code


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([], FINE),
        ([Outcome.DONE, Outcome.ALREADY], FINE),
        ([Outcome.DONE, Outcome.DECLINED], UNDECIDED),
        ([Outcome.CHANGED, Outcome.SKIPPED, Outcome.DONE], UNDECIDED),
        ([Outcome.FAILED, Outcome.SKIPPED], FAILED),
        ([Outcome.DECLINED, Outcome.FAILED, Outcome.DONE], FAILED),
    ],
)
def test_the_code_of_what_was_done(outcomes: list[Outcome], code: ExitCode) -> None:
    (measure,) = plan(RemedyKind.LOWER_THROUGHPUT).measures
    results = [Result(measure=measure, step=measure.steps[0], outcome=outcome) for outcome in outcomes]
    assert applied_exit(results) is code
