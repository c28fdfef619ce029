from __future__ import annotations

BASE = {
    "artifactregistry",
    "billingbudgets",
    "cloudresourcemanager",
    "compute",
    "iam",
    "iamcredentials",
    "iap",
    "logging",
    "monitoring",
    "pubsub",
    "run",
    "serviceusage",
    "storage",
}


def hosts(graph) -> set[str]:
    return {one.inputs["service"] for one in graph.of("Service")}


def apis(*names: str) -> set[str]:
    return {f"{name}.googleapis.com" for name in names}


def test_a_stack_enables_what_it_calls(without_guard) -> None:
    assert hosts(without_guard) == apis(*BASE)


def test_the_guard_is_scheduled_and_lists_nodes(dev, hooked) -> None:
    """Nodes of the Cloud TPU API too: where the API is off, a project that has none could not be told apart."""
    assert hosts(dev) == apis(*BASE, "cloudscheduler", "tpu")
    assert hosts(hooked) - hosts(dev) == apis("secretmanager")


def test_the_tpu_api_and_token_exchange_are_enabled_on_request(dev, extras, node) -> None:
    assert hosts(extras) - hosts(dev) == apis("sts")
    assert hosts(node) == apis(*BASE, "tpu")


def test_an_api_outlives_the_stack(extras) -> None:
    assert {one.inputs["disableOnDestroy"] for one in extras.of("Service")} == {False}


def test_everything_waits_for_the_apis(dev) -> None:
    services = {f"Service {one.name}" for one in dev.of("Service")}
    components = [one for one in dev if one.type.startswith("spotrail:infra:") and one.name != "services"]
    assert {one.name for one in components if not services <= dev.needs(one)} == set()
    assert len(components) == 8
