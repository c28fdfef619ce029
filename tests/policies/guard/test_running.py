"""Whole runs of the guard, with Google's own clients against the loopback Google Cloud."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from policies.audit.links import last
from policies.audit.live.failures import CloudError
from policies.audit.live.recording import collect
from policies.audit.model import VerdictKind
from policies.audit.record import Part
from policies.audit.remedies.applying import Outcome
from policies.exit_codes import ExitCode
from policies.guard import running
from policies.guard.gauges import Gauge
from policies.guard.webhook import Webhook
from tests.google_cloud import descriptors
from tests.google_cloud.descriptors import GAUGE, INT64, Descriptor
from tests.google_cloud.faults import Fault, FaultKind
from tests.google_cloud.world import World
from tests.policies.guard.project import OURS, TOPIC, ZONE, guarded, volume

CHANGES = ("compute.disks.update", "compute.instanceGroupManagers.resize", "tpu.nodes.delete")
LISTS = (
    "compute.disks.aggregatedList",
    "compute.instances.aggregatedList",
    "compute.instanceGroupManagers.aggregatedList",
    "compute.snapshots.list",
    "compute.addresses.aggregatedList",
    "tpu.nodes.list",
    "tpu.queuedResources.list",
    "storage.buckets.list",
    "storage.anywhereCaches.list",
    "monitoring.timeSeries.list",
)
HOUR = datetime.timedelta(hours=1)


def changes(world: World) -> dict[str, int]:
    return {method: count for method, count in world.counts().items() if method in CHANGES}


def written(world: World) -> dict[str, Any]:
    """The values of the gauges, by the last part of their type; the newest where there are several."""
    found = {}
    for series in world.written:
        ((kind, value),) = series["points"][0]["value"].items()
        found[series["metric"]["type"].rpartition("/")[2]] = int(value) if kind == "int64Value" else value
    return found


def documents(world: World) -> list[dict[str, Any]]:
    return [json.loads(message["data"]) for message in world.published]


def link(collection: str, name: str) -> str:
    return f"projects/acme-tpu-dev/zones/{ZONE}/{collection}/{name}"


def host(world: World, name: str, **labels: str) -> None:
    """A slice of one host, made a while ago."""
    world.add(
        Part.INSTANCES,
        name=name,
        zone=ZONE,
        machineType="ct6e-standard-8t",
        creationTimestamp="now-9d",
        labels={**OURS, **labels},
        scheduling={"provisioningModel": "SPOT"},
    )


@pytest.fixture
def remembered(world: World, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets the world show the digest that was written, as Cloud Monitoring does."""
    told = Descriptor(type=Gauge.TOLD.type, kind=GAUGE, values=INT64, unit="1", resource="global")
    monkeypatch.setattr("tests.google_cloud.monitoring.DESCRIPTORS", {**descriptors.DESCRIPTORS, told.type: told})
    monkeypatch.setattr("tests.google_cloud.signals.DESCRIPTORS", {**descriptors.DESCRIPTORS, told.type: told})

    def remember() -> None:
        world.observe(
            "signals",
            metric=told.type,
            metric_labels={"stack": "dev"},
            resource_labels={"project_id": world.project},
            flow=written(world)["told"],
        )

    return remember


