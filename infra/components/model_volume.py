"""A model on Hyperdisk ML: filled once from its bucket, read by every serving host, never changed.

The chain, each link waiting for the one before it:

1. job `fill`: a Cloud Run job that runs as soon as it exists and is ready only when that execution has succeeded
   (`run_execution_token`). It makes a staging disk and a hydrator VM, which copies the model and verifies its digests;
2. the snapshot of the staging disk, in the region of the bucket;
3. job `clean`: waits until the snapshot is READY, which is later than created, and removes the staging disk. It may
   try again by itself, since it can run twice;
4. one Hyperdisk ML volume a zone from the snapshot, READ_ONLY_MANY from the start: a volume of this type cannot be
   made writable from a snapshot, and cannot be written by many.

A volume is named by the digest of the model's manifest, in Pulumi as in the cloud. A new version is therefore a new
chain beside the old one: Pulumi makes the new volumes, moves the readers, and deletes what is no longer in the program
at the very end. That is why nothing here is protected: the bytes live in the bucket, which is.

When a job fails, the `up` fails, and a fill has removed what it made. The provider keeps the failed job, and Pulumi
keeps with it that it was made with errors. Left to itself Pulumi would "retry" it by an update without a difference,
which does nothing and succeeds; so a job that was made with errors is replaced (`MADE_WITH_ERRORS`): the next `up`
deletes it, makes it again from the settings as they are then, and so runs it again. That holds for every failure, and
for `clean` as for `fill`; a job that has succeeded is never touched.

A job is the record of one execution, and nothing in it ever changes. What else changes in the stack file, such as a
label, waits for the next job: an update would send the token again, which Google refuses or obeys, and a volume that
exists would be filled once more.

Two things can come between. A `pulumi refresh` (or `up --refresh`) makes Pulumi forget the errors; then a warning says
what job has failed and how to replace it by hand. And an `up` that is killed, or interrupted twice, while a job runs
leaves a job of which Pulumi knows nothing but that it was about to make it. Its execution goes on; the next `up` is
refused by its name, which is what keeps two fills from one disk. Cancel the execution (the script then removes what it
made), delete the job, then `up`: a fill first removes what another has left.
Source: https://www.pulumi.com/registry/packages/gcp/api-docs/cloudrunv2/job/,
https://cloud.google.com/compute/docs/disks/hyperdisks,
https://github.com/GoogleCloudPlatform/magic-modules/blob/main/mmv1/products/cloudrunv2/Job.yaml (a job whose creation
failed is kept), https://github.com/pulumi/pulumi/issues/21458 (a retry without a difference),
https://github.com/pulumi/pulumi/pull/7226 and pkg/resource/deploy/step_generator.go (a replacement instead of it),
https://github.com/pulumi/pulumi/issues/17949 (a refresh that forgets) and
https://github.com/hashicorp/terraform-provider-google/issues/24451 (a token that is sent again)
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

import pulumi
import pulumi_gcp as gcp

from infra.components.site import Site
from infra.components.slice_parts import ModelMount
from infra.plan import hydration
from infra.plan.disks import ACCESS_MODE, MODEL_VOLUME_TYPE
from infra.plan.names import (
    DIGEST_SHOWN,
    cloud_name,
    snapshot_name,
    staging_disk_name,
    volume_name,
)
from policies.estimate import fill_environment
from policies.guard.labels import SCHEDULE_LABEL
from policies.hardware.zones import region_of

JOB_CPU: Final = "1"
JOB_MEMORY: Final = "1Gi"
"""What the gcloud CLI needs; the copying is done by the hydrator."""
CLEAN_RETRIES: Final = 3
RECORDED: Final = ["labels", "runExecutionToken", "template"]
"""Inputs of a job that stay as they were when it ran."""
MADE_WITH_ERRORS: Final = "#initerror"
"""What Pulumi's engine calls, among the properties that differ, that the creation of a resource has failed."""
GRACE_SECONDS: Final = 600
"""A job's own script stops first and cleans up; Cloud Run stops it so much later."""
DISK_MINUTES: Final = 60
"""Pulumi waits so long for a snapshot, and for a volume made from one."""
SIZE_LABEL: Final = "spotrail-size-gib"
"""Label of the snapshot: upper bound of what it bills, known before it exists."""


