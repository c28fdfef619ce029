"""The chain from the bucket to the readers. Cases: a disk before its snapshot, a new version over an old disk, a
shared disk that somebody writes."""

from __future__ import annotations

import re

import pytest

from policies.audit.schedule import read_schedule
from policies.guard.labels import SCHEDULE_LABEL

DIGEST = "3f9a6c0be1d2758b94c7f02a6d8e513f7b0c94a2d6e85f1370b9c2a4e6d81f35"
OTHER = "0badc0de" + DIGEST[8:]
VERSION = "llama-3f9a6c0b"
CHAIN = ("cloudrunv2/job:Job", "Snapshot", "Disk")


def environment(job) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in job.value("template", "template", "containers", 0, "envs")}


def jobs(graph):
    """Those of the volume: the guard is a job too."""
    return [job for job in graph.of("cloudrunv2/job:Job") if job.name.startswith("llama-")]


def script(job) -> str:
    return str(job.value("template", "template", "containers", 0, "args", 0))


@pytest.fixture(scope="module")
def next_version(variant):
    return variant("dev", {"model": {"manifest_sha256": OTHER, "path": "llama/v2"}})


def test_everything_of_a_version_carries_its_digest(dev) -> None:
    component = dev.component("ModelVolume")
    assert component.name == VERSION
    children = {one.name: one.inputs["name"] for one in dev.preview.resources.children(component.urn)}
    assert children == {
        f"{VERSION}-fill": f"dev-{VERSION}-fill",
        VERSION: f"dev-{VERSION}-snapshot",
        f"{VERSION}-clean": f"dev-{VERSION}-clean",
        f"{VERSION}-us-central1-b": f"dev-{VERSION}-us-central1-b",
    }


def test_each_link_waits_for_the_one_before(dev) -> None:
    fill, clean = dev.one("Job", f"{VERSION}-fill"), dev.one("Job", f"{VERSION}-clean")
    snapshot, disk = dev.one("Snapshot"), dev.one("Disk")
    assert f"Job {VERSION}-fill" in dev.needs(snapshot)
    assert f"Snapshot {VERSION}" in dev.needs(clean)
    # `clean` waits until the snapshot is READY, so a disk that waits for `clean` never comes too early.
    assert f"Job {VERSION}-clean" in dev.needs(disk)
    assert dev.sources(disk, "snapshot") == {f"Snapshot {VERSION}"}
    assert dev.needs(fill) == {"Account pipeline"}


def test_the_fill_waits_for_its_roles_and_its_network(dev) -> None:
    needs = dev.needs(dev.component("ModelVolume"))
    assert {
        "IAMMember pipeline-on-project",
        "IAMMember pipeline-as-hydrator",
        "BucketIAMMember hydrator-models-storage.objectViewer",
        "Subnetwork subnet-us-central1",
        "Service run",
    } <= needs


@pytest.mark.parametrize(
    ("step", "retries", "timeout", "wait"), [("fill", 0, 7200, "8400s"), ("clean", 3, 1800, "10200s")]
)
def test_a_job_runs_at_once_and_only_success_makes_it_ready(
    dev, step: str, retries: int, timeout: int, wait: str
) -> None:
    job = dev.one("Job", f"{VERSION}-{step}")
    assert job.inputs["runExecutionToken"] == DIGEST[:8]
    assert "startExecutionToken" not in job.inputs
    assert len(f"{job.inputs['name']}{job.inputs['runExecutionToken']}") < 63
    assert job.inputs["location"] == "us-central1"
    assert job.value("template", "template", "maxRetries") == retries
    # The script stops by itself, and then has ten minutes to clean up.
    assert job.value("template", "template", "timeout") == f"{timeout + 600}s"
    assert job.options.custom_timeouts["create"] == wait
    assert job.inputs["deletionProtection"] is False
    assert dev.sources(job, "template") == {"Account pipeline"}


def test_a_job_that_has_failed_is_replaced_and_so_runs_again(dev) -> None:
    """Two of one name cannot stand side by side. Whether the engine does so: tests/engine/test_hydration.py."""
    for job in jobs(dev):
        assert job.options.replace_on_changes == ("#initerror",)
        assert job.options.delete_before_replace


def test_nothing_changes_a_job_that_has_run(dev) -> None:
    """An update would send the token once more. All that can be updated is therefore ignored."""
    for job in jobs(dev):
        where_and_what = {"name", "location", "deletionProtection"}
        assert set(job.options.ignore_changes) == {key for key in job.inputs if key not in where_and_what}


