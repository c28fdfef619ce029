"""Real failures of real teams, from the program to the verdict: one Pulumi program that makes every mistake at once.

The program is `field/program.py`; it goes through the offline preview, the prices and the rules as any program does.
"""

from __future__ import annotations

import datetime
import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from infra.planning import plan_report
from infra.preview import preview
from policies.estimate.model import ResourceEstimate
from policies.prices.book import load_book
from policies.report.plan import PlanReport
from policies.usage import load_usage

HERE = Path(__file__).parent / "field"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> PlanReport:
    folder = tmp_path_factory.mktemp("field")
    (folder / "Pulumi.yaml").write_text("name: field\nruntime: python\n")
    (folder / "Pulumi.dev.yaml").write_text("config:\n  gcp:project: acme\n")
    shutil.copy(HERE / "program.py", folder / "__main__.py")
    # 100 GiB that are rewritten every hour.
    hourly = "".join(
        f"checkpoints-soft-delete-{name}:\n  gib: 100\n  churn_gib_per_day: 2400\n" for name in ("unset", "off")
    )
    (folder / "usage.yaml").write_text(hourly)
    usage = load_usage(folder / "usage.yaml")
    return plan_report(preview("dev", folder), usage, load_book(HERE / "book.csv"), datetime.date(2026, 11, 15))


def found(report: PlanReport, name: str) -> dict[str, str]:
    """The severity of each rule's finding about the resource `name`."""
    return {each.rule.id: each.severity.value for each in report.findings if each.urn.endswith(f"::{name}")}


def message(report: PlanReport, name: str, rule: str) -> str:
    (said,) = (each for each in report.findings if each.urn.endswith(f"::{name}") and each.rule.id == rule)
    return f"{said.message} {said.rule.remediation}"


def priced(report: PlanReport, name: str) -> ResourceEstimate:
    (only,) = (each for each in report.estimate.resources if each.resource.name == name)
    return only


@pytest.mark.parametrize(
    ("name", "rule", "severity"),
    [
        ("runtime-0", "TPU-RUNTIME", "error"),
        ("runtime-1", "TPU-RUNTIME", "error"),
        ("runtime-2", "TPU-RUNTIME", "error"),
        ("runtime-3", "TPU-RUNTIME", "error"),
        ("runtime-4", "TPU-RUNTIME", None),
        ("runtime-5", "TPU-RUNTIME", "warning"),
        ("shape-both", "TPU-SHAPE", "error"),
        ("shape-neither", "TPU-SHAPE", "error"),
        ("shape-order", "TPU-SHAPE", "error"),
        ("shape-right", "TPU-SHAPE", None),
        ("shape-v6e-2", "TPU-SHAPE", "error"),
        ("shape-v6e-3", "TPU-SHAPE", "error"),
        ("shape-v6e-512", "TPU-SHAPE", "error"),
        ("shape-v6e-08", "TPU-SHAPE", "error"),
        ("shape-V6E-8", "TPU-SHAPE", "error"),
        ("queued", "TPU-ON-DEMAND", "error"),
        ("terms-spot-reserved", "TPU-CAPACITY-CONFLICT", "error"),
        ("terms-preemptible-reserved", "TPU-CAPACITY-CONFLICT", "error"),
        ("terms-spot-preemptible", "TPU-CAPACITY-CONFLICT", "warning"),
        ("terms-not-spot", "TPU-CAPACITY-CONFLICT", None),
        ("terms-not-spot", "TPU-ON-DEMAND", "error"),
        ("mode-read-only-single", "DISK-ACCESS-MODE", "error"),
        ("mode-read-write-many", "DISK-ACCESS-MODE", "error"),
        ("mode-read-only-many", "DISK-ACCESS-MODE", None),
        ("shared-omitted", "DISK-SHARED-WRITE", "error"),
        ("shared-mixed", "DISK-SHARED-WRITE", "error"),
        ("shared-multi", "DISK-SHARED-WRITE", "error"),
        ("shared-right", "DISK-SHARED-WRITE", None),
        ("limits-140-399", "DISK-LIMITS", "error"),
        ("limits-140-400", "DISK-LIMITS", None),
        ("limits-140-12000", "DISK-LIMITS", None),
        ("limits-1000-1200000", "DISK-LIMITS", None),
        ("limits-1000-1200001", "DISK-LIMITS", "error"),
        ("limits-3-400", "DISK-LIMITS", "error"),
        ("limits-4-400", "DISK-LIMITS", None),
        ("limits-65537-400", "DISK-LIMITS", "error"),
        ("limits-None-2400", "DISK-LIMITS", "error"),
        *((f"label-{number}", "DISK-LABELS", "error") for number in range(4)),
        *((f"label-{number}", "DISK-LABELS", None) for number in range(4, 8)),
        *((f"key-{number}", "DISK-LABELS", "error") for number in range(2)),
        *((f"boot-{number}", "DISK-BOOT-TYPE", "error") for number in (0, 1, 2, 5)),
        *((f"boot-{number}", "DISK-BOOT-TYPE", None) for number in (3, 4)),
        ("checkpoints-soft-delete-unset", "GCS-SOFT-DELETE", "warning"),
        ("checkpoints-soft-delete-off", "GCS-SOFT-DELETE", None),
        ("checkpoints-soft-delete-hour", "GCS-SOFT-DELETE-RANGE", "error"),
        ("checkpoints-force-destroy", "GCS-FORCE-DESTROY", "error"),
    ],
)
def test_the_mistake_is_found_and_what_is_right_is_left_alone(
    report: PlanReport, name: str, rule: str, severity: str | None
) -> None:
    assert found(report, name).get(rule) == severity


