"""Ids of findings: each means one thing, in stacks and in the live world."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import policies.audit.auditors
from policies.audit.findings import OWN, SHARED, finding_kinds
from policies.rules.model import PREFIXES, TITLE_LIMIT
from policies.rules.registry import rules


def test_ids_are_unique_and_have_the_prefixes_of_the_project() -> None:
    known = finding_kinds()
    assert len(known) == len(SHARED) + len(OWN)
    assert all(re.fullmatch(r"[A-Z]+(-[A-Z]+)+", name) and name.startswith(PREFIXES) for name in known)
    assert not {kind.id for kind in OWN} & set(rules())


def test_an_id_of_a_rule_means_what_the_rule_means() -> None:
    for name in SHARED:
        rule, kind = rules()[name], finding_kinds()[name]
        assert (kind.title, kind.severity, kind.remediation) == (rule.title, rule.severity, rule.remediation)


def test_every_finding_says_what_to_do() -> None:
    for kind in finding_kinds().values():
        assert 0 < len(kind.title) <= TITLE_LIMIT
        assert not kind.title.endswith(".")
        assert kind.remediation.endswith(".")


def test_the_auditors_use_every_id_and_no_other() -> None:
    used = set()
    for path in Path(policies.audit.auditors.__path__[0]).glob("*.py"):
        for found in ast.walk(ast.parse(path.read_text())):
            if isinstance(found, ast.Constant) and isinstance(found.value, str):
                used.update({found.value} & ({*rules(), *finding_kinds()}))
    assert used == set(finding_kinds())
