"""Who may do what: one service account for each kind of machine, with no more than its work needs.

Nothing here is a basic role, and nothing is granted on all buckets of the project: a bucket role hangs on one bucket.
The default service account of Compute Engine, which is Editor of the project, is used nowhere.
A role takes up to seven minutes to reach every server of Google's; the job scripts wait for it.
Source: https://cloud.google.com/iam/docs/understanding-roles
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

import pulumi
import pulumi_gcp as gcp

from infra.components.buckets import CHECKPOINTS, DATASETS, MODELS
from infra.components.site import Site
from infra.plan.names import cloud_name


@final
class Account(enum.Enum):
    """The service accounts of a stack."""

    HEAD = "head"
    """The Ray head."""
    WORKER = "worker"
    """TPU hosts that train."""
    SERVER = "server"
    """TPU hosts that serve."""
    HYDRATOR = "hydrator"
    """The VM that copies a model onto a staging disk."""
    PIPELINE = "pipeline"
    """The Cloud Run jobs that create and delete the staging disk and the hydrator."""


MACHINES: Final = (Account.HEAD, Account.WORKER, Account.SERVER, Account.HYDRATOR)
"""The accounts that virtual machines run as; jobs log by themselves."""
MACHINE_ROLES: Final = ("roles/logging.logWriter", "roles/monitoring.metricWriter")
"""What every machine may do in the project: write its own logs and metrics."""
BUCKET_ROLES: Final[Mapping[Account, Mapping[str, tuple[str, ...]]]] = {
    # The driver of a Ray job runs on the head: it looks for the checkpoint to resume from, and at the data's manifest.
    Account.HEAD: {CHECKPOINTS: ("roles/storage.objectViewer",), DATASETS: ("roles/storage.objectViewer",)},
    # Trainers write, rotate and delete checkpoints. They publish models and can never overwrite one: that would
    # need the right to delete.
    Account.WORKER: {
        CHECKPOINTS: ("roles/storage.objectUser",),
        DATASETS: ("roles/storage.objectViewer",),
        MODELS: ("roles/storage.objectCreator", "roles/storage.objectViewer"),
    },
    Account.SERVER: {MODELS: ("roles/storage.objectViewer",)},
    Account.HYDRATOR: {MODELS: ("roles/storage.objectViewer",)},
}
PIPELINE_PERMISSIONS: Final[Mapping[str, str]] = {
    "compute.disks.create": "the staging disk, and the hydrator's boot disk",
    "compute.disks.delete": "the staging disk after the snapshot, or after a failure",
    "compute.disks.get": "whether a disk is left from an earlier try, and whether anything still uses it",
    "compute.disks.setLabels": "owner, env and ttl on what bills",
    "compute.disks.use": "attach the staging disk to the hydrator",
    "compute.images.useReadOnly": "the hydrator's boot image, where it is the project's own; Google's are open to all",
    "compute.instances.create": "the hydrator",
    "compute.instances.delete": "the hydrator when it has reported, or failed",
    "compute.instances.get": "whether the hydrator lives",
    "compute.instances.getGuestAttributes": "what the hydrator reports",
    "compute.instances.getSerialPortOutput": "why a hydrator failed, for the job's log",
    "compute.instances.setLabels": "owner, env and ttl on what bills",
    "compute.instances.setMetadata": "the hydrator's startup script",
    "compute.instances.setServiceAccount": "run the hydrator as its own account",
    "compute.instances.setTags": "the hydrator's network tag",
    "compute.snapshots.get": "whether the snapshot is READY before the staging disk goes",
    "compute.subnetworks.use": "a network interface without an external address",
    "compute.zoneOperations.get": "wait for all of these",
    "compute.zones.get": "gcloud looks whether the zone is still in service",
}
"""What the jobs of the model volume call, and why."""
CI_ROLES: Final[Mapping[str, str]] = {
    "roles/artifactregistry.reader": "repositories",
    "roles/cloudscheduler.viewer": "the schedule of the guard",
    "roles/compute.viewer": "networks, disks, machines and groups",
    "roles/iam.securityReviewer": "accounts, roles and bindings, those of buckets too",
    "roles/monitoring.viewer": "alert policies, channels and the dashboard",
    "roles/pubsub.viewer": "the topics of the budget and the guard",
    "roles/run.viewer": "the jobs of the model volume and the guard",
    "roles/serviceusage.serviceUsageConsumer": "count the calls of the provider against the project",
    "roles/storage.bucketViewer": "buckets and their rules, never an object",
    "roles/tpu.viewer": "nodes of the Cloud TPU API",
}
"""What a `pulumi preview --refresh` reads. The state bucket and its key are granted where they are made: first day."""
CI_ACCOUNT: Final = "ci-preview"
"""Id of the account of workflows, behind the name of the stack; Google takes no id of less than 6 characters."""
GITHUB_ISSUER: Final = "https://token.actions.githubusercontent.com"


@final
@dataclass(frozen=True, kw_only=True)
class IdentityArgs:
    """For whom accounts are made."""

    site: Site
    buckets: Mapping[str, pulumi.Input[str]]
    """Names of the buckets by purpose."""
    ci_repository: str = ""
    """`owner/name` on GitHub whose workflows may preview the stack; empty: none."""


@final
class Identity(pulumi.ComponentResource):
    """The service accounts and all that is granted to them."""

    accounts: Mapping[Account, gcp.serviceaccount.Account]
    ci_account: pulumi.Output[str] | None
    """E-mail of the account that workflows act as."""
    ci_provider: pulumi.Output[str] | None
    """Name of the identity provider that workflows authenticate with."""

    def __init__(self, name: str, args: IdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("spotrail:infra:Identity", name, None, opts)
        self._args = args
        self.accounts = {account: self._account(account) for account in Account}
        for account in MACHINES:
            for role in MACHINE_ROLES:
                self._grant_on_project(account, role)
        for account, by_bucket in BUCKET_ROLES.items():
            for bucket, roles in by_bucket.items():
                for role in roles:
                    self._grant_on_bucket(account, bucket, role)
        self._grant_pipeline()
        self.ci_account, self.ci_provider = self._federate() if args.ci_repository else (None, None)
        self.register_outputs(
            {
                "accounts": {account.value: made.email for account, made in self.accounts.items()},
                "ci_account": self.ci_account,
                "ci_provider": self.ci_provider,
            }
        )

    def email(self, account: Account) -> pulumi.Output[str]:
        """E-mail of `account`; whoever uses it waits for the account."""
        return self.accounts[account].email

    def _account(self, account: Account) -> gcp.serviceaccount.Account:
        return gcp.serviceaccount.Account(
            account.value,
            account_id=cloud_name(self._args.site.env, account.value),
            display_name=f"spotrail {self._args.site.env} {account.value}",
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _grant_on_project(self, account: Account, role: str) -> None:
        gcp.projects.IAMMember(
            f"{account.value}-{_short(role)}",
            project=self._args.site.project,
            role=role,
            member=self.accounts[account].member,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _grant_on_bucket(self, account: Account, bucket: str, role: str) -> None:
        gcp.storage.BucketIAMMember(
            f"{account.value}-{bucket}-{_short(role)}",
            bucket=self._args.buckets[bucket],
            role=role,
            member=self.accounts[account].member,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _grant_pipeline(self) -> None:
        site = self._args.site
        role = gcp.projects.IAMCustomRole(
            "pipeline-role",
            role_id=f"spotrail_{site.env.replace('-', '_')}_pipeline",
            title=f"spotrail {site.env}: fill model volumes",
            description="Create and delete the staging disk and the hydrator of a model volume",
            permissions=list(PIPELINE_PERMISSIONS),
            project=site.project,
            opts=pulumi.ResourceOptions(parent=self),
        )
        gcp.projects.IAMMember(
            "pipeline-on-project",
            project=site.project,
            # Its full name, built here so that a preview can show it.
            role=pulumi.Output.concat("projects/", site.project, "/roles/", role.role_id),
            member=self.accounts[Account.PIPELINE].member,
            opts=pulumi.ResourceOptions(parent=self),
        )
        gcp.serviceaccount.IAMMember(
            "pipeline-as-hydrator",
            service_account_id=self.accounts[Account.HYDRATOR].name,
            role="roles/iam.serviceAccountUser",
            member=self.accounts[Account.PIPELINE].member,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _federate(self) -> tuple[pulumi.Output[str], pulumi.Output[str]]:
        """Let the workflows of one repository act as an account that can look at everything and change nothing.

        No key exists that could leak: a workflow shows GitHub's token, and the condition compares its repository.
        A pool that is deleted keeps its id for thirty days: who destroys such a stack and wants it back before that has
        to call `gcloud iam workload-identity-pools undelete` and `pulumi import` first.
        Source: https://cloud.google.com/iam/docs/workload-identity-federation-with-deployment-pipelines
        """
        site, repository = self._args.site, self._args.ci_repository
        pool = gcp.iam.WorkloadIdentityPool(
            "ci-pool",
            workload_identity_pool_id=cloud_name(site.env, "github"),
            display_name=cloud_name(site.env, "github"),
            project=site.project,
            opts=pulumi.ResourceOptions(parent=self),
        )
        provider = gcp.iam.WorkloadIdentityPoolProvider(
            "ci-provider",
            workload_identity_pool_id=pool.workload_identity_pool_id,
            workload_identity_pool_provider_id="github",
            attribute_mapping={"google.subject": "assertion.sub", "attribute.repository": "assertion.repository"},
            attribute_condition=f"assertion.repository == '{repository}'",
            oidc=gcp.iam.WorkloadIdentityPoolProviderOidcArgs(issuer_uri=GITHUB_ISSUER),
            project=site.project,
            opts=pulumi.ResourceOptions(parent=self),
        )
        account = gcp.serviceaccount.Account(
            "ci",
            account_id=cloud_name(site.env, CI_ACCOUNT),
            display_name=f"spotrail {site.env} previews of {repository}",
            opts=pulumi.ResourceOptions(parent=self),
        )
        gcp.serviceaccount.IAMMember(
            "ci-from-repository",
            service_account_id=account.name,
            role="roles/iam.workloadIdentityUser",
            member=pulumi.Output.concat(
                "principalSet://iam.googleapis.com/", pool.name, "/attribute.repository/", repository
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
        for role in CI_ROLES:
            gcp.projects.IAMMember(
                f"ci-{_short(role)}",
                project=site.project,
                role=role,
                member=account.member,
                opts=pulumi.ResourceOptions(parent=self),
            )
        return account.email, provider.name


def email_of(account: Account, site: Site) -> str:
    """E-mail of `account` as text, for a script: Google builds it from the id and the project."""
    return f"{cloud_name(site.env, account.value)}@{site.project}.iam.gserviceaccount.com"


def _short(role: str) -> str:
    """`roles/storage.objectViewer` as `storage.objectViewer`."""
    return role.removeprefix("roles/")
