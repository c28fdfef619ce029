from __future__ import annotations


def test_images_have_a_repository_that_cleans_up(dev) -> None:
    images = dev.one("Repository", "images")
    assert images.inputs["repositoryId"] == "dev-images"
    assert images.inputs["format"] == "DOCKER"
    assert images.inputs["location"] == "us-central1"
    assert images.inputs["cleanupPolicyDryRun"] is False
    assert images.items("cleanupPolicies") == (
        {"id": "untagged", "action": "DELETE", "condition": {"tagState": "UNTAGGED", "olderThan": "1209600s"}},
        {"id": "latest", "action": "KEEP", "mostRecentVersions": {"keepCount": 10}},
    )


def test_packages_come_through_mirrors(dev) -> None:
    python, apt = dev.one("Repository", "python-mirror"), dev.one("Repository", "apt-mirror")
    assert (python.inputs["repositoryId"], apt.inputs["repositoryId"]) == ("dev-pypi", "dev-ubuntu")
    assert {one.inputs["mode"] for one in (python, apt)} == {"REMOTE_REPOSITORY"}
    assert python.value("remoteRepositoryConfig", "pythonRepository", "publicRepository") == "PYPI"
    assert apt.value("remoteRepositoryConfig", "aptRepository", "publicRepository") == {
        "repositoryBase": "UBUNTU",
        "repositoryPath": "ubuntu/dists/jammy",
    }


def test_the_scripts_ask_the_mirrors_that_exist(dev) -> None:
    head = str(dev.one("Instance", "head").value("metadata", "startup-script"))
    host = str(dev.one("Instance", "trainer").value("metadata", "startup-script"))
    assert "https://us-central1-python.pkg.dev/acme-tpu-dev/dev-pypi/simple/" in head
    assert "https://us-central1-apt.pkg.dev/remote/acme-tpu-dev/dev-ubuntu" in host
    assert "us-central1-docker.pkg.dev/acme-tpu-dev/dev-images/train:latest" in host


def test_a_mirror_that_is_not_wanted_is_not_made(variant) -> None:
    graph = variant("dev", {"registry": {"python_mirror": "", "apt_mirror": ""}, "network": {"nat": True}})
    assert [one.name for one in graph.of("Repository")] == ["images"]
    assert {one.name for one in graph.of("RepositoryIamMember")} == {
        f"{account}-reads-images" for account in ("head", "worker", "server")
    }


def test_every_machine_that_pulls_may_read_every_repository(dev) -> None:
    found = {(one.inputs["repository"], *dev.sources(one, "member")) for one in dev.of("RepositoryIamMember")}
    repositories = ("dev-images", "dev-pypi", "dev-ubuntu")
    assert found == {(name, f"Account {who}") for name in repositories for who in ("head", "worker", "server")}
    assert {one.inputs["role"] for one in dev.of("RepositoryIamMember")} == {"roles/artifactregistry.reader"}


def test_the_stack_says_where_to_push(dev) -> None:
    assert dev.preview.outputs["registry"] == "us-central1-docker.pkg.dev/acme-tpu-dev/dev-images"