def test_a_job_is_a_public_image_and_a_script(dev) -> None:
    for job in jobs(dev):
        container = job.value("template", "template", "containers", 0)
        # An exact version: the scripts read what gcloud says when it fails.
        assert re.fullmatch(r"gcr\.io/google\.com/cloudsdktool/google-cloud-cli:\d+\.\d+\.\d+-slim", container["image"])
        assert container["commands"] == ("bash", "-c")
        assert len(container["args"]) == 1
        assert container["resources"] == {"limits": {"cpu": "1", "memory": "1Gi"}}


def test_the_scripts_speak_of_the_same_things_as_the_program(dev) -> None:
    fill, clean = script(dev.one("Job", f"{VERSION}-fill")), script(dev.one("Job", f"{VERSION}-clean"))
    assert f"STAGING_DISK={dev.one('Snapshot').inputs['sourceDisk']}\n" in fill
    assert f"STAGING_DISK={dev.one('Snapshot').inputs['sourceDisk']}\n" in clean
    assert f"SNAPSHOT={dev.one('Snapshot').inputs['name']}\n" in clean
    account = dev.one("Account", "hydrator").inputs["accountId"]
    assert f"SERVICE_ACCOUNT={account}@acme-tpu-dev.iam.gserviceaccount.com\n" in fill
    subnetwork = dev.one("Subnetwork").inputs["name"]
    assert f"SUBNETWORK=projects/acme-tpu-dev/regions/us-central1/subnetworks/{subnetwork}\n" in fill
    assert f"BUCKET={dev.one('Bucket', 'models').inputs['name']}\n" in fill
    assert DIGEST in fill


def test_what_a_fill_uses_is_shown_before_it_runs(dev) -> None:
    shown = {
        "SPOTRAIL_STAGING_TYPE": "hyperdisk-balanced",
        "SPOTRAIL_STAGING_GIB": "200",
        "SPOTRAIL_STAGING_IOPS": "3000",
        "SPOTRAIL_STAGING_THROUGHPUT": "600",
        "SPOTRAIL_HYDRATOR_MACHINE": "n4-standard-8",
        "SPOTRAIL_HYDRATOR_BOOT_TYPE": "hyperdisk-balanced",
        "SPOTRAIL_HYDRATOR_BOOT_GIB": "20",
        "SPOTRAIL_ZONE": "us-central1-b",
    }
    assert environment(dev.one("Job", f"{VERSION}-fill")) == shown
    assert {job.value("labels", "role") for job in jobs(dev)} == {"hydrate"}
    assert {job.value("template", "labels", "ttl") for job in jobs(dev)} == {"3d"}


def test_the_snapshot_stays_in_the_region_and_says_how_large_it_can_be(dev) -> None:
    snapshot = dev.one("Snapshot")
    assert snapshot.inputs["sourceDisk"] == f"dev-{VERSION}-staging"
    assert snapshot.inputs["zone"] == "us-central1-b"
    assert snapshot.items("storageLocations") == ("us-central1",)
    assert snapshot.value("labels", "spotrail-size-gib") == "200"


@pytest.mark.parametrize(
    ("name", "gib", "throughput"), [("dev", 200, 1200), ("staging", 200, 400), ("prod", 500, 2400)]
)
def test_a_volume_is_for_readers_and_its_throughput_is_said(
    request: pytest.FixtureRequest, name: str, gib: int, throughput: int
) -> None:
    disk = request.getfixturevalue(name).one("Disk")
    assert disk.inputs["type"] == "hyperdisk-ml"
    assert disk.inputs["accessMode"] == "READ_ONLY_MANY"
    assert (disk.inputs["size"], disk.inputs["provisionedThroughput"]) == (gib, throughput)
    assert "provisionedIops" not in disk.inputs
    assert disk.options.ignore_changes == ("snapshot",)
    assert disk.options.custom_timeouts["create"] == "3600s"


def test_a_new_version_is_a_new_chain(dev, next_version) -> None:
    for token in CHAIN:
        old = {one.urn for one in dev.of(token) if one.name != "guard"}
        new = {one.urn for one in next_version.of(token) if one.name != "guard"}
        assert len(new) == len(old)
        assert old & new == set(), "the old one would be replaced and not stood beside"
        assert dev.cloud_names(token) & next_version.cloud_names(token) <= {"dev-guard"}
    scripts = "".join(script(job) for job in jobs(next_version))
    assert "3f9a6c0b" not in scripts
    assert OTHER in scripts


