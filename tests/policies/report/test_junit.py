"""JUnit: what fails, what is skipped, what passes, the money beside it, and XML whatever the text."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.report.junit import stack_junit
from policies.report.stack import StackReport
from policies.rules.model import Finding

VOLUME = "urn:pulumi:dev::acme::gcp:compute/disk:Disk::llama"


def suite_of(report: StackReport) -> Element:
    text = stack_junit(report)
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ')
    (suite,) = ElementTree.fromstring(text.encode())
    return suite


def outcomes(suite: Element) -> list[tuple[str | None, str | None, str]]:
    """Rule, place and the kind of the case: the tag of what it holds, or `passed`."""
    return [
        (case.get("classname"), case.get("name"), next((child.tag for child in case), "passed"))
        for case in suite.iter("testcase")
    ]


def test_each_case_is_what_it_deserves(stack_report: StackReport) -> None:
    suite = suite_of(stack_report)
    assert outcomes(suite) == [
        ("BUDGET-TOTAL", "budget total", "failure"),
        ("DISK-EXAMPLE", VOLUME, "failure"),
        ("BUDGET-LABEL", "budget label env=dev", "skipped"),
        ("BUDGET-CHANGE", "budget change", "system-out"),
        ("GCS-PUBLIC", "acme/dev", "passed"),
        ("IAM-BROAD-ROLE", "acme/dev", "passed"),
    ]
    counted = {name: suite.get(name) for name in ("name", "tests", "failures", "errors", "skipped")}
    assert counted == {"name": "acme/dev", "tests": "6", "failures": "2", "errors": "0", "skipped": "1"}


def test_a_failure_tells_every_finding_of_its_rule(stack_report: StackReport) -> None:
    failure = suite_of(stack_report).findall("testcase/failure")[1]
    assert failure.get("type") == "DISK-EXAMPLE"
    assert failure.get("message") == "1,200 MiB/s cannot be read by one host"
    lines = (failure.text or "").splitlines()
    assert lines[2] == "warning: 1,200 MiB/s, the floor of this volume is 400 (96.00 /month)"
    assert lines[3].startswith("Set spotrail:model.throughput to 400. https://")
    assert [line.partition(":")[0] for line in lines[::2]] == ["failed", "warning", "cannot decide", "waived"]


@pytest.mark.parametrize(
    ("kept", "kind", "said"),
    [
        ("warning", "system-out", "warning: 1,200 MiB/s, the floor"),
        ("info", "skipped", "cannot decide: cannot tell yet: size is secret"),
        ("waived", "skipped", "waived: deadline run, until 2026-12-15"),
    ],
)
def test_only_an_error_fails(
    stack_report_of: Callable[..., StackReport], stack_report: StackReport, kept: str, kind: str, said: str
) -> None:
    def wanted(finding: Finding) -> bool:
        return ("waived" if finding.waived else finding.severity.value) == kept

    suite = suite_of(stack_report_of((), (), findings=tuple(filter(wanted, stack_report.findings))))
    ((child,),) = (list(case) for case in suite.iter("testcase") if len(case))
    assert child.tag == kind
    assert said in (child.get("message") or child.text or "")
    assert suite.get("failures") == "0"


def test_the_money_is_exact(stack_report: StackReport, doubtful_report: StackReport) -> None:
    known = [{each.get("name"): each.get("value") for each in suite_of(report).iter("property")}
             for report in (stack_report, doubtful_report)]  # fmt: skip
    assert known[0] == {
        "currency": "USD",
        "monthly": "3568.00",
        "monthly_before": "162.00",
        "monthly_delta": "3406.00",
        "complete": "yes",
        "fresh": "yes",
        "price_book": "2026-11-01",
        "price_book_sha256": stack_report.book_sha256,
    }
    assert (known[1]["complete"], known[1]["fresh"], known[1]["monthly"]) == ("no", "no", "3507.50")


def test_what_is_not_known_is_empty_not_zero(
    stack_report_of: Callable[..., StackReport], doubtful_report: StackReport
) -> None:
    (unknown,) = (each.after for each in doubtful_report.change.resources if each.after and each.after.nothing_known)
    suite = suite_of(stack_report_of((), (unknown.resource,)))
    known = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert (known["monthly"], known["monthly_before"], known["monthly_delta"]) == ("", "0.00", "")


@settings(max_examples=60)
@given(text=st.text(min_size=1, max_size=60))
def test_no_text_breaks_it(text: str, poisoned: Callable[[str], StackReport]) -> None:
    check(text, poisoned)


def test_no_hostile_text_breaks_it(hostile: str, poisoned: Callable[[str], StackReport]) -> None:
    check(hostile, poisoned)


def check(text: str, poisoned: Callable[[str], StackReport]) -> None:
    tame = suite_of(poisoned("tame"))
    suite = suite_of(poisoned(text))
    assert [(case[0], case[2]) for case in outcomes(suite)][:2] == [
        ("BUDGET-TOTAL", "failure"),
        ("DISK-EXAMPLE", "failure"),
    ]
    assert suite.get("failures") == tame.get("failures")
    assert {each.tag for each in suite.iter()} == {each.tag for each in tame.iter()}
    for each in suite.iter():
        assert all(value.isprintable() for value in each.attrib.values())