@pytest.mark.parametrize(
    ("name", "rule", "words"),
    [
        ("runtime-0", "TPU-RUNTIME", ("tpu-ubuntu2204-base", "v2-alpha-tpuv6e")),
        ("shape-order", "TPU-SHAPE", ("4x2", "2x4")),
        ("shape-v6e-2", "TPU-SHAPE", ("v6e-1", "v6e-4", "v6e-8", "v6e-16", "v6e-32", "v6e-64", "v6e-128", "v6e-256")),
        ("mode-read-only-single", "DISK-ACCESS-MODE", ("READ_ONLY_SINGLE", "READ_ONLY_MANY")),
        ("queued", "TPU-ON-DEMAND", ("V2Vm", "spot")),
        ("checkpoints-soft-delete-hour", "GCS-SOFT-DELETE-RANGE", ("3,600", "604800", "7776000")),
    ],
)
def test_the_message_names_the_way_out(report: PlanReport, name: str, rule: str, words: tuple[str, ...]) -> None:
    said = message(report, name, rule)
    assert [word for word in words if word not in said] == []


@pytest.mark.parametrize(
    ("name", "hourly", "monthly"),
    [
        ("queued", "86.40", "63072.00"),  # 2 nodes x 16 chips x 2.70, never spot
        ("terms-not-spot", "21.60", "15768.00"),  # 8 x 2.70
        ("terms-spot-preemptible", "8.00", "5840.00"),  # 8 x 1.00, once
        ("shape-right", "8.00", "5840.00"),
        ("limits-140-12000", None, "1451.20"),  # 140 x 0.08 + 12000 x 0.12
        ("checkpoints-soft-delete-unset", None, "338.00"),  # 100 live + 2400 x 7 soft-deleted GiB, at 0.020
        ("checkpoints-soft-delete-off", None, "2.00"),
    ],
)
def test_the_money_is_that_of_the_arithmetic(report: PlanReport, name: str, hourly: str | None, monthly: str) -> None:
    only = priced(report, name)
    assert only.complete
    assert only.amount.monthly == Decimal(monthly)
    assert hourly is None or only.amount.hourly == Decimal(hourly)


@pytest.mark.parametrize("name", ["shape-neither", "shape-both", "terms-spot-reserved", "checkpoints-soft-delete-hour"])
def test_what_cannot_be_has_no_price(report: PlanReport, name: str) -> None:
    only = priced(report, name)
    assert only.nothing_known
    assert not report.estimate.complete


def test_the_default_of_the_provider_is_not_priced_as_v6e(report: PlanReport) -> None:
    assert "v2-8 (provider default)" in priced(report, "shape-neither").unpriced[0].reason
