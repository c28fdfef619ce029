from __future__ import annotations

from decimal import Decimal

from infra.components.cost_guard import WatchedVolume
from policies.resources import SECRET, UNKNOWN

MIB = 1024 * 1024


def promql(policy) -> list[dict[str, object]]:
    return [condition["conditionPrometheusQueryLanguage"] for condition in policy.items("conditions")]


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


def test_more_chips_than_declared_is_an_alert(dev, prod) -> None:
    (condition,) = promql(dev.one("AlertPolicy", "spend-rate"))
    assert condition["query"] == "sum(compute_googleapis_com:instance_tpu_active_chips) > 8"
    assert condition["disableMetricValidation"] is True
    (condition,) = promql(prod.one("AlertPolicy", "spend-rate"))
    # Two slices of 64, four hosts of 8.
    assert condition["query"] == "sum(compute_googleapis_com:instance_tpu_active_chips) > 160"


def test_a_volume_that_nobody_reads_is_an_alert(dev) -> None:
    (condition,) = promql(dev.one("AlertPolicy", "idle-throughput"))
    # 5 % of 1,200 MiB/s are 60 MiB/s.
    assert condition["query"] == (
        "sum(rate(compute_googleapis_com:instance_disk_read_bytes_count"
        '{monitored_resource="gce_instance",device_name="dev-llama-3f9a6c0b-us-central1-b"}[10m]))'
        f" < {60 * MIB}"
    )
    assert condition["duration"] == "21600s"


def test_each_volume_has_a_condition_by_its_device_name(two_zones) -> None:
    policy = two_zones.one("AlertPolicy", "idle-throughput")
    watched = {disk["deviceName"] for one in two_zones.of("Instance") for disk in one.items("attachedDisks")}
    assert len(watched) == 2
    for device, condition in zip(sorted(watched), promql(policy), strict=True):
        assert f'device_name="{device}"' in str(condition["query"])


def test_when_a_volume_is_idle_is_a_setting(variant) -> None:
    graph = variant("dev", {"guard": {"idle_percent": 1, "idle_hours": 23}, "model": {"throughput": 450}})
    (condition,) = promql(graph.one("AlertPolicy", "idle-throughput"))
    # 1 % of 450 MiB/s is 4.5 MiB/s, in whole bytes.
    assert str(condition["query"]).endswith(f" < {450 * MIB // 100}")
    assert condition["duration"] == f"{23 * 3600}s"


def test_the_bound_of_a_volume_is_in_whole_bytes() -> None:
    assert WatchedVolume(device_name="d", throughput=400).idle_below(5) == 20 * MIB
    assert WatchedVolume(device_name="d", throughput=401).idle_below(1) == 4204789


def test_every_alert_reaches_somebody_and_says_what_to_do(extras) -> None:
    for policy in extras.of("AlertPolicy"):
        assert extras.sources(policy, "notificationChannels") == {
            "NotificationChannel email-ml-infra@acme.example",
            "NotificationChannel slack",
        }
        text = str(policy.value("documentation", "content"))
        assert "1. " in text
        assert "2. " in text


def test_the_token_of_slack_stays_a_secret(extras) -> None:
    channel = extras.one("NotificationChannel", "slack")
    assert channel.value("labels") == {"channel_name": "#ml-alerts"}
    assert channel.value("sensitiveLabels", "authToken") is SECRET
    assert "bm90LXJlYWw" not in repr(extras.preview)


def test_without_slack_there_is_no_such_channel(dev) -> None:
    assert [one.name for one in dev.of("NotificationChannel")] == ["email-ml-infra@acme.example"]
    assert dev.one("NotificationChannel").inputs["labels"] == {"email_address": "ml-infra@acme.example"}
