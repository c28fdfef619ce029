"""The buckets. Cases: one that is destroyed too easily, and soft delete under checkpoints that rotate."""

from __future__ import annotations

import pytest

BUCKETS = ("checkpoints", "datasets", "models")
WEEK = 7 * 86400


@pytest.fixture(params=["dev", "staging", "prod"])
def graph(request: pytest.FixtureRequest):
    return request.getfixturevalue(request.param)


def test_each_purpose_has_a_bucket_with_the_project_in_its_name(dev, prod) -> None:
    assert dev.cloud_names("Bucket") == {f"acme-tpu-dev-dev-{purpose}" for purpose in BUCKETS}
    assert prod.cloud_names("Bucket") == {f"acme-tpu-prod-prod-{purpose}" for purpose in BUCKETS}


@pytest.mark.parametrize("purpose", BUCKETS)
def test_a_bucket_is_private_and_stands_beside_the_chips(graph, purpose: str) -> None:
    bucket = graph.one("Bucket", purpose)
    assert bucket.inputs["location"] == "us-central1"
    assert bucket.inputs["storageClass"] == "STANDARD"
    assert bucket.inputs["uniformBucketLevelAccess"] is True
    assert bucket.inputs["publicAccessPrevention"] == "enforced"


@pytest.mark.parametrize("purpose", BUCKETS)
def test_no_bucket_goes_easily(graph, purpose: str) -> None:
    bucket = graph.one("Bucket", purpose)
    assert bucket.options.protect
    assert bucket.options.retain_on_delete
    assert bucket.inputs["forceDestroy"] is False


@pytest.mark.parametrize(("purpose", "seconds"), [("checkpoints", 0), ("datasets", WEEK), ("models", 0)])
def test_soft_delete_is_decided_for_each(graph, purpose: str, seconds: int) -> None:
    assert graph.one("Bucket", purpose).value("softDeletePolicy", "retentionDurationSeconds") == seconds


@pytest.mark.parametrize("purpose", BUCKETS)
def test_what_is_temporary_or_unfinished_goes_by_itself(graph, purpose: str) -> None:
    rules = graph.one("Bucket", purpose).items("lifecycleRules")
    assert {"action": {"type": "Delete"}, "condition": {"age": 7, "matchesPrefixes": ("tmp/",)}} in rules
    assert {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 2}} in rules


@pytest.mark.parametrize("purpose", BUCKETS)
def test_versions_and_their_end_come_together(graph, purpose: str) -> None:
    bucket = graph.one("Bucket", purpose)
    noncurrent = {
        "action": {"type": "Delete"},
        "condition": {"daysSinceNoncurrentTime": 30, "withState": "ARCHIVED"},
    }
    assert bucket.value("versioning", "enabled") is (purpose == "models")
    assert (noncurrent in bucket.items("lifecycleRules")) is (purpose == "models")


def test_nothing_is_kept_alive_twice(graph) -> None:
    both = [
        bucket.name
        for bucket in graph.of("Bucket")
        if bucket.value("versioning", "enabled") and bucket.value("softDeletePolicy", "retentionDurationSeconds")
    ]
    assert both == []


def test_the_lifecycle_follows_the_settings(variant) -> None:
    changes = {"buckets": {"temporary_prefix": "scratch/", "temporary_days": 3, "abandoned_upload_days": 1}}
    rules = variant("dev", changes).one("Bucket", "datasets").items("lifecycleRules")
    assert rules == (
        {"action": {"type": "Delete"}, "condition": {"age": 3, "matchesPrefixes": ("scratch/",)}},
        {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 1}},
    )
