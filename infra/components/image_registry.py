"""Where images and packages come from: a Docker repository, and mirrors of PyPI and Ubuntu.

The mirrors are there so that no machine needs a way to the internet: a remote repository fetches a package once, and
hosts read it over Private Google Access. A NAT gateway would be billed by the machine and by the GiB instead.
Clean-up is on from the start, since every build leaves an image that bills for its storage.
Source: https://cloud.google.com/artifact-registry/docs/repositories/cleanup-policy and
https://cloud.google.com/artifact-registry/docs/repositories/remote-overview
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

import pulumi
import pulumi_gcp as gcp

from infra.components.site import Site
from infra.plan.names import cloud_name

DAY_SECONDS: Final = 24 * 3600
UBUNTU_PATH: Final = "ubuntu/dists/jammy"
"""Of the accelerator images: Ubuntu 22.04."""


@final
@dataclass(frozen=True, kw_only=True)
class ImageRegistryArgs:
    """Which repositories there are and who reads them."""

    site: Site
    name: str
    """Docker repository; the stack is put before it, as before the mirrors."""
    keep_versions: int
    """Versions of each image that always stay."""
    untagged_days: int
    """Days that an untagged image stays."""
    python_mirror: str
    """Mirror of PyPI; empty for none."""
    apt_mirror: str
    """Mirror of Ubuntu; empty for none."""
    readers: Mapping[str, pulumi.Input[str]]
    """E-mails of the machines that pull, by the name of their account."""


@final
class ImageRegistry(pulumi.ComponentResource):
    """The repositories, and read access for the machines of the stack."""

    images: gcp.artifactregistry.Repository
    url: pulumi.Output[str]
    """Where images are pushed: `us-central1-docker.pkg.dev/<project>/<repository>`."""

    def __init__(self, name: str, args: ImageRegistryArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("spotrail:infra:ImageRegistry", name, None, opts)
        self._args = args
        self.images = self._images()
        repositories = {"images": self.images}
        if args.python_mirror:
            repositories["python-mirror"] = self._python_mirror()
        if args.apt_mirror:
            repositories["apt-mirror"] = self._apt_mirror()
        for purpose, repository in repositories.items():
            for account, email in args.readers.items():
                self._let_read(purpose, repository, account, email)
        site = args.site
        self.url = pulumi.Output.concat(site.region, "-docker.pkg.dev/", site.project, "/", self.images.repository_id)
        self.register_outputs({"url": self.url})

    def _images(self) -> gcp.artifactregistry.Repository:
        args = self._args
        return gcp.artifactregistry.Repository(
            "images",
            repository_id=repository_id(args.site.env, args.name),
            location=args.site.region,
            format="DOCKER",
            description="Images of the stack",
            cleanup_policies=[
                gcp.artifactregistry.RepositoryCleanupPolicyArgs(
                    id="untagged",
                    action="DELETE",
                    condition=gcp.artifactregistry.RepositoryCleanupPolicyConditionArgs(
                        tag_state="UNTAGGED", older_than=f"{args.untagged_days * DAY_SECONDS}s"
                    ),
                ),
                gcp.artifactregistry.RepositoryCleanupPolicyArgs(
                    id="latest",
                    action="KEEP",
                    most_recent_versions=gcp.artifactregistry.RepositoryCleanupPolicyMostRecentVersionsArgs(
                        keep_count=args.keep_versions
                    ),
                ),
            ],
            cleanup_policy_dry_run=False,
            labels=args.site.labels_with(role="images"),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _python_mirror(self) -> gcp.artifactregistry.Repository:
        source = gcp.artifactregistry.RepositoryRemoteRepositoryConfigPythonRepositoryArgs(public_repository="PYPI")
        config = gcp.artifactregistry.RepositoryRemoteRepositoryConfigArgs(description="PyPI", python_repository=source)
        return self._mirror("python-mirror", self._args.python_mirror, "PYTHON", config)

    def _apt_mirror(self) -> gcp.artifactregistry.Repository:
        source = gcp.artifactregistry.RepositoryRemoteRepositoryConfigAptRepositoryArgs(
            public_repository=gcp.artifactregistry.RepositoryRemoteRepositoryConfigAptRepositoryPublicRepositoryArgs(
                repository_base="UBUNTU", repository_path=UBUNTU_PATH
            )
        )
        config = gcp.artifactregistry.RepositoryRemoteRepositoryConfigArgs(
            description="Ubuntu 22.04", apt_repository=source
        )
        return self._mirror("apt-mirror", self._args.apt_mirror, "APT", config)

    def _mirror(
        self, name: str, of: str, packages: str, config: gcp.artifactregistry.RepositoryRemoteRepositoryConfigArgs
    ) -> gcp.artifactregistry.Repository:
        site = self._args.site
        return gcp.artifactregistry.Repository(
            name,
            repository_id=repository_id(site.env, of),
            location=site.region,
            format=packages,
            mode="REMOTE_REPOSITORY",
            remote_repository_config=config,
            labels=site.labels_with(role=name),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _let_read(
        self, purpose: str, repository: gcp.artifactregistry.Repository, account: str, email: pulumi.Input[str]
    ) -> None:
        gcp.artifactregistry.RepositoryIamMember(
            f"{account}-reads-{purpose}",
            project=self._args.site.project,
            location=self._args.site.region,
            repository=repository.repository_id,
            role="roles/artifactregistry.reader",
            member=pulumi.Output.concat("serviceAccount:", email),
            opts=pulumi.ResourceOptions(parent=self),
        )


def repository_id(env: str, name: str) -> str:
    """Id of the repository `name` of a stack; empty where there is none."""
    return cloud_name(env, name) if name else ""