@final
@dataclass(frozen=True, kw_only=True)
class JobScript:
    """A script for the gcloud image, and how long it may take."""

    text: str
    timeout_seconds: int
    """Of the script itself."""


@final
@dataclass(frozen=True, kw_only=True)
class Staging:
    """What a fill uses and removes: shown in the job's environment, so that its price is known before it runs."""

    disk_type: str
    iops: int
    throughput: int
    """MiB/s."""
    hydrator_machine: str
    hydrator_boot_type: str
    hydrator_boot_gib: int
    zone: str


@final
@dataclass(frozen=True, kw_only=True)
class ModelVolumeArgs:
    """One version of a model, and where it is read."""

    site: Site
    model: str
    """Name of the model."""
    manifest_sha256: str
    """Digest of its manifest; it names everything here."""
    size_gib: int
    """GiB of the volumes, of the staging disk, and of the snapshot at most."""
    throughput: int
    """Provisioned MiB/s of each volume. Never left out: Google's default is 24 a GiB."""
    schedule: str
    """Value of the label by which the guard knows when the volumes have `throughput`; empty: always."""
    zones: tuple[str, ...]
    """One volume each."""
    staging: Staging
    image: str
    """Of both jobs."""
    service_account: pulumi.Input[str]
    """E-mail of the account that the jobs run as."""
    fill: JobScript
    clean: JobScript

    @property
    def version(self) -> str:
        """Model and first digits of the digest: `llama-3f9a1b2c`."""
        return volume_name(self.model, self.manifest_sha256)


@final
class ModelVolume(pulumi.ComponentResource):
    """The chain from `fill` to the volumes."""

    fill: gcp.cloudrunv2.Job
    snapshot: gcp.compute.Snapshot
    clean: gcp.cloudrunv2.Job
    disks: Mapping[str, gcp.compute.Disk]
    """By zone."""

    def __init__(self, name: str, args: ModelVolumeArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("spotrail:infra:ModelVolume", name, None, opts)
        self._args = args
        self.fill = self._job("fill", args.fill, retries=0, after=None)
        self.snapshot = self._snapshot()
        self.clean = self._job("clean", args.clean, retries=CLEAN_RETRIES, after=self.snapshot)
        self.disks = {zone: self._disk(zone) for zone in args.zones}
        self.register_outputs(
            {"snapshot": self.snapshot.id, "volumes": {zone: disk.id for zone, disk in self.disks.items()}}
        )

    def mount_in(self, zone: str) -> ModelMount:
        """What a host in `zone` attaches. Raises KeyError where the zone has no volume."""
        disk = self.disks[zone]
        return ModelMount(disk_id=disk.id, disk_name=disk.name, device_name=self._disk_name(zone))

    @property
    def _by_clock(self) -> Mapping[str, str]:
        return {SCHEDULE_LABEL: self._args.schedule} if self._args.schedule else {}

    def _disk_name(self, zone: str) -> str:
        return disk_name(self._args.site.env, self._args.model, self._args.manifest_sha256, zone)

    def _snapshot(self) -> gcp.compute.Snapshot:
        args = self._args
        return gcp.compute.Snapshot(
            args.version,
            name=snapshot_name(args.site.env, args.model, args.manifest_sha256),
            source_disk=staging_disk_name(args.site.env, args.model, args.manifest_sha256),
            zone=args.staging.zone,
            storage_locations=[region_of(args.staging.zone)],
            labels=args.site.labels_with(role="model", **{SIZE_LABEL: str(args.size_gib)}),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[self.fill], custom_timeouts=_minutes(DISK_MINUTES)),
        )

    def _disk(self, zone: str) -> gcp.compute.Disk:
        args = self._args
        return gcp.compute.Disk(
            volume_name(args.model, args.manifest_sha256, zone),
            name=self._disk_name(zone),
            zone=zone,
            type=MODEL_VOLUME_TYPE,
            size=args.size_gib,
            provisioned_throughput=args.throughput,
            access_mode=ACCESS_MODE,
            snapshot=self.snapshot.id,
            labels=args.site.labels_with(role="model", **self._by_clock),
            # A snapshot that is renamed or removed one day must not replace a volume that is being read, and what the
            # guard sets by the clock must not be set back.
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[self.clean],
                ignore_changes=["snapshot", *(["provisionedThroughput"] if args.schedule else [])],
                custom_timeouts=_minutes(DISK_MINUTES),
            ),
        )

    def _job(self, step: str, script: JobScript, *, retries: int, after: pulumi.Resource | None) -> gcp.cloudrunv2.Job:
        args = self._args
        seconds = script.timeout_seconds + GRACE_SECONDS
        labels = args.site.labels_with(role="hydrate")
        task = gcp.cloudrunv2.JobTemplateTemplateArgs(
            containers=[self._container(script)],
            service_account=args.service_account,
            max_retries=retries,
            timeout=f"{seconds}s",
        )
        job = gcp.cloudrunv2.Job(
            f"{args.version}-{step}",
            name=cloud_name(args.site.env, args.version, step),
            location=args.site.region,
            template=gcp.cloudrunv2.JobTemplateArgs(template=task, task_count=1, parallelism=1, labels=labels),
            run_execution_token=_new_token(args.manifest_sha256),
            deletion_protection=False,
            labels=labels,
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[after] if after else None,
                delete_before_replace=True,
                ignore_changes=RECORDED,
                replace_on_changes=[MADE_WITH_ERRORS],
                custom_timeouts=_minutes((retries + 1) * seconds // 60 + 10),
            ),
        )
        pulumi.Output.all(job.name, job.urn, job.terminal_conditions).apply(lambda known: _warn(job, *known))
        return job

    def _container(self, script: JobScript) -> gcp.cloudrunv2.JobTemplateTemplateContainerArgs:
        environment = staging_environment(self._args.staging, self._args.size_gib)
        return gcp.cloudrunv2.JobTemplateTemplateContainerArgs(
            image=self._args.image,
            # In `args` and not in `commands`: there Cloud Run would expand `$(NAME)` itself.
            commands=["bash", "-c"],
            args=[script.text],
            envs=[
                gcp.cloudrunv2.JobTemplateTemplateContainerEnvArgs(name=key, value=value)
                for key, value in environment.items()
            ],
            resources=gcp.cloudrunv2.JobTemplateTemplateContainerResourcesArgs(
                limits={"cpu": JOB_CPU, "memory": JOB_MEMORY}
            ),
        )


