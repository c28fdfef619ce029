from __future__ import annotations

import json
from decimal import Decimal

from policies.resources import SECRET, UNKNOWN


def test_the_budget_counts_this_stack_in_this_project(dev) -> None:
    budget = dev.one("Budget")
    assert budget.inputs["billingAccount"] == "01A2B3-4C5D6E-7F8091"
    assert budget.value("amount", "specifiedAmount") == {"currencyCode": "USD", "units": "4000"}
    assert budget.value("budgetFilter", "labels") == {"env": "dev"}
    assert budget.value("budgetFilter", "projects") == (UNKNOWN,)
    assert dev.sources(budget, "budgetFilter") == {"Bucket checkpoints"}


def test_the_budget_tells_at_what_is_spent_and_what_is_forecast(dev, prod) -> None:
    def rules(graph) -> list[tuple[object, object]]:
        found = graph.one("Budget").items("thresholdRules")
        return [(rule["spendBasis"], rule["thresholdPercent"]) for rule in found]

    spent, forecast = "CURRENT_SPEND", "FORECASTED_SPEND"
    assert rules(dev) == [(spent, Decimal("0.5")), (spent, Decimal("0.9")), (spent, 1), (forecast, 1)]
    assert rules(prod)[3:] == [(spent, 1), (forecast, Decimal("0.9")), (forecast, 1)]


def test_the_budget_reaches_people_and_programs(prod) -> None:
    updates = prod.one("Budget").value("allUpdatesRule")
    assert updates["schemaVersion"] == "1.0"
    assert prod.sources(prod.one("Budget"), "allUpdatesRule") == {
        "Topic budget",
        "NotificationChannel email-ml-infra@acme.example",
        "NotificationChannel email-oncall@acme.example",
    }


def test_budget_calls_have_a_project_to_be_counted_against(dev, variant) -> None:
    provider = dev.preview.resources.provider_of(dev.one("Budget"))
    assert provider.inputs["userProjectOverride"] == "true"
    assert provider.inputs["billingProject"] == "acme-tpu-dev"
    other = variant("dev", {"budget": {"quota_project": "acme-billing"}})
    assert other.preview.resources.provider_of(other.one("Budget")).inputs["billingProject"] == "acme-billing"


def test_the_token_of_slack_stays_a_secret(extras) -> None:
    channel = extras.one("NotificationChannel", "slack")
    assert channel.value("labels") == {"channel_name": "#ml-alerts"}
    assert channel.value("sensitiveLabels", "authToken") is SECRET
    assert "bm90LXJlYWw" not in repr(extras.preview)


def test_without_slack_there_is_no_such_channel(dev) -> None:
    assert [one.name for one in dev.of("NotificationChannel")] == ["email-ml-infra@acme.example"]
    assert dev.one("NotificationChannel").inputs["labels"] == {"email_address": "ml-infra@acme.example"}


def test_the_dashboard_is_that_of_the_stack(dev, without_guard) -> None:
    shown = json.loads(str(dev.one("Dashboard").inputs["dashboardJson"]))
    assert shown["displayName"] == "spotrail dev"
    text = json.dumps(shown)
    assert "dev-llama-3f9a6c0b-us-central1-b" in text
    assert "4,000 USD" in text
    assert "spotrail_idle_mibps" in text
    assert "spotrail_idle_mibps" not in str(without_guard.one("Dashboard").inputs["dashboardJson"])
