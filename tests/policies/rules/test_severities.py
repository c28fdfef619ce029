"""Severities by configuration: what is accepted, what is refused, and what a judgement makes of them."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
import yaml

from policies.errors import InputError
from policies.estimate.model import Estimate
from policies.exit_codes import ExitCode, judge
from policies.resources import Resource, ResourceSet
from policies.rules.engine import run_rules
from policies.rules.model import Severity
from policies.rules.registry import rule
from policies.rules.severities import read_severities

TODAY = datetime.date(2026, 11, 29)
NOTHING = Estimate(currency="USD", resources=())
BUCKET = "gcp:storage/bucket:Bucket"
STACK = ResourceSet(
    (
        Resource(
            urn=f"urn:pulumi:dev::acme::{BUCKET}::ckpt",
            type=BUCKET,
            name="ckpt",
            inputs={"location": "us-central1", "forceDestroy": True, "labels": {"owner": "ml"}},
        ),
    )
)


def test_every_word_is_read_as_yaml_and_as_json_have_it() -> None:
    text = "{TPU-ZONE-DEAR: warning, GCS-LABELS: info, GCS-UPLOADS: error, DISK-BOOT-FLEET: off, GCS-REGION: 'off'}"
    assert read_severities(yaml.safe_load(text)) == {
        "TPU-ZONE-DEAR": Severity.WARNING,
        "GCS-LABELS": Severity.INFO,
        "GCS-UPLOADS": Severity.ERROR,
        "DISK-BOOT-FLEET": None,
        "GCS-REGION": None,
    }
    assert read_severities(None) == read_severities({}) == {}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            ["GCS-LABELS"],
            r'^spotrail:severity is \["GCS-LABELS"\]; it must be a mapping of rule ids to error, warning,',
        ),
        ({"GCS-LABEL": "info"}, r'severity.GCS-LABEL: no rule has the id "GCS-LABEL". Did you mean GCS-LABELS\?'),
        ({"GCS-LABELS": "warn"}, r'severity.GCS-LABELS is "warn"; did you mean warning\?'),
        ({"GCS-LABELS": "ERROR"}, r'severity.GCS-LABELS is "ERROR"; did you mean error\?'),
        ({"GCS-LABELS": True}, r"severity.GCS-LABELS is true; it must be one of error, warning, info, off"),
        ({"GCS-LABELS": None}, r"severity.GCS-LABELS is null; it must be one of"),
        ({7: "info"}, r'severity.7: no rule has the id "7"'),
        ({"BUDGET-TOTAL": "off"}, r"severity.BUDGET-TOTAL cannot be set: a budget that is to be larger"),
    ],
)
def test_a_mistake_is_named_with_its_place(value: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_severities(value)


def test_all_mistakes_are_told_together() -> None:
    with pytest.raises(InputError) as caught:
        read_severities({"X": "info", "GCS-LABELS": 3}, "rules.yaml")
    lines = str(caught.value).splitlines()
    assert len(lines) == 2
    assert all(line.startswith("rules.yaml.") for line in lines)


def judged(**words: str) -> tuple[list[tuple[str, Severity, Severity]], list[str], ExitCode]:
    """Id, severity and the rule's severity of each finding; what is off; the exit code."""
    severities = read_severities({name.replace("_", "-"): word for name, word in words.items()})
    only = (rule("GCS-FORCE-DESTROY"), rule("GCS-LABELS"))
    result = run_rules(STACK, NOTHING, TODAY, only=only, severities=severities)
    found = [(each.rule.id, each.severity, each.rule.severity) for each in result.findings]
    return found, [each.id for each in result.off], judge(NOTHING, result.findings)


def test_a_rule_has_the_severity_that_it_is_given() -> None:
    destroy, labels = "GCS-FORCE-DESTROY", "GCS-LABELS"
    error, warning, info = Severity.ERROR, Severity.WARNING, Severity.INFO
    assert judged() == ([(destroy, error, error), (labels, warning, error)], [], ExitCode.VIOLATED)
    assert judged(GCS_FORCE_DESTROY="warning") == (
        [(destroy, warning, warning), (labels, warning, error)],
        [],
        ExitCode.FINE,
    )
    assert judged(GCS_FORCE_DESTROY="off", GCS_LABELS="info") == ([(labels, info, info)], [destroy], ExitCode.FINE)


def test_a_rule_that_is_off_has_neither_passed_nor_found_nothing() -> None:
    result = run_rules(STACK, NOTHING, TODAY, only=(rule("GCS-REGION"),), severities={"GCS-REGION": None})
    assert (result.findings, result.passed, result.idle) == ((), (), ())
    assert result.off == (rule("GCS-REGION"),)