def test_the_readers_move_to_the_new_version(dev, next_version) -> None:
    old, new = dev.one("Instance", "trainer"), next_version.one("Instance", "trainer")
    assert old.urn == new.urn
    assert next_version.sources(new, "attachedDisks") == {"Disk llama-0badc0de-us-central1-b"}
    assert new.value("attachedDisks", 0, "deviceName") == "dev-llama-0badc0de-us-central1-b"
    # The reader is replaced, and gone before the disk is: deletions of what left the program come last.
    assert "attachedDisks" in new.options.replace_on_changes
    assert new.options.delete_before_replace


def test_only_what_hangs_on_the_version_changes(dev, next_version) -> None:
    old = {one.urn: one.inputs for one in dev}
    new = {one.urn: one.inputs for one in next_version}
    moved = {urn for urn in old.keys() ^ new.keys() if "llama-" not in urn.rpartition("::")[2]}
    changed = {urn.rpartition("::")[2] for urn in old.keys() & new.keys() if old[urn] != new[urn]}
    assert moved == set()
    assert changed == {"trainer", "idle-throughput", "dashboard"}


def test_an_old_version_can_go(dev) -> None:
    chain = [one for token in CHAIN for one in dev.of(token)]
    assert [one.urn for one in chain if one.options.protect or one.options.retain_on_delete] == []


def test_each_serving_zone_has_a_volume_of_its_own(two_zones) -> None:
    found = {disk.inputs["zone"]: disk for disk in two_zones.of("Disk")}
    assert set(found) == {"us-central1-b", "us-east5-b"}
    assert {disk.options.parent for disk in found.values()} == {two_zones.component("ModelVolume").urn}
    assert len(two_zones.of("Snapshot")) == 1
    for zone in found:
        for host in (0, 1):
            reader = two_zones.one("Instance", f"serve-{zone}-{host}")
            assert reader.inputs["zone"] == zone
            assert two_zones.sources(reader, "attachedDisks") == {f"Disk {VERSION}-{zone}"}


def test_a_second_zone_leaves_the_volume_of_the_first_alone(dev, two_zones) -> None:
    first = dev.one("Disk")
    assert two_zones.one("Disk", first.name).inputs == first.inputs
    assert two_zones.one("Disk", first.name).urn == first.urn


@pytest.mark.parametrize("name", ["dev", "staging", "prod", "two_zones", "zoo"])
def test_nobody_writes_a_volume(request: pytest.FixtureRequest, name: str) -> None:
    graph = request.getfixturevalue(name)
    modes = [disk["mode"] for one in graph.of("Instance") for disk in one.items("attachedDisks")]
    modes += [disk.get("mode") for one in graph.of("V2Vm") for disk in one.items("dataDisks")]
    modes += [disk["mode"] for one in graph.of("InstanceTemplate") for disk in one.items("disks") if "source" in disk]
    assert set(modes) == {"READ_ONLY"}
    assert {disk.inputs["accessMode"] for disk in graph.of("Disk")} == {"READ_ONLY_MANY"}


def test_the_stack_says_where_its_volumes_are(two_zones) -> None:
    assert two_zones.preview.outputs["volumes"] == {
        "us-central1-b": "dev-llama-3f9a6c0b-us-central1-b",
        "us-east5-b": "dev-llama-3f9a6c0b-us-east5-b",
    }


def test_throughput_by_the_clock_is_the_guards_to_set(by_clock, dev) -> None:
    disk = by_clock.one("Disk")
    assert disk.options.ignore_changes == ("snapshot", "provisionedThroughput")
    assert disk.inputs["provisionedThroughput"] == 1200, "what it is made with, and priced with"
    label = disk.value("labels", SCHEDULE_LABEL)
    assert label == "mon-fri_0800-1800_europe--berlin_1200"
    assert read_schedule(str(label)).text() == "mon-fri 08:00-18:00 Europe/Berlin 1200"
    assert SCHEDULE_LABEL not in dev.one("Disk").inputs["labels"]


def test_a_quiet_night_by_the_clock_is_no_alert(by_clock) -> None:
    assert [one.name for one in by_clock.of("AlertPolicy")] == ["spend-rate", "guard-findings", "guard-silent"]
