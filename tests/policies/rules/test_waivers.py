"""Reading waivers: what is accepted, and that every mistake is named with its place."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from policies.errors import InputError
from policies.rules.model import Waiver
from policies.rules.waivers import read_waivers

GOOD = {"rule": "TPU-ON-DEMAND", "urn": "*eval-slice*", "reason": "deadline run", "until": "2026-12-15"}


@pytest.mark.parametrize("until", ["2026-12-15", "2026-12-15T00:00:00Z", datetime.date(2026, 12, 15)])
def test_a_day_is_read_as_json_and_as_yaml_have_it(until: object) -> None:
    assert read_waivers([GOOD | {"until": until}]) == (
        Waiver(rule="TPU-ON-DEMAND", urn="*eval-slice*", reason="deadline run", until=datetime.date(2026, 12, 15)),
    )


@pytest.mark.parametrize("value", [None, [], ()])
def test_no_waivers(value: object) -> None:
    assert read_waivers(value) == ()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("all", r'^spotrail:waivers is "all"; it must be a list of waivers with rule, urn, reason, until$'),
        (["x"], r'^spotrail:waivers\[0\] is "x"; a waiver is a mapping'),
        (
            [GOOD, GOOD | {"rule": "TPU-ONDEMAND"}],
            r'^spotrail:waivers\[1\].rule: no rule has the id "TPU-ONDEMAND". Did you',
        ),
        ([GOOD | {"rule": "STATE-PULUMI-POLICY"}], r"what another policy pack says is waived in that pack"),
        ([GOOD | {"rule": "BUDGET-TOTAL"}], r"waivers\[0\].rule is BUDGET-TOTAL, which nobody waives"),
        ([{key: GOOD[key] for key in ("rule", "urn", "until")}], r"waivers\[0\].reason is missing; a waiver needs"),
        ([GOOD | {"reason": "  "}], r'waivers\[0\].reason is "  "; it must be text that is not empty'),
        ([GOOD | {"urn": 7}], r"waivers\[0\].urn is 7; it must be text"),
        ([GOOD | {"until": "soon"}], r'waivers\[0\].until is "soon"; it must be the last day'),
        ([GOOD | {"until": "2026-02-30"}], r"waivers\[0\].until is"),
        ([GOOD | {"until": "20261215"}], r'until is "20261215"; it must be the last day .* as in 2026-12-15'),
        ([GOOD | {"until": 20261215}], r"until is 20261215"),
        ([GOOD | {"until": datetime.datetime(2026, 12, 15, tzinfo=datetime.UTC)}], r"until is"),
        ([GOOD | {"reasons": "x"}], r"waivers\[0\].reasons is no field of a waiver. Did you mean reason\?"),
        ([GOOD | {"zzz": "x"}], r"waivers\[0\].zzz is no field of a waiver. A waiver has rule, urn, reason, until."),
    ],
)
def test_a_mistake_is_named_with_its_place(value: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_waivers(value)


def test_all_mistakes_are_told_together() -> None:
    with pytest.raises(InputError) as caught:
        read_waivers([{"rule": "X-Y", "urn": "", "until": "never"}], "policy configuration")
    lines = str(caught.value).splitlines()
    assert len(lines) == 4
    assert all(line.startswith("policy configuration[0].") for line in lines)
