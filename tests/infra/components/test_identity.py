from __future__ import annotations

import re

import pytest

VIEWER, USER, CREATOR = "roles/storage.objectViewer", "roles/storage.objectUser", "roles/storage.objectCreator"

# What each thing that the two job scripts do needs. An instance is created with everything it is started with.
CALLS = {
    "compute disks create": {"compute.disks.create", "compute.disks.setLabels"},
    "compute disks describe": {"compute.disks.get"},
    "compute disks delete": {"compute.disks.delete"},
    "compute instances create": {
        "compute.instances.create",
        "compute.instances.setLabels",
        "compute.instances.setMetadata",
        "compute.instances.setServiceAccount",
        "compute.instances.setTags",
        "compute.disks.create",
        "compute.disks.use",
        "compute.images.useReadOnly",
        "compute.subnetworks.use",
    },
    "compute instances describe": {"compute.instances.get"},
    "compute instances delete": {"compute.instances.delete"},
    "compute instances get-guest-attributes": {"compute.instances.getGuestAttributes"},
    "compute instances get-serial-port-output": {"compute.instances.getSerialPortOutput"},
    "compute snapshots describe": {"compute.snapshots.get"},
}
OF_GCLOUD = {"compute.zoneOperations.get", "compute.zones.get"}


def test_each_kind_of_machine_has_an_account_of_its_own(dev) -> None:
    found = {one.name: one.inputs["accountId"] for one in dev.of("Account") if "guard" not in one.name}
    assert found == {name: f"dev-{name}" for name in ("head", "worker", "server", "hydrator", "pipeline")}


@pytest.mark.parametrize(
    ("account", "grants"),
    [
        ("head", {("checkpoints", VIEWER), ("datasets", VIEWER)}),
        ("worker", {("checkpoints", USER), ("datasets", VIEWER), ("models", VIEWER), ("models", CREATOR)}),
        ("server", {("models", VIEWER)}),
        ("hydrator", {("models", VIEWER)}),
        ("pipeline", set()),
    ],
)
def test_a_role_on_objects_hangs_on_one_bucket(dev, account: str, grants: set[tuple[str, str]]) -> None:
    found = {
        (str(one.inputs["bucket"]).rpartition("-")[2], one.inputs["role"])
        for one in dev.of("BucketIAMMember")
        if dev.sources(one, "member") == {f"Account {account}"}
    }
    assert found == grants


def test_a_role_on_a_bucket_waits_for_the_bucket(dev) -> None:
    grant = dev.one("BucketIAMMember", "worker-checkpoints-storage.objectUser")
    assert dev.sources(grant, "bucket") == {"Bucket checkpoints"}


def test_machines_write_their_logs_and_metrics_and_nothing_else_in_the_project(dev) -> None:
    granted = [one for one in dev.of("projects/iAMMember:IAMMember") if not one.name.startswith("guard")]
    found = {(one.name.partition("-")[0], one.inputs["role"]) for one in granted}
    machines = ("head", "worker", "server", "hydrator")
    writers = {
        (name, role) for name in machines for role in ("roles/logging.logWriter", "roles/monitoring.metricWriter")
    }
    assert {pair for pair in found if pair[0] != "pipeline"} == writers
    assert len(found) == len(writers) + 1


@pytest.mark.parametrize("name", ["dev", "prod"])
def test_no_basic_role_is_granted(request: pytest.FixtureRequest, name: str) -> None:
    graph = request.getfixturevalue(name)
    basic = {"roles/owner", "roles/editor", "roles/viewer"}
    granted = {one.inputs.get("role") for one in graph if "IAMMember" in one.type or "IamMember" in one.type}
    assert granted & basic == set()


@pytest.mark.parametrize("graph", ["dev", "prod"])
def test_no_machine_runs_as_the_default_account(request: pytest.FixtureRequest, graph: str) -> None:
    found = request.getfixturevalue(graph)
    for one in (*found.of("Instance"), *found.of("InstanceTemplate"), *found.of("V2Vm")):
        assert len(found.sources(one, "serviceAccount")) == 1, one.urn
        assert one.value("serviceAccount", "scopes") == ("https://www.googleapis.com/auth/cloud-platform",)


def test_the_jobs_may_do_exactly_what_their_scripts_do(dev) -> None:
    jobs = [job for job in dev.of("cloudrunv2/job:Job") if job.name != "guard"]
    scripts = "\n".join(str(job.value("template", "template", "containers", 0, "args", 0)) for job in jobs)
    called = set(re.findall(r"\bcompute (?:disks|instances|snapshots|images|networks) [a-z-]+", scripts))
    assert called <= CALLS.keys(), "a call whose permissions nobody has looked up"
    needed = set().union(*(CALLS[call] for call in called))
    assert set(dev.one("IAMCustomRole", "pipeline-role").items("permissions")) == needed | OF_GCLOUD


def test_the_jobs_may_start_the_hydrator_as_its_own_account_and_as_no_other(dev) -> None:
    grant = dev.one("serviceaccount/iAMMember:IAMMember")
    assert grant.inputs["role"] == "roles/iam.serviceAccountUser"
    assert dev.sources(grant, "serviceAccountId") == {"Account hydrator"}
    assert dev.sources(grant, "member") == {"Account pipeline"}


def test_the_custom_role_is_bound_to_the_jobs(dev) -> None:
    grant = dev.one("projects/iAMMember:IAMMember", "pipeline-on-project")
    assert dev.sources(grant, "role") == {"IAMCustomRole pipeline-role"}
    assert grant.inputs["role"] == "projects/acme-tpu-dev/roles/spotrail_dev_pipeline"
    assert dev.sources(grant, "member") == {"Account pipeline"}
    assert dev.one("IAMCustomRole", "pipeline-role").inputs["roleId"] == "spotrail_dev_pipeline"


def test_without_a_repository_there_is_no_federation(dev) -> None:
    assert dev.of("WorkloadIdentityPool") == ()
    assert not [one for one in dev if one.name.startswith("ci")]


def test_a_repository_may_preview_and_change_nothing(extras) -> None:
    provider = extras.one("WorkloadIdentityPoolProvider")
    assert provider.inputs["attributeCondition"] == "assertion.repository == 'acme/tpu-stacks'"
    assert provider.value("oidc", "issuerUri") == "https://token.actions.githubusercontent.com"
    assert provider.value("attributeMapping") == {
        "google.subject": "assertion.sub",
        "attribute.repository": "assertion.repository",
    }
    acting = extras.one("serviceaccount/iAMMember:IAMMember", "ci-from-repository")
    assert acting.inputs["role"] == "roles/iam.workloadIdentityUser"
    assert extras.sources(acting, "serviceAccountId") == {"Account ci"}
    assert extras.sources(acting, "member") == {"WorkloadIdentityPool ci-pool"}
    roles = {
        str(one.inputs["role"])
        for one in extras.of("IAMMember")
        if "Account ci" in extras.sources(one, "member") and one is not acting
    }
    harmless = re.compile(r".*(\.viewer|\.reader|Viewer|\.securityReviewer|\.serviceUsageConsumer)")
    assert len(roles) == 10
    assert {role for role in roles if not harmless.fullmatch(role)} == set()


def test_the_stack_says_whom_ci_is(dev, extras) -> None:
    assert "ci_account" in extras.preview.outputs
    assert "ci_provider" in extras.preview.outputs
    assert "ci_account" not in dev.preview.outputs