class TestTelling:
    def test_every_finding_is_published_and_the_run_last(self, world: World, endpoint: str) -> None:
        run = guarded(endpoint)
        assert (run.exit_code, run.told, run.troubles) == (ExitCode.FINE, ("Pub/Sub",), ())
        assert {message["topic"] for message in world.published} == {TOPIC}
        found = [(each["kind"], each.get("verdict")) for each in documents(world)]
        assert found == [
            ("verdict", "EXPIRED"),
            ("verdict", "EXPIRED"),
            ("verdict", "IDLE_UNATTACHED"),
            ("verdict", "IDLE_UNATTACHED"),
            ("verdict", "IDLE_ATTACHED"),
            ("run", None),
        ]
        # 500 GiB at 0.08 and 12,000 MiB/s at 0.12 each, 11,600 MiB/s too many, twice 8 chips at 0.592660 for 730 h.
        assert documents(world)[-1]["monthly_waste"] == "11274.2688"
        attributes = world.published[-1]["attributes"]
        assert attributes.items() >= {"kind": "run", "stack": "dev", "resource": "acme-tpu-dev"}.items()

    def test_the_webhook_has_words_and_figures(self, world: World, endpoint: str) -> None:
        hook = Webhook(name="HOOK", url=f"{endpoint}/webhook/hunter2")
        run = guarded(endpoint, webhook=hook)
        assert run.told == ("Pub/Sub", "webhook")
        (post,) = world.posted
        body = json.loads(post["body"])
        assert body["text"].splitlines()[0] == "spotrail dev: 11,274.27 USD a month idle in acme-tpu-dev"
        assert (body["schema"], len(body["verdicts"])) == ("spotrail.guard/1", 5)
        assert "hunter2" not in json.dumps([run.troubles, documents(world), body])

    def test_the_gauges(self, world: World, endpoint: str) -> None:
        guarded(endpoint)
        figures = written(world)
        del figures["told"]
        assert figures == {
            # Two volumes that nothing has attached, and 11,600 of one that nobody reads.
            "idle_mibps": 35600.0,
            "idle_dollars_per_month": 11274.2688,
            "unattached_volumes": 2,
            "expired_slices": 2,
            "stale_heartbeats": 0,
            "unseen_parts": 0,
            "last_run": 1795953600,
        }
        assert {series["resource"]["type"] for series in world.written} == {"global"}
        assert {series["metric"]["labels"]["stack"] for series in world.written} == {"dev"}

    def test_nothing_is_said_twice(
        self, world: World, endpoint: str, later: datetime.datetime, remembered: Callable[[], None]
    ) -> None:
        guarded(endpoint)
        remembered()
        world.now = later
        sent = len(world.published)
        run = guarded(endpoint, later)
        assert len(world.published) == sent
        assert (run.told, run.silent) == ((), "it was told already today, and nothing has changed")
        assert run.exit_code is ExitCode.FINE
        assert Counter(series["metric"]["type"] for series in world.written)[Gauge.LAST_RUN.type] == 2

    def test_a_new_finding_is_said(
        self, world: World, endpoint: str, later: datetime.datetime, remembered: Callable[[], None]
    ) -> None:
        guarded(endpoint)
        remembered()
        world.now = later
        volume(world, "dev-new", labels=OURS)
        sent = len(world.published)
        assert guarded(endpoint, later).told == ("Pub/Sub",)
        assert len(world.published) == 2 * sent + 1

    def test_what_reached_nobody_is_said_by_the_next_run(self, world: World, endpoint: str) -> None:
        world.fail(Fault(kind=FaultKind.FORBIDDEN, method="pubsub.topics.publish"))
        run = guarded(endpoint)
        assert run.exit_code is ExitCode.CLOUD_FAILED
        assert run.troubles[0].startswith("Pub/Sub: pubsub.topics.publish: 403")
        assert "told" not in written(world)
        assert written(world)["last_run"] == 1795953600, "it did look"

    def test_one_of_two_is_better_than_none(self, world: World, endpoint: str) -> None:
        world.fail(Fault(kind=FaultKind.FORBIDDEN, method="pubsub.topics.publish"))
        run = guarded(endpoint, webhook=Webhook(name="HOOK", url=f"{endpoint}/webhook"))
        assert (run.exit_code, run.told) == (ExitCode.UNDECIDED, ("webhook",))

    def test_a_rate_limit_passes(self, world: World, endpoint: str) -> None:
        world.fail(
            Fault(kind=FaultKind.RATE_LIMITED, method="pubsub.topics.publish", times=2),
            Fault(kind=FaultKind.UNAVAILABLE, method="monitoring.timeSeries.create", times=2),
        )
        assert guarded(endpoint).exit_code is ExitCode.FINE

    def test_figures_that_cannot_be_written_are_a_trouble(self, world: World, endpoint: str) -> None:
        world.fail(Fault(kind=FaultKind.FORBIDDEN, method="monitoring.timeSeries.create"))
        run = guarded(endpoint)
        assert run.exit_code is ExitCode.UNDECIDED
        assert run.troubles[0].startswith("metrics: monitoring.timeSeries.create: 403")

    def test_without_an_address_nobody_is_told(self, world: World, endpoint: str) -> None:
        run = guarded(endpoint, topic="")
        assert (run.told, run.silent) == ((), "neither a topic nor a webhook is given")
        assert run.exit_code is ExitCode.FINE
        assert world.published == []


