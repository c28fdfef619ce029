"""A small stack with its price, two findings and two quotas: what the reports are shown on."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path

import pytest

from policies.estimate.engine import compare_spot, estimate
from policies.money import Amount
from policies.prices.book import PriceBook, load_book
from policies.report.plan import PlanReport, QuotaNeed, usage_words
from policies.resources import Resource, ResourceSet, Value
from policies.rules.model import Finding, Rule, Severity
from policies.usage import Usage

AS_OF = datetime.date(2026, 11, 15)
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
            book_as_of=book.as_of,
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
