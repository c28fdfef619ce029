from __future__ import annotations

from infra.components.alert_policies import WatchedVolume
from infra.plan.alerts import chips_beyond, guard_findings, guard_silent, idle_volume

MIB = 1024 * 1024
VOLUME = "dev-llama-3f9a6c0b-us-central1-b"


def promql(policy) -> list[dict[str, object]]:
    return [condition["conditionPrometheusQueryLanguage"] for condition in policy.items("conditions")]


def test_more_chips_than_declared_is_an_alert(dev, prod) -> None:
    (condition,) = promql(dev.one("AlertPolicy", "spend-rate"))
    assert condition["query"] == chips_beyond(8).query
    assert condition["disableMetricValidation"] is True
    assert (condition["duration"], condition["evaluationInterval"]) == ("0s", "60s")
    (condition,) = promql(prod.one("AlertPolicy", "spend-rate"))
    # Two slices of 64, four hosts of 8.
    assert condition["query"] == chips_beyond(160).query


def test_a_volume_that_nobody_reads_is_an_alert(dev) -> None:
    (condition,) = promql(dev.one("AlertPolicy", "idle-throughput"))
    # 5 % of 1,200 MiB/s are 60 MiB/s.
    assert condition["query"] == idle_volume(VOLUME, 60 * MIB, 6).query


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
    assert condition["query"] == idle_volume(VOLUME, 450 * MIB // 100, 23).query


def test_the_bound_of_a_volume_is_in_whole_bytes() -> None:
    assert WatchedVolume(device_name="d", throughput=400).idle_below(5) == 20 * MIB
    assert WatchedVolume(device_name="d", throughput=401).idle_below(1) == 4204789


def test_what_the_guard_finds_and_that_it_runs_are_alerts(dev, prod) -> None:
    for graph, stack, dollars in ((dev, "dev", 50), (prod, "prod", 700)):
        (found,) = promql(graph.one("AlertPolicy", "guard-findings"))
        assert found["query"] == guard_findings(stack, 1, dollars).query
        (silent,) = promql(graph.one("AlertPolicy", "guard-silent"))
        assert silent["query"] == guard_silent(stack, 1).query
        assert silent["duration"] == "5400s"


def test_a_guard_that_runs_seldom_is_silent_later(seldom) -> None:
    (silent,) = promql(seldom.one("AlertPolicy", "guard-silent"))
    assert (silent["query"], silent["duration"]) == (guard_silent("dev", 6).query, "23400s")


def test_without_a_guard_nothing_waits_for_it(without_guard) -> None:
    assert [one.name for one in without_guard.of("AlertPolicy")] == ["spend-rate", "idle-throughput"]


def test_the_durations_are_such_as_google_takes(extras) -> None:
    for policy in extras.of("AlertPolicy"):
        for condition in promql(policy):
            assert int(str(condition["duration"]).removesuffix("s")) % 60 == 0
            assert int(str(condition["evaluationInterval"]).removesuffix("s")) % 30 == 0


def test_every_alert_reaches_somebody_and_says_what_to_do(extras) -> None:
    for policy in extras.of("AlertPolicy"):
        assert extras.sources(policy, "notificationChannels") == {
            "NotificationChannel email-ml-infra@acme.example",
            "NotificationChannel slack",
        }
        text = str(policy.value("documentation", "content"))
        assert "1. " in text
        assert "2. " in text
