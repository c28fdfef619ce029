from __future__ import annotations

from infra.components.guard_job import APPLY_PERMISSIONS, BUCKET_PERMISSIONS

READS = {"roles/compute.viewer", "roles/monitoring.viewer", "roles/monitoring.metricWriter", "roles/tpu.viewer"}


def job(graph):
    return graph.one("cloudrunv2/job:Job", "guard")


def arguments(graph) -> tuple[object, ...]:
    return job(graph).value("template", "template", "containers", 0, "args")


def granted(graph, account: str) -> dict[str, set[object]]:
    """What `account` is given, by the type of binding."""
    found: dict[str, set[object]] = {}
    for one in graph:
        if one.type.lower().endswith("iammember") and graph.sources(one, "member") == {f"Account {account}"}:
            found.setdefault(one.type.rpartition(":")[2], set()).add(one.inputs["role"])
    return found


def test_each_stack_says_whether_it_has_a_guard_and_what_it_may(stack) -> None:
    applies = {name: "--apply" in arguments(stack(name)) for name in ("dev", "staging", "prod")}
    assert applies == {"dev": True, "staging": True, "prod": False}


def test_the_job_runs_the_image_of_the_registry_on_the_project(dev) -> None:
    container = job(dev).value("template", "template", "containers", 0)
    assert container["image"] == "us-central1-docker.pkg.dev/acme-tpu-dev/dev-images/guard:latest"
    assert arguments(dev) == (
        "--project",
        "acme-tpu-dev",
        "--stack",
        "dev",
        "--window",
        "1d",
        "--topic",
        "projects/acme-tpu-dev/topics/dev-findings",
        "--apply",
    )
    assert dev.one("Topic", "findings").inputs["name"] == "dev-findings"
    assert "commands" not in container, "the entry point is that of the image"
    assert "envs" not in container


def test_a_run_that_fails_is_left_to_the_next(dev) -> None:
    assert job(dev).value("template", "template", "maxRetries") == 0
    assert job(dev).value("deletionProtection") is False


def test_it_is_called_every_hour_by_an_account_that_may_do_only_that(dev) -> None:
    schedule = dev.one("cloudscheduler/job:Job")
    assert schedule.inputs["schedule"] == "7 */1 * * *"
    assert schedule.inputs["timeZone"] == "Etc/UTC"
    assert schedule.value("httpTarget", "httpMethod") == "POST"
    assert schedule.value("httpTarget", "uri") == (
        "https://run.googleapis.com/v2/projects/acme-tpu-dev/locations/us-central1/jobs/dev-guard:run"
    )
    assert dev.sources(schedule, "httpTarget") == {"Account guard-run", "Job guard"}
    assert granted(dev, "guard-run") == {"JobIamMember": {"roles/run.invoker"}}
    assert dev.sources(dev.one("JobIamMember"), "name") == {"Job guard"}


def test_how_often_is_a_setting(seldom) -> None:
    assert seldom.one("cloudscheduler/job:Job").inputs["schedule"] == "7 */6 * * *"


def test_it_reads_what_an_audit_reads_and_writes_to_one_topic(prod) -> None:
    assert dict(granted(prod, "guard")) == {
        "IAMMember": READS | {"projects/acme-tpu-prod/roles/spotrail_prod_guard_reads", "roles/storage.objectViewer"},
        "TopicIAMMember": {"roles/pubsub.publisher"},
    }
    assert prod.one("projects/iAMMember:IAMMember", "guard-heartbeats").value("condition", "expression") == (
        'resource.type == "storage.googleapis.com/Object" && resource.name.endsWith("/heartbeat.json")'
    )
    assert prod.sources(prod.one("TopicIAMMember"), "topic") == {"Topic findings"}
    assert set(prod.one("IAMCustomRole", "guard-reads").items("permissions")) == set(BUCKET_PERMISSIONS)


def test_it_may_change_something_only_where_the_stack_says_so(dev, prod) -> None:
    assert [one.name for one in prod.of("IAMCustomRole")] == ["pipeline-role", "guard-reads"]
    assert set(dev.one("IAMCustomRole", "guard-applies").items("permissions")) == set(APPLY_PERMISSIONS)
    assert "projects/acme-tpu-dev/roles/spotrail_dev_guard_applies" in granted(dev, "guard")["IAMMember"]


def test_it_may_never_delete_what_holds_data(dev) -> None:
    held = {
        str(each)
        for role in dev.of("IAMCustomRole")
        if role.name.startswith("guard")
        for each in role.items("permissions")
    }
    assert {each for each in held if each.endswith((".delete", ".create"))} == {"tpu.nodes.delete"}


def test_its_account_is_that_of_the_job(dev) -> None:
    assert dev.sources(job(dev), "template") == {"Account guard"}
    assert {one.inputs["accountId"] for one in dev.of("Account") if "guard" in one.name} == {
        "dev-guard",
        "dev-guard-run",
    }


def test_the_url_of_a_webhook_comes_from_a_secret_and_stands_nowhere(hooked) -> None:
    container = job(hooked).value("template", "template", "containers", 0)
    (variable,) = container["envs"]
    assert variable == {
        "name": "SPOTRAIL_WEBHOOK",
        "valueSource": {"secretKeyRef": {"secret": "dev-guard-webhook", "version": "latest"}},
    }
    assert arguments(hooked)[-3:] == ("--webhook-env", "SPOTRAIL_WEBHOOK", "--apply")
    grant = hooked.one("SecretIamMember")
    assert (grant.inputs["secretId"], grant.inputs["role"]) == (
        "dev-guard-webhook",
        "roles/secretmanager.secretAccessor",
    )
    assert hooked.sources(grant, "member") == {"Account guard"}
    assert hooked.one("Service", "secretmanager")
    assert hooked.of("Secret") == hooked.of("SecretVersion") == ()


def test_an_image_of_somebody_else(variant) -> None:
    graph = variant("dev", {"guard": {"image": "ghcr.io/acme/guard:1"}})
    assert job(graph).value("template", "template", "containers", 0)["image"] == "ghcr.io/acme/guard:1"


def test_without_a_guard_there_is_nothing_of_it(without_guard) -> None:
    names = {one.name for one in without_guard}
    assert (
        names & {"guard-run", "findings", "guard-schedule", "guard-reads", "guard-findings", "cloudscheduler"} == set()
    )
    assert [one.type for one in without_guard if one.name == "guard"] == ["spotrail:infra:CostGuard"]