class TestApplying:
    def test_it_does_what_is_safe_on_what_is_its_own(self, world: World, endpoint: str) -> None:
        run = guarded(endpoint, apply=True)
        assert [(result.outcome, result.step.text) for result in run.report.results] == [
            (Outcome.DONE, "delete the node dev-node"),
            (Outcome.DONE, "resize to 0 machines the group dev-group"),
            (Outcome.DONE, "set the throughput of dev-llama to 400 MiB/s (it is 12,000)"),
        ]
        assert world.named(Part.DISKS, "dev-llama")["provisionedThroughput"] == "400"
        assert world.named(Part.GROUPS, "dev-group")["targetSize"] == 0
        assert world.items(Part.NODES) == []
        assert {disk["name"] for disk in world.items(Part.DISKS)} == {"dev-llama", "dev-old", "theirs"}
        assert world.named(Part.DISKS, "theirs")["provisionedThroughput"] == "12000"
        assert written(world)["expired_slices"] == 0
        assert written(world)["idle_dollars_per_month"] == 2960.0

    def test_the_second_run_does_nothing(self, world: World, endpoint: str, later: datetime.datetime) -> None:
        guarded(endpoint, apply=True)
        done = changes(world)
        assert done == dict.fromkeys(CHANGES, 1)
        world.now = later
        run = guarded(endpoint, later, apply=True)
        assert run.report.results == ()
        assert changes(world) == done

    def test_the_host_of_a_slice_of_one_is_stopped(self, world: World, endpoint: str) -> None:
        host(world, "dev-single", ttl="12h")
        host(world, "dev-young", ttl="90d")
        guarded(endpoint, apply=True)
        assert world.named(Part.INSTANCES, "dev-single")["status"] == "TERMINATED"
        assert world.named(Part.INSTANCES, "dev-young")["status"] == "RUNNING"
        assert world.named(Part.INSTANCES, "dev-reader")["status"] == "RUNNING"

    def test_what_is_protected_is_left_alone(self, world: World, endpoint: str) -> None:
        host(world, "dev-kept", ttl="12h", protect="true")
        run = guarded(endpoint, apply=True)
        assert world.named(Part.INSTANCES, "dev-kept")["status"] == "RUNNING"
        assert "it is labelled protect=true" in dict(run.report.refused)[link("instances", "dev-kept")]
        assert written(world)["expired_slices"] == 1

    def test_it_changes_nothing_without_being_let(self, world: World, endpoint: str) -> None:
        run = guarded(endpoint)
        assert run.report.results == ()
        assert changes(world) == {}
        assert len(list(run.intent.texts)) == 3

    def test_a_dry_run_changes_tells_and_writes_nothing(self, world: World, endpoint: str) -> None:
        run = guarded(endpoint, apply=True, dry_run=True)
        assert len(list(run.intent.texts)) == 3
        assert (changes(world), world.published, world.written) == ({}, [], [])
        assert run.exit_code is ExitCode.FINE

    def test_the_guard_of_another_stack_leaves_it_alone(self, world: World, endpoint: str) -> None:
        run = guarded(endpoint, apply=True, stack="prod")
        assert run.report.results == ()
        assert changes(world) == {}
        assert ("dev-llama", "it is of the stack dev, not of prod") in {
            (resource.rpartition("/")[2], why) for resource, why in run.report.refused
        }

    def test_nothing_is_done_in_a_half_seen_world(self, world: World, endpoint: str) -> None:
        world.fail(Fault(kind=FaultKind.FORBIDDEN, method="tpu.queuedResources.list"))
        run = guarded(endpoint, apply=True)
        assert changes(world) == {}
        assert run.exit_code is ExitCode.UNDECIDED
        assert written(world)["unseen_parts"] == 1
        assert documents(world)[-1]["missing"][0]["part"] == "tpu.queuedResources"

    @pytest.mark.parametrize("kind", [FaultKind.FORBIDDEN, FaultKind.TRUNCATED])
    @pytest.mark.parametrize("method", LISTS)
    def test_whatever_could_not_be_seen_it_keeps_its_hands_off(
        self, world: World, endpoint: str, method: str, kind: FaultKind
    ) -> None:
        if method == "storage.anywhereCaches.list":
            world.add(Part.BUCKETS, name="acme-tpu-dev-dev-models", labels=OURS)
        world.fail(Fault(kind=kind, method=method))
        run = guarded(endpoint, apply=True)
        assert changes(world) == {}
        assert run.exit_code is ExitCode.UNDECIDED
        assert written(world)["unseen_parts"] >= 1
        assert documents(world)[-1]["complete"] is False

    def test_a_step_that_fails_does_not_stop_the_others(self, world: World, endpoint: str) -> None:
        world.fail(Fault(kind=FaultKind.FORBIDDEN, method="tpu.nodes.delete"))
        run = guarded(endpoint, apply=True)
        assert [result.outcome for result in run.report.results] == [Outcome.FAILED, Outcome.DONE, Outcome.DONE]
        assert run.exit_code is ExitCode.UNDECIDED
        assert written(world)["expired_slices"] == 1


