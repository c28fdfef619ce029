from __future__ import annotations

import datetime
import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from policies.audit.model import Audit, AuditFinding, Remedy, RemedyKind, Usage, Verdict, VerdictKind
from policies.audit.record import Missing, Window
from policies.audit.remedies.applying import Outcome, Result
from policies.audit.remedies.model import Action, Condition, Measure, Step
from policies.guard.telling import MOST_LISTED, Report, digest, messages, must_tell, run_document, summary
from policies.money import Amount
from policies.rules.model import Severity

NOW = datetime.datetime(2026, 11, 29, 12, 7, tzinfo=datetime.UTC)
DISK = "projects/p/zones/us-central1-b/disks/llama"


def verdict(
    name: str = "llama", kind: VerdictKind = VerdictKind.IDLE_ATTACHED, dollars: int = 96, **fields: Any
) -> Verdict:
    return Verdict(
        resource=f"projects/p/zones/us-central1-b/disks/{name}",
        type="compute.disk",
        location="us-central1-b",
        kind=kind,
        usage=Usage(provisioned_mibps=1200),
        waste=Amount(per_month=Fraction(dollars)),
        message="peak 0.0 of 1,200 MiB/s",
        labels=(("env", "dev"),),
        **fields,
    )


def audit(*verdicts: Verdict, at: datetime.datetime = NOW, **fields: Any) -> Audit:
    return Audit(
        project="p",
        recorded_at=at,
        window=Window(start=at - datetime.timedelta(days=7), end=at),
        currency="USD",
        book_as_of=datetime.date(2026, 11, 29),
        book_sha256="0" * 64,
        verdicts=verdicts,
        **fields,
    )


def report(*verdicts: Verdict, results: tuple[Result, ...] = (), **fields: Any) -> Report:
    return Report(stack="dev", audit=audit(*verdicts, **fields), results=results)


def result(outcome: Outcome = Outcome.DONE, saving: int | None = None) -> Result:
    there = Condition(resource=DISK)
    step = Step(
        action=Action.SET_THROUGHPUT, resource=DISK, requires=(there,), done=there, text="set the throughput to 400"
    )
    measure = Measure(
        resource=DISK,
        verdict=VerdictKind.IDLE_ATTACHED,
        kind=RemedyKind.LOWER_THROUGHPUT,
        saving=None if saving is None else Amount(per_month=Fraction(saving)),
        why="nobody reads",
        steps=(step,),
    )
    return Result(measure=measure, step=step, outcome=outcome, why="" if outcome is Outcome.DONE else "it is gone")


FINDING = AuditFinding(rule="TPU-NO-TTL", severity=Severity.WARNING, resource="projects/p/x/y", message="no ttl")
GAP = Missing(part="compute.disks us-east1-d", why="503")


def test_each_finding_is_a_message_and_the_run_is_the_last() -> None:
    told = messages(report(verdict(), results=(result(),), findings=(FINDING,), missing=(GAP,)))
    assert [message.kind for message in told] == ["verdict", "finding", "step", "run"]
    assert {message.document["schema"] for message in told} == {"spotrail.guard/1"}
    assert {message.document["stack"] for message in told} == {"dev"}
    assert told[0].document["monthly_waste"] == "96.00"
    assert told[0].document["labels"] == {"env": "dev"}
    assert told[2].document["outcome"] == "DONE"
    assert told[3].document["missing"] == [{"part": "compute.disks us-east1-d", "why": "503"}]


def test_the_messages_are_strict_json_without_a_number() -> None:
    for message in messages(report(verdict(), results=(result(),), findings=(FINDING,))):
        text = json.dumps(message.document, allow_nan=False)
        json.loads(text, parse_float=pytest.fail, parse_int=pytest.fail, parse_constant=pytest.fail)


def test_an_id_is_the_same_for_the_same_finding_in_every_run() -> None:
    first = messages(report(verdict(dollars=96)))[0]
    later = messages(report(verdict(dollars=97), at=NOW + datetime.timedelta(days=3)))[0]
    assert first.id == later.id
    assert first.document["recorded_at"] != later.document["recorded_at"]
    assert messages(report(verdict("other")))[0].id != first.id
    assert messages(report(verdict(kind=VerdictKind.IDLE_UNATTACHED)))[0].id != first.id


@pytest.mark.parametrize("kind", [VerdictKind.IN_USE, VerdictKind.TOO_NEW, VerdictKind.WAITING])
def test_what_is_as_it_should_be_is_no_news(kind: VerdictKind) -> None:
    quiet = report(verdict(kind=kind))
    assert quiet.empty
    assert [message.kind for message in messages(quiet)] == ["run"]


