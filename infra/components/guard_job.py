"""The guard job: an audit of the project every hour, on Cloud Run, by an account that can do nothing else.

What it may read is what an audit reads. What it may change is nothing, unless `apply` is on; then what lowers
throughput and what ends a slice: no call that deletes a disk, a snapshot or an object. Google has no condition on
labels for these calls, so the role holds for the project; that only things of this stack are touched is the guard's
own doing.
Cloud Scheduler starts the job as an account of its own, which may run this job and see nothing.
The URL of a webhook never passes through Pulumi: a secret holds it, made by hand, and the job gets it from there.
Source: https://cloud.google.com/run/docs/execute/jobs-on-schedule and
https://cloud.google.com/iam/docs/understanding-roles
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

import pulumi
import pulumi_gcp as gcp

from infra.components.site import Site
from infra.plan.names import cloud_name

JOB: Final = "guard"
ACCOUNT: Final = "guard"
CALLER: Final = "guard-run"
"""Ids of the two accounts, behind the name of the stack."""
CPU: Final = "1"
MEMORY: Final = "1Gi"
"""Twice what an audit of ten thousand volumes takes."""
TIMEOUT: Final = "1800s"
MINUTE: Final = 7
"""Of the hour: at the full hour everybody's jobs start."""
WEBHOOK_VARIABLE: Final = "SPOTRAIL_WEBHOOK"
READS: Final[Mapping[str, str]] = {
    "roles/compute.viewer": "disks, snapshots, images, instances, groups, addresses, pools, routers",
    "roles/monitoring.viewer": "what is read and written, and what it told itself last time",
    "roles/monitoring.metricWriter": "its own metrics",
    "roles/tpu.viewer": "nodes and queued resources",
}
BUCKET_PERMISSIONS: Final[Mapping[str, str]] = {
    "storage.anywhereCaches.list": "caches that nobody hits",
    "storage.buckets.get": "lifecycle, versions and soft delete",
    "storage.buckets.list": "which buckets there are",
    "storage.objects.list": "where heartbeats lie, in the buckets of all stacks of the project",
}
HEARTBEATS: Final = 'resource.type == "storage.googleapis.com/Object" && resource.name.endsWith("/heartbeat.json")'
"""The only objects whose content it may read."""
APPLY_PERMISSIONS: Final[Mapping[str, str]] = {
    "compute.disks.update": "lower throughput that is not used",
    "compute.instanceGroupManagers.update": "resize the group of a slice past its ttl to no machine",
    "compute.instances.stop": "stop the host of a slice past its ttl",
    "tpu.nodes.delete": "delete the node of a slice past its ttl",
}
"""What the guard calls where `apply` is on, and why."""


@final
@dataclass(frozen=True, kw_only=True)
class GuardTerms:
    """How the guard runs."""

    image: str
    """Full reference."""
    every_hours: int
    window_days: int
    apply: bool
    webhook: str
    """Name of the secret with the URL; empty: none."""