class TestRenewal:
    """The owner gives a slice more time while the guard is still looking at the rest of the project."""

    @pytest.fixture
    def relabelled(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[World, Part, str, dict[str, str]], None]:
        """Changes the labels of something as soon as the record is whole."""

        def change(world: World, part: Part, name: str, labels: dict[str, str]) -> None:
            def collected(*args: Any, **more: Any) -> Any:
                found = collect(*args, **more)
                world.named(part, name)["labels"].update(labels)
                return found

            monkeypatch.setattr(running, "collect", collected)

        return change

    @pytest.mark.parametrize(
        ("part", "name", "labels", "slice"),
        [
            (Part.NODES, "dev-node", {"ttl": "30d"}, "dev-node"),
            (Part.NODES, "dev-node", {"protect": "true"}, "dev-node"),
            (Part.INSTANCES, "dev-group-0001", {"ttl": "30d"}, "dev-group"),
            (Part.INSTANCES, "dev-single", {"ttl": "30d"}, "dev-single"),
        ],
    )
    def test_what_was_given_more_time_goes_on(
        self, world: World, endpoint: str, relabelled: Any, part: Part, name: str, labels: dict[str, str], slice: str
    ) -> None:
        host(world, "dev-single", ttl="3d", slice="single")
        relabelled(world, part, name, labels)
        run = guarded(endpoint, apply=True)
        refused = [each for each in run.report.results if each.outcome is Outcome.CHANGED]
        assert [last(each.step.resource) for each in refused] == [slice]
        assert "labels is" in refused[0].why
        # The two others had no more time, and the volume nobody who reads it.
        assert sum(each.outcome is Outcome.DONE for each in run.report.results) == 3


@pytest.mark.parametrize(("minutes", "stale"), [(120, 1), (5, 0)])
def test_a_run_that_writes_no_heartbeat_any_more(world: World, endpoint: str, minutes: int, stale: int) -> None:
    host(world, "dev-trains", run="r7")
    bucket = "acme-tpu-dev-dev-checkpoints"
    world.add(Part.BUCKETS, name=bucket, labels=OURS)
    beat = {"run": "r7", "attempt": 1, "step": 400, "time": f"now-{minutes}m"}
    name, updated = "runs/r7/heartbeat.json", f"now-{minutes}m"
    world.add(Part.HEARTBEATS, bucket=bucket, name=name, updated=updated, content=beat, size="80")
    run = guarded(endpoint)
    assert written(world)["stale_heartbeats"] == stale
    (found,) = (each for each in run.audit.verdicts if each.name == "dev-trains")
    assert found.kind is (VerdictKind.IDLE_SLICE if stale else VerdictKind.IN_USE)