@pytest.mark.parametrize("kind", [VerdictKind.UNKNOWN_TELEMETRY, VerdictKind.PREEMPTED, VerdictKind.EXPIRED])
def test_what_nobody_can_judge_is(kind: VerdictKind) -> None:
    assert not report(verdict(kind=kind)).empty


def test_a_step_that_had_nothing_to_do_is_no_news() -> None:
    assert report(results=(result(Outcome.ALREADY),)).empty
    assert not report(results=(result(Outcome.FAILED),)).empty


class TestRepetition:
    FOUND = report(verdict())

    def test_the_same_findings_an_hour_later_are_not_told_again(self) -> None:
        later = report(verdict(dollars=97), at=NOW + datetime.timedelta(hours=1))
        assert not must_tell(later, digest(self.FOUND))

    def test_on_the_next_day_they_are(self) -> None:
        assert must_tell(report(verdict(), at=NOW + datetime.timedelta(days=1)), digest(self.FOUND))

    @pytest.mark.parametrize(
        "changed",
        [
            report(verdict(), verdict("other")),
            report(verdict(kind=VerdictKind.OVERPROVISIONED)),
            report(verdict(remedy=Remedy(kind=RemedyKind.LOWER_THROUGHPUT, to_mibps=400, text="throughput to 400"))),
            report(verdict(), results=(result(),)),
            report(verdict(), findings=(FINDING,)),
            report(verdict(), missing=(GAP,)),
            report(),
        ],
    )
    def test_whatever_has_changed_is_told(self, changed: Report) -> None:
        assert must_tell(changed, digest(self.FOUND))

    def test_the_order_of_verdicts_is_no_change(self) -> None:
        one, other = verdict("a"), verdict("b")
        assert digest(report(one, other)) == digest(report(other, one))

    def test_the_guards_of_two_stacks_do_not_silence_each_other(self) -> None:
        assert digest(self.FOUND) != digest(replace(self.FOUND, stack="prod"))

    def test_nothing_found_is_told_once_and_only_after_something(self) -> None:
        nothing = report()
        assert not must_tell(nothing, None)
        assert must_tell(nothing, digest(self.FOUND))
        tomorrow = report(at=NOW + datetime.timedelta(days=1))
        assert not must_tell(tomorrow, digest(nothing))

    def test_a_finding_is_told_where_nothing_is_known(self) -> None:
        assert must_tell(self.FOUND, None)

    def test_the_digest_survives_a_double(self) -> None:
        assert int(float(digest(self.FOUND))) == digest(self.FOUND) < 2**48


def test_the_message_of_a_run_is_cut_and_says_so() -> None:
    many = report(*(verdict(f"d{number}") for number in range(MOST_LISTED + 7)))
    document = run_document(many)
    assert len(document["verdicts"]) == MOST_LISTED
    assert document["left_out"] == {"verdicts": "7"}
    assert document["monthly_waste"] == str(Decimal(96 * (MOST_LISTED + 7))) + ".00"


def test_the_lines_for_people() -> None:
    found = report(*(verdict(f"d{number}", dollars=100 - number) for number in range(7)), results=(result(),))
    assert summary(found).splitlines() == [
        "spotrail dev: 679.00 USD a month idle in p",
        "- 100.00  IDLE_ATTACHED  d0: peak 0.0 of 1,200 MiB/s",
        "- 99.00  IDLE_ATTACHED  d1: peak 0.0 of 1,200 MiB/s",
        "- 98.00  IDLE_ATTACHED  d2: peak 0.0 of 1,200 MiB/s",
        "- 97.00  IDLE_ATTACHED  d3: peak 0.0 of 1,200 MiB/s",
        "- 96.00  IDLE_ATTACHED  d4: peak 0.0 of 1,200 MiB/s",
        "- and 2 more",
        "- done: set the throughput to 400",
    ]


def test_what_the_run_ended_is_said() -> None:
    found = report(verdict(), results=(result(saving=64),))
    assert summary(found).splitlines()[0] == "spotrail dev: 96.00 USD a month idle in p, 64.00 of it ended now"
    assert run_document(found)["monthly_ended"] == "64.00"
    assert run_document(report(verdict(), results=(result(Outcome.FAILED, saving=64),)))["monthly_ended"] == "0.00"


def test_the_lines_of_a_half_seen_project_say_at_least() -> None:
    lines = summary(report(verdict(), missing=(GAP,), results=(result(Outcome.FAILED),))).splitlines()
    assert lines[0] == "spotrail dev: at least 96.00 USD a month idle in p"
    assert lines[2:] == [
        "- failed: set the throughput to 400 (it is gone)",
        "- not seen: compute.disks us-east1-d: 503",
    ]
