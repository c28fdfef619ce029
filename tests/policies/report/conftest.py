"""A small stack with its price, two findings and two quotas: what the reports are shown on."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from policies.budget import BudgetVerdict, Outcome, Scope
from policies.changes import Op, SourceKind
from policies.estimate.change import ChangedResource, ChangeEstimate
from policies.estimate.engine import compare_spot, estimate
from policies.estimate.model import Estimate, ResourceEstimate
from policies.exit_codes import ExitCode
from policies.money import Amount
from policies.prices.book import PriceBook, load_book
from policies.report.plan import PlanReport, QuotaNeed, usage_words
from policies.report.stack import StackReport
from policies.resources import Resource, ResourceSet, Value
from policies.rules.model import Finding, Rule, Severity
from policies.usage import Usage

AS_OF = datetime.date(2026, 11, 15)
BOOK_DAY = datetime.date(2026, 11, 1)
"""What the reports say, whatever the book of the tests has rows for."""
USAGE = Usage(entries={"checkpoints": {"gib": Decimal(100)}})


@pytest.fixture(scope="session")
def book() -> PriceBook:
    return load_book(Path(__file__).parents[1] / "estimate" / "book.csv")


def made(type: str, name: str, inputs: Mapping[str, Value]) -> Resource:
    return Resource(urn=f"urn:pulumi:dev::acme::{type}::{name}", type=type, name=name, inputs=inputs)


def finding(severity: Severity, message: str, monthly: str | None, waived: str = "") -> Finding:
    rule = Rule(
        id="DISK-EXAMPLE",
        title="A volume has no more throughput than it needs",
        severity=severity,
        applies_to=("gcp:compute/disk:Disk",),
        remediation="Set spotrail:model.throughput to 400.",
        url="https://cloud.google.com/compute/docs/disks/hyperdisks",
        check=lambda resource, context: (),
    )
    urn = "urn:pulumi:dev::acme::gcp:compute/disk:Disk::llama"
    amount = None if monthly is None else Amount.by_month(Decimal(monthly))
    return Finding(rule=rule, severity=severity, urn=urn, message=message, monthly=amount, waived=waived)


SLICE = made(
    "gcp:tpu/v2Vm:V2Vm",
    "trainer",
    {"acceleratorType": "v6e-8", "zone": "us-central1-b", "schedulingConfig": {"spot": True}},
)
VOLUME = made(
    "gcp:compute/disk:Disk",
    "llama",
    {
        "type": "hyperdisk-ml",
        "size": 200,
        "provisionedThroughput": 1200,
        "accessMode": "READ_ONLY_MANY",
        "zone": "us-central1-b",
    },
)
FAR_VOLUME = made(
    "gcp:compute/disk:Disk",
    "llama-eu",
    {"type": "hyperdisk-ml", "size": 200, "provisionedThroughput": 1200, "zone": "europe-west4-a"},
)
OTHERS = (
    made("gcp:storage/bucket:Bucket", "checkpoints", {"location": "us-central1"}),
    made("gcp:storage/bucket:Bucket", "models", {"location": "us-central1"}),
    made("gcp:monitoring/alertPolicy:AlertPolicy", "idle", {"conditions": ({},)}),
    made("gcp:compute/network:Network", "net", {}),
    made("gcp:projects/iAMMember:IAMMember", "one", {}),
    made("gcp:projects/iAMMember:IAMMember", "two", {}),
)


@pytest.fixture(scope="session")
def report_of(book: PriceBook) -> Callable[..., PlanReport]:
    """The plan of the given resources, with the findings and quotas of the example unless told else."""

    def made_report(*stack: Resource, findings: tuple[Finding, ...] = (), usage: Usage = USAGE) -> PlanReport:
        resources = ResourceSet(stack)
        estimated = estimate(resources, usage, book, AS_OF)
        return PlanReport(
            project="acme",
            stack="dev",
            place="us-central1-b · spot",
            estimate=estimated,
            comparison=compare_spot(estimated, resources, usage, book, AS_OF),
            findings=findings,
            passed=("Slices are spot", "Buckets are private"),
            quotas=(
                QuotaNeed(
                    metric="v6e spot chips", location="us-central1-b", needed=8, default=0, note="PREEMPTIBLE-TPU-V6E"
                ),
                QuotaNeed(metric="GiB of hyperdisk-ml", location="us-central1", needed=200, default=None),
                QuotaNeed(metric="vCPUs", location="us-central1", needed=4, default=24),
            ),
            book_as_of=BOOK_DAY,
            book_sha256=book.sha256,
            usage=usage_words(usage),
            as_of=AS_OF,
            next_steps=("spotrail check dev --budget 4000", "pulumi up --stack dev"),
        )

    return made_report


@pytest.fixture(scope="session")
def plan(report_of: Callable[..., PlanReport]) -> PlanReport:
    """Everything has a price."""
    found = (
        finding(Severity.ERROR, "1,200 MiB/s cannot be read by one host", None),
        finding(Severity.WARNING, "1,200 MiB/s, the floor of this volume is 400", "96"),
        finding(Severity.WARNING, "the same again", "96", waived="deadline run, until 2026-12-15"),
    )
    return report_of(SLICE, VOLUME, *OTHERS, findings=found)


@pytest.fixture(scope="session")
def incomplete_plan(report_of: Callable[..., PlanReport]) -> PlanReport:
    """One volume stands where the book has no prices."""
    return report_of(SLICE, FAR_VOLUME, made("gcp:redis/instance:Instance", "cache", {}))


@pytest.fixture(scope="session")
def unknown_plan(report_of: Callable[..., PlanReport]) -> PlanReport:
    """Nothing has a price."""
    return report_of(FAR_VOLUME)


@pytest.fixture(scope="session")
def rounded_plan(report_of: Callable[..., PlanReport]) -> PlanReport:
    """Three buckets of 0.335 a month: in cents 0.34 each, together 1.005 and in cents 1.00."""
    buckets = [made("gcp:storage/bucket:Bucket", name, {"location": "us-central1"}) for name in "abc"]
    return report_of(*buckets, usage=Usage(entries={name: {"gib": Decimal("16.75")} for name in "abc"}))


@pytest.fixture(scope="session")
def hostile_plan(report_of: Callable[..., PlanReport]) -> PlanReport:
    """Names that a terminal would obey, and names that rich would take for markup."""
    return report_of(
        made("gcp:storage/bucket:Bucket", "\x1b[31mred\x1b[0m\r\x07", {"location": "us-central1"}),
        made("gcp:storage/bucket:Bucket", "[bold]b[/bold]", {"location": "us-central1"}),
    )


HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "</script><!-- x --> ]]> &lt;b&gt; &#64;acme",
    "| a | b |\n|---|---|\n\n# head\n- item\n> quote",
    "[click](https://evil.example/x) ![i](http://evil.example/p.png) www.evil.example",
    "@acme/owners #42 GH-7 acme/repo#1 mail@evil.example",
    "`code` ``` **bold** ~~gone~~ \\| $x$ <!-- -->",
    "=HYPERLINK(\"https://evil.example\")\t+1 -1 @SUM(A1)",
    "::error file=x::y\n::set-output name=a::b%0A::warning::c",
    "\x1b[31mred\x1b]8;;https://evil.example\x07 \x00\x85\u2028\u202e\ud800\ufffe\r",
)  # fmt: skip
"""Names that would mean something to a page, a forge, a sheet, a runner, a terminal, or to no encoding at all."""
SMALL_VOLUME = made("gcp:compute/disk:Disk", "llama", {**VOLUME.inputs, "provisionedThroughput": 400})
BUCKET = made("gcp:storage/bucket:Bucket", "checkpoints", {"location": "us-central1"})


@pytest.fixture(scope="session")
def stack_report_of(book: PriceBook) -> Callable[..., StackReport]:
    """A report of the change from `before` (None: there is no before) to `after`; `more` are fields of the report."""

    def priced(stack: Iterable[Resource] | None) -> Estimate | None:
        return None if stack is None else estimate(ResourceSet(stack), USAGE, book, AS_OF)

    def made_report(
        before: Iterable[Resource] | None, after: Iterable[Resource], *, hidden: int = 0, **more: Any
    ) -> StackReport:
        old, new = priced(before), priced(after)
        assert new is not None
        sides = [{found.resource.urn: found for found in side.resources} if side else {} for side in (old, new)]
        change = ChangeEstimate(
            resources=tuple(
                ChangedResource(urn=urn, op=op_of(old, *found), before=found[0], after=found[1])
                for urn in dict.fromkeys((*sides[0], *sides[1]))
                for found in [(sides[0].get(urn), sides[1].get(urn))]
            ),
            before=old,
            after=new,
            hidden=hidden,
        )
        fields: dict[str, Any] = {
            "project": "acme",
            "stack": "dev",
            "kind": SourceKind.PROGRAM if before is None else SourceKind.PREVIEW,
            "place": "Pulumi.yaml",
            "book_as_of": BOOK_DAY,
            "book_sha256": book.sha256,
            "as_of": AS_OF,
            "passed": ("GCS-PUBLIC", "IAM-BROAD-ROLE"),
            "usage": usage_words(USAGE),
        }
        return StackReport(change=change, **{**fields, **more})

    return made_report


def op_of(old: Estimate | None, before: ResourceEstimate | None, after: ResourceEstimate | None) -> Op:
    """The step between two sides, as a preview would name it."""
    if after is None:
        return Op.DELETE
    if before is None:
        return Op.SAME if old is None else Op.CREATE
    return Op.SAME if before.resource.inputs == after.resource.inputs else Op.UPDATE


def budget(name: str, outcome: Outcome, message: str = "") -> BudgetVerdict:
    return BudgetVerdict(
        name=name,
        limit=Decimal(3600),
        amount=Amount.by_month(Decimal("3667.50")),
        outcome=outcome,
        message=message or f"3,667.50 of 3,600.00 for {name}",
        scope=next((scope for scope in Scope if name.startswith(scope.value)), Scope.TOTAL),
    )


@pytest.fixture(scope="session")
def stack_report(stack_report_of: Callable[..., StackReport]) -> StackReport:
    """The volume falls from 1,200 to 400 MiB/s (160 to 64 a month), a slice of 3,504 comes, a bucket of 2 goes."""
    found = (
        finding(Severity.ERROR, "1,200 MiB/s cannot be read by one host", None),
        finding(Severity.WARNING, "1,200 MiB/s, the floor of this volume is 400", "96"),
        dataclasses.replace(finding(Severity.INFO, "cannot tell yet: size is secret", None), decided=False),
        finding(Severity.ERROR, "the same again", "96", waived="deadline run, until 2026-12-15"),
    )
    budgets = (
        budget("total", Outcome.VIOLATED),
        budget("label env=dev", Outcome.UNDECIDED),
        budget("change", Outcome.KEPT),
    )
    return stack_report_of(
        (VOLUME, BUCKET), (SMALL_VOLUME, SLICE), findings=found, budgets=budgets, verdict=ExitCode.VIOLATED
    )


@pytest.fixture(scope="session")
def quiet_report(stack_report_of: Callable[..., StackReport]) -> StackReport:
    """Nothing changes and nothing is found."""
    return stack_report_of((VOLUME,), (VOLUME,))


@pytest.fixture(scope="session")
def doubtful_report(stack_report_of: Callable[..., StackReport]) -> StackReport:
    """One volume without a price, a stale condition, and 12 resources that the source does not show."""
    return stack_report_of((SLICE,), (SLICE, FAR_VOLUME, *OTHERS), hidden=12, verdict=ExitCode.UNDECIDED)


@pytest.fixture(scope="session")
def poisoned(stack_report_of: Callable[..., StackReport]) -> Callable[[str], StackReport]:
    """A report in which every name and every message is the given text."""

    def made_report(text: str) -> StackReport:
        bucket = dataclasses.replace(made("gcp:storage/bucket:Bucket", text, {"location": text}), name=text)
        disk = dataclasses.replace(FAR_VOLUME, name=text, urn=f"{FAR_VOLUME.urn}{text}")
        urn = bucket.urn
        found = (
            dataclasses.replace(finding(Severity.ERROR, text, "1"), urn=urn),
            dataclasses.replace(finding(Severity.WARNING, text, None, waived=text), urn=urn),
            dataclasses.replace(finding(Severity.INFO, text, None), urn=urn, decided=False),
        )
        words = {"project": text, "stack": text, "place": text, "passed": (text,), "usage": (text,), "notes": (text,)}
        budgets = (budget(text, Outcome.VIOLATED, text), budget(text, Outcome.UNDECIDED, text))
        steps = {"next_steps": (text,)}
        return stack_report_of((bucket,), (SLICE, disk), findings=found, budgets=budgets, **words, **steps)

    return made_report


@pytest.fixture(params=HOSTILE, ids=range(len(HOSTILE)))
def hostile(request: pytest.FixtureRequest) -> str:
    return str(request.param)
