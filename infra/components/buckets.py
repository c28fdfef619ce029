"""The three buckets: checkpoints, datasets and models.

All stand in the region of the TPUs, since a read from anywhere else is billed by the GiB, every epoch and every host.
Access is uniform and never public. Deletion is made hard: Pulumi refuses it (`protect`), forgets rather than deletes
(`retain_on_delete`), and never empties a bucket first (`force_destroy` stays false).

What keeps deleted bytes alive is decided for each bucket, because they are billed like live ones:
- checkpoints rotate: soft delete is off. Seven days of it would hold a week of churn
  (https://cloud.google.com/storage/docs/soft-delete);
- datasets change seldom: soft delete for seven days, the shortest that Google offers, is a cheap undo;
- models are published once: versions instead of soft delete (both would be billed one after the other), the
  noncurrent ones for thirty days.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

import pulumi
import pulumi_gcp as gcp

from infra.components.site import Site
from infra.plan.names import bucket_name

CHECKPOINTS: Final = "checkpoints"
DATASETS: Final = "datasets"
MODELS: Final = "models"
NO_SOFT_DELETE: Final = 0
WEEK_SECONDS: Final = 7 * 24 * 3600
NONCURRENT_DAYS: Final = 30


@final
@dataclass(frozen=True, kw_only=True)
class BucketsArgs:
    """What the lifecycle rules remove."""

    site: Site
    temporary_prefix: str
    """Objects below it are temporary: `tmp/`."""
    temporary_days: int
    """Days that they stay."""
    abandoned_upload_days: int
    """Days after which an incomplete multipart upload is aborted; until then its parts are billed."""


@final
class Buckets(pulumi.ComponentResource):
    """The buckets of the stack."""

    checkpoints: gcp.storage.Bucket
    datasets: gcp.storage.Bucket
    models: gcp.storage.Bucket

    def __init__(self, name: str, args: BucketsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("spotrail:infra:Buckets", name, None, opts)
        self._args = args
        self.checkpoints = self._bucket(CHECKPOINTS, soft_delete=NO_SOFT_DELETE)
        self.datasets = self._bucket(DATASETS, soft_delete=WEEK_SECONDS)
        self.models = self._bucket(MODELS, soft_delete=NO_SOFT_DELETE, versioned=True)
        self.register_outputs({purpose: bucket.name for purpose, bucket in self.all.items()})

    @property
    def all(self) -> Mapping[str, gcp.storage.Bucket]:
        """The buckets by their purpose."""
        return {CHECKPOINTS: self.checkpoints, DATASETS: self.datasets, MODELS: self.models}

    @property
    def project_number(self) -> pulumi.Output[int]:
        """Number of the project, which a bucket knows without a call of its own: budgets filter by it."""
        return self.checkpoints.project_number

    def _bucket(self, purpose: str, *, soft_delete: int, versioned: bool = False) -> gcp.storage.Bucket:
        site = self._args.site
        return gcp.storage.Bucket(
            purpose,
            name=bucket_name(site.project, site.env, purpose),
            location=site.region,
            storage_class="STANDARD",
            uniform_bucket_level_access=True,
            public_access_prevention="enforced",
            force_destroy=False,
            soft_delete_policy=gcp.storage.BucketSoftDeletePolicyArgs(retention_duration_seconds=soft_delete),
            versioning=gcp.storage.BucketVersioningArgs(enabled=versioned),
            lifecycle_rules=_lifecycle(self._args, versioned),
            labels=site.labels_with(role=purpose),
            opts=pulumi.ResourceOptions(parent=self, protect=True, retain_on_delete=True),
        )


def _lifecycle(args: BucketsArgs, versioned: bool) -> Sequence[gcp.storage.BucketLifecycleRuleArgs]:
    rules = [
        _rule(
            "Delete",
            gcp.storage.BucketLifecycleRuleConditionArgs(
                age=args.temporary_days, matches_prefixes=[args.temporary_prefix]
            ),
        ),
        _rule(
            "AbortIncompleteMultipartUpload",
            gcp.storage.BucketLifecycleRuleConditionArgs(age=args.abandoned_upload_days),
        ),
    ]
    if versioned:
        noncurrent = gcp.storage.BucketLifecycleRuleConditionArgs(
            days_since_noncurrent_time=NONCURRENT_DAYS, with_state="ARCHIVED"
        )
        rules.append(_rule("Delete", noncurrent))
    return rules


def _rule(action: str, condition: gcp.storage.BucketLifecycleRuleConditionArgs) -> gcp.storage.BucketLifecycleRuleArgs:
    return gcp.storage.BucketLifecycleRuleArgs(
        action=gcp.storage.BucketLifecycleRuleActionArgs(type=action), condition=condition
    )