def disk_name(env: str, model: str, digest: str, zone: str) -> str:
    """Name in the cloud of the volume of one zone, and its device name on every host."""
    return cloud_name(env, volume_name(model, digest, zone))


def staging_environment(staging: Staging, size_gib: int) -> Mapping[str, str]:
    """Environment of the jobs: what a fill makes, for the log and for the one-off price."""
    return {
        fill_environment.STAGING_TYPE: staging.disk_type,
        fill_environment.STAGING_GIB: str(size_gib),
        fill_environment.STAGING_IOPS: str(staging.iops),
        fill_environment.STAGING_THROUGHPUT: str(staging.throughput),
        fill_environment.MACHINE: staging.hydrator_machine,
        fill_environment.BOOT_TYPE: staging.hydrator_boot_type,
        fill_environment.BOOT_GIB: str(staging.hydrator_boot_gib),
        fill_environment.ZONE: staging.zone,
    }


def _new_token(digest: str) -> str:
    """End of the name of an execution: another with every `up`, since Google may still know the execution of a job that
    has just been deleted. A preview runs nothing, and shows the same each time."""
    return digest[:DIGEST_SHOWN] if pulumi.runtime.is_dry_run() else secrets.token_hex(DIGEST_SHOWN // 2)


def _warn(job: gcp.cloudrunv2.Job, name: str, urn: str, conditions: Sequence[Mapping[str, str]] | None) -> None:
    """Say of a job that Pulumi takes for a good one that it has failed, where it has."""
    told = [(one.get("state"), one.get("message")) for one in conditions or ()]
    if advice := hydration.forgotten_failure(name, urn, told):
        pulumi.log.warn(advice, job)


def _minutes(minutes: int) -> pulumi.CustomTimeouts:
    return pulumi.CustomTimeouts(create=f"{minutes}m", update=f"{minutes}m", delete=f"{DISK_MINUTES}m")
