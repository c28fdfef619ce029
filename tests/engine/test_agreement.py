"""What `spotrail plan` shows is what the official engine does: every stack, from nothing to a second preview."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from decimal import Decimal

import pytest

from policies.estimate.engine import estimate
from policies.estimate.model import Estimate
from policies.prices.book import shipped_book
from policies.resources import SECRET, Resource, ResourceSet, Value
from policies.usage import Usage
from tests.engine.agreement import differences, missing, outputs
from tests.engine.stand import SLACK_TOKEN
from tests.engine.walk import Walk, reading

STACKS = ("dev", "staging", "prod")
AS_OF = datetime.date(2026, 11, 29)

Walked = Callable[[str], Walk]


@pytest.fixture(params=STACKS)
def walked(request: pytest.FixtureRequest, walks: Walked) -> Walk:
    return walks(request.param)


def test_an_up_creates_what_was_planned_and_a_second_one_changes_nothing(walked: Walk) -> None:
    count = len(walked.offline.resources)
    assert walked.created == {"create": count}
    assert walked.again == {"same": count}
    assert json.loads(walked.planned)["changeSummary"] == {"create": count}
    assert json.loads(walked.still)["changeSummary"] == {"same": count}


def test_the_preview_file_of_the_engine_has_the_resources_of_the_offline_preview(walked: Walk) -> None:
    planned = reading(walked.planned, "preview.json")
    assert missing(walked.offline.resources, planned.after) == set()
    assert differences(walked.offline.resources, planned.after, before=True) == []


def test_the_state_has_the_resources_of_the_offline_preview(walked: Walk) -> None:
    exported = reading(walked.exported, "state.json")
    assert missing(walked.offline.resources, exported.after) == set()
    assert differences(walked.offline.resources, exported.after, before=False) == []


def test_the_outputs_of_the_stack_are_those_of_the_offline_preview(walked: Walk) -> None:
    assert list(outputs(walked.offline.outputs, state_outputs(walked))) == []
    assert walked.offline.outputs


def test_program_preview_files_and_state_give_the_same_total_to_the_last_digit(walked: Walk) -> None:
    views = {
        "program": walked.offline.resources,
        "planned": reading(walked.planned, "preview.json").after,
        "still": reading(walked.still, "preview.json").after,
        "state": reading(walked.exported, "state.json").after,
    }
    priced = {name: priced_as(resources) for name, resources in views.items()}
    totals = {name: (one.amount.per_month, one.complete) for name, one in priced.items()}
    assert set(totals.values()) == {totals["program"]}
    assert priced["program"].amount.monthly > 0
    assert by_urn(priced["program"]) == by_urn(priced["planned"]) == by_urn(priced["still"]) == by_urn(priced["state"])


def test_a_refresh_finds_everything_as_it_is(walked: Walk) -> None:
    assert walked.refreshed == walked.again


def test_a_changed_setting_is_planned_and_done_alike(walked: Walk) -> None:
    planned, exported = reading(walked.update, "preview.json"), reading(walked.after, "state.json")
    assert missing(walked.renamed.resources, planned.after) == set()
    assert missing(walked.renamed.resources, exported.after) == set()
    assert differences(walked.renamed.resources, exported.after, before=False) == []
    assert {"checkpoints", "datasets", "models", "head"} <= {one.after.name for one in planned.changes if one.after}
    assert json.loads(walked.update)["changeSummary"] == walked.updated
    assert set(walked.updated) == {"same", "update"}  # no label is worth a machine
    assert priced_as(exported.after).amount == priced_as(walked.renamed.resources).amount


def test_what_a_job_ran_with_stays_in_the_state_when_the_settings_change(walked: Walk) -> None:
    before, after = reading(walked.exported, "state.json").after, reading(walked.after, "state.json").after
    jobs = [one for one in walked.renamed.resources if "runExecutionToken" in one.options.ignore_changes]
    assert jobs
    for job in jobs:
        first, now = before.get(job.urn), after.get(job.urn)
        assert first is not None
        assert now is not None
        assert now.inputs["labels"] == first.inputs["labels"] != job.inputs["labels"]


def test_a_plain_destroy_names_what_is_protected_and_removes_nothing(walked: Walk) -> None:
    for bucket in ("checkpoints", "datasets", "models"):
        assert f"gcp:storage/bucket:Bucket::{bucket}" in walked.refusal
    assert "cannot be deleted" in walked.refusal
    assert missing(reading(walked.after, "state.json").after, reading(walked.refused, "state.json").after) == set()


def test_a_destroy_without_what_is_protected_removes_the_rest(walked: Walk) -> None:
    left = reading(walked.left, "state.json").after
    protected = {one.urn for one in walked.renamed.resources if one.options.protect}
    held = {urn for one in left for urn in (*one.options.dependencies, one.options.parent, provider(one)) if urn}
    assert {one.urn for one in left} == protected | held
    assert {one.name for one in left.of_type("gcp:storage/bucket:Bucket")} == {"checkpoints", "datasets", "models"}
    assert walked.destroyed == {"delete": len(walked.renamed.resources) - len(left), "same": len(left)}


def test_the_secret_is_in_no_file(walked: Walk) -> None:
    for written in (walked.planned, walked.still, walked.exported, walked.stand.stack_file.read_text("utf-8")):
        assert SLACK_TOKEN not in written
    channel = next(one for one in walked.offline.resources if one.name == "slack")
    state = reading(walked.exported, "state.json").after.get(channel.urn)
    assert state is not None
    assert state.value("sensitiveLabels", "authToken") is channel.value("sensitiveLabels", "authToken") is SECRET


def test_nothing_is_hidden_in_a_preview_that_shows_what_stays(walked: Walk) -> None:
    assert reading(walked.still, "preview.json").hidden == 0
    # Without --show-sames the preview of a stack that stays as it is says nothing of it but its count.
    assert reading(walked.short, "preview.json").hidden == len(walked.offline.resources) - 1


def provider(one: Resource) -> str:
    return one.options.provider.rpartition("::")[0]


def state_outputs(walked: Walk) -> Mapping[str, Value]:
    stack = reading(walked.exported, "state.json").after.of_type("pulumi:pulumi:Stack")[0]
    return stack.outputs


def priced_as(resources: ResourceSet) -> Estimate:
    return estimate(resources, Usage(), shipped_book(), AS_OF)


def by_urn(priced: Estimate) -> dict[str, tuple[Decimal, ...]]:
    return {one.resource.urn: tuple(line.amount.monthly for line in one.components) for one in priced.resources}