class TestSchedule:
    """Sunday the 29th at noon is a night of the office; Monday at noon is not."""

    LABEL = "mon-fri_0800-1800_utc_1200"

    @pytest.fixture
    def scheduled(self, world: World) -> World:
        labels = {**OURS, "role": "model", "throughput-schedule": self.LABEL}
        volume(world, "dev-clock", labels=labels, provisionedThroughput="1200", users=["dev-reader"])
        return world

    def test_at_night_the_floor_by_day_what_was_asked_for(self, scheduled: World, endpoint: str) -> None:
        disk = scheduled.named(Part.DISKS, "dev-clock")
        guarded(endpoint, apply=True)
        assert disk["provisionedThroughput"] == "400"
        monday = datetime.datetime(2026, 11, 30, 12, 7, tzinfo=datetime.UTC)
        scheduled.now = monday
        guarded(endpoint, monday, apply=True)
        assert disk["provisionedThroughput"] == "1200"
        updates = scheduled.counts()["compute.disks.update"]
        guarded(endpoint, monday + HOUR, apply=True)
        assert scheduled.counts()["compute.disks.update"] == updates

    def test_a_schedule_that_nobody_can_read_is_told_and_left_alone(self, world: World, endpoint: str) -> None:
        labels = {**OURS, "throughput-schedule": "weekdays_0800-1800_utc_1200"}
        volume(world, "dev-clock", labels=labels)
        run = guarded(endpoint, apply=True)
        assert "disks/dev-clock: label throughput-schedule" in run.troubles[0]
        assert world.named(Part.DISKS, "dev-clock")["provisionedThroughput"] == "12000"

    def test_a_schedule_of_what_has_no_throughput_is_told(self, world: World, endpoint: str) -> None:
        labels = {**OURS, "throughput-schedule": self.LABEL}
        world.add(Part.DISKS, name="dev-boot", zone="us-central1-b", type="pd-balanced", sizeGb="50", labels=labels)
        run = guarded(endpoint, apply=True)
        assert "disks/dev-boot: label throughput-schedule: it has no throughput to set" in run.troubles[0]

    def test_a_volume_of_the_same_name_elsewhere_has_no_clock(self, scheduled: World, endpoint: str) -> None:
        """One model in two zones, one of them by the clock. The other is not read, and may be lowered as any other."""
        volume(scheduled, "dev-clock", labels=OURS, zone="us-east1-d", provisionedThroughput="900", users=["dev-far"])
        labels = {**OURS, "role": "head"}
        attached = [{"source": "dev-far-boot", "boot": True}, {"source": "dev-clock", "mode": "READ_ONLY"}]
        scheduled.add(
            Part.INSTANCES,
            name="dev-far",
            zone="us-east1-d",
            machineType="e2-standard-4",
            labels=labels,
            disks=attached,
        )
        run = guarded(endpoint, apply=True)
        there = {
            disk["zone"].rpartition("/")[2]: disk for disk in scheduled.items(Part.DISKS) if disk["name"] == "dev-clock"
        }
        assert {zone: disk["provisionedThroughput"] for zone, disk in there.items()} == {
            "us-central1-b": "400",
            "us-east1-d": "900",
        }
        assert run.troubles == ()

    def test_the_clock_of_another_stack_is_not_ours(self, world: World, endpoint: str) -> None:
        labels = {**OURS, "env": "prod", "throughput-schedule": self.LABEL}
        volume(world, "prod-clock", labels=labels, provisionedThroughput="1200")
        guarded(endpoint, apply=True)
        assert world.named(Part.DISKS, "prod-clock")["provisionedThroughput"] == "1200"


def test_where_nothing_can_be_read_nothing_is_written(world: World, endpoint: str) -> None:
    """So that the alert on a silent guard fires."""
    world.fail(Fault(kind=FaultKind.FORBIDDEN))
    with pytest.raises(CloudError, match="nothing of project acme-tpu-dev could be read"):
        guarded(endpoint)
    assert (world.published, world.written) == ([], [])


def test_a_project_in_which_nothing_is_lost(world: World, endpoint: str) -> None:
    for part in (Part.DISKS, Part.INSTANCES, Part.NODES, Part.GROUPS):
        world.inventory[part].clear()
    run = guarded(endpoint)
    assert (run.silent, run.exit_code) == ("nothing was found", ExitCode.FINE)
    assert written(world)["idle_dollars_per_month"] == 0.0
    assert world.published == []