@final
class GuardJob:
    """Makes the job, its schedule, its accounts and its topic."""

    def __init__(
        self,
        site: Site,
        terms: GuardTerms,
        opts: pulumi.ResourceOptions,
    ) -> None:
        self._site, self._terms, self._opts = site, terms, opts
        self.topic = gcp.pubsub.Topic(
            "findings", name=cloud_name(site.env, "findings"), labels=site.labels_with(role="findings"), opts=opts
        )
        self._account, self._caller = self._made(ACCOUNT), self._made(CALLER)
        self._grant()
        self.job = self._job()
        self._schedule()

    def _made(self, name: str) -> gcp.serviceaccount.Account:
        return gcp.serviceaccount.Account(
            name,
            account_id=cloud_name(self._site.env, name),
            display_name=f"spotrail {self._site.env} {name}",
            opts=self._opts,
        )

    def _grant(self) -> None:
        member = self._account.member
        for role in READS:
            self._on_project(f"guard-{role.removeprefix('roles/')}", role)
        self._custom("reads", "look at buckets", BUCKET_PERMISSIONS)
        if self._terms.apply:
            self._custom("applies", "lower throughput, end slices", APPLY_PERMISSIONS)
        gcp.projects.IAMMember(
            "guard-heartbeats",
            project=self._site.project,
            role="roles/storage.objectViewer",
            member=member,
            condition=gcp.projects.IAMMemberConditionArgs(title="heartbeats of training runs", expression=HEARTBEATS),
            opts=self._opts,
        )
        gcp.pubsub.TopicIAMMember(
            "guard-publishes", topic=self.topic.id, role="roles/pubsub.publisher", member=member, opts=self._opts
        )
        if self._terms.webhook:
            gcp.secretmanager.SecretIamMember(
                "guard-webhook",
                project=self._site.project,
                secret_id=self._terms.webhook,
                role="roles/secretmanager.secretAccessor",
                member=member,
                opts=self._opts,
            )

    def _custom(self, what: str, title: str, permissions: Mapping[str, str]) -> None:
        site = self._site
        role = gcp.projects.IAMCustomRole(
            f"guard-{what}",
            role_id=f"spotrail_{site.env.replace('-', '_')}_guard_{what}",
            title=f"spotrail {site.env}: {title}",
            description="; ".join(permissions.values()),
            permissions=list(permissions),
            project=site.project,
            opts=self._opts,
        )
        self._on_project(
            f"guard-{what}-on-project", pulumi.Output.concat("projects/", site.project, "/roles/", role.role_id)
        )

    def _on_project(self, name: str, role: pulumi.Input[str]) -> None:
        gcp.projects.IAMMember(
            name, project=self._site.project, role=role, member=self._account.member, opts=self._opts
        )

    def _job(self) -> gcp.cloudrunv2.Job:
        site = self._site
        labels = site.labels_with(role="guard")
        task = gcp.cloudrunv2.JobTemplateTemplateArgs(
            containers=[
                gcp.cloudrunv2.JobTemplateTemplateContainerArgs(
                    image=self._terms.image,
                    args=list(self._arguments()),
                    envs=list(self._environment()) or None,
                    resources=gcp.cloudrunv2.JobTemplateTemplateContainerResourcesArgs(
                        limits={"cpu": CPU, "memory": MEMORY}
                    ),
                )
            ],
            service_account=self._account.email,
            # The next run comes within hours; a run that failed halfway is finished by it.
            max_retries=0,
            timeout=TIMEOUT,
        )
        return gcp.cloudrunv2.Job(
            "guard",
            name=cloud_name(site.env, JOB),
            location=site.region,
            template=gcp.cloudrunv2.JobTemplateArgs(template=task, task_count=1, parallelism=1, labels=labels),
            deletion_protection=False,
            labels=labels,
            opts=self._opts,
        )

    def _arguments(self) -> Iterator[str]:
        """Behind the entry point of the image, which is `spotrail guard`. Named by text, so that a preview shows it."""
        site, terms = self._site, self._terms
        yield from ("--project", site.project, "--stack", site.env, "--window", f"{terms.window_days}d")
        yield from ("--topic", f"projects/{site.project}/topics/{cloud_name(site.env, 'findings')}")
        if terms.webhook:
            yield from ("--webhook-env", WEBHOOK_VARIABLE)
        if terms.apply:
            yield "--apply"

    def _environment(self) -> Iterator[gcp.cloudrunv2.JobTemplateTemplateContainerEnvArgs]:
        if self._terms.webhook:
            held = gcp.cloudrunv2.JobTemplateTemplateContainerEnvValueSourceSecretKeyRefArgs(
                secret=self._terms.webhook, version="latest"
            )
            yield gcp.cloudrunv2.JobTemplateTemplateContainerEnvArgs(
                name=WEBHOOK_VARIABLE,
                value_source=gcp.cloudrunv2.JobTemplateTemplateContainerEnvValueSourceArgs(secret_key_ref=held),
            )

    def _schedule(self) -> None:
        site = self._site
        gcp.cloudrunv2.JobIamMember(
            "guard-is-run",
            project=site.project,
            location=site.region,
            name=self.job.name,
            role="roles/run.invoker",
            member=self._caller.member,
            opts=self._opts,
        )
        gcp.cloudscheduler.Job(
            "guard-schedule",
            name=cloud_name(site.env, JOB),
            region=site.region,
            description=f"Runs the guard of {site.env} every {self._terms.every_hours} h",
            schedule=f"{MINUTE} */{self._terms.every_hours} * * *",
            time_zone="Etc/UTC",
            http_target=gcp.cloudscheduler.JobHttpTargetArgs(
                uri=pulumi.Output.concat(
                    f"https://run.googleapis.com/v2/projects/{site.project}/locations/{site.region}/jobs/",
                    self.job.name,
                    ":run",
                ),
                http_method="POST",
                oauth_token=gcp.cloudscheduler.JobHttpTargetOauthTokenArgs(service_account_email=self._caller.email),
            ),
            opts=self._opts,
        )
