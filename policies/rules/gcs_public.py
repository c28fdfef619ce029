"""Buckets that could be made public by one object or one binding, and bindings that do it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.resources import Opaque, Resource, texts
from policies.rules.buckets import BUCKET
from policies.rules.model import Context, Rule, Severity, Violation

BINDINGS: Final = (
    "gcp:storage/bucketIAMMember:BucketIAMMember",
    "gcp:storage/bucketIAMBinding:BucketIAMBinding",
)
EVERYONE: Final = ("allUsers", "allAuthenticatedUsers")
ENFORCED: Final = "enforced"


def _check(resource: Resource, context: Context) -> Iterator[Violation]:
    return _bucket(resource) if resource.type == BUCKET else _binding(resource)


def _bucket(bucket: Resource) -> Iterator[Violation]:
    uniform, prevention = bucket.flag("uniformBucketLevelAccess"), bucket.text("publicAccessPrevention")
    if isinstance(uniform, Opaque):
        yield Violation.hidden("uniformBucketLevelAccess", uniform)
    elif not uniform:
        said = "not set" if uniform is None else "false"
        yield Violation(
            message=f"uniformBucketLevelAccess is {said}: single objects can be shared past IAM",
            severity=Severity.WARNING,
        )
    if isinstance(prevention, Opaque):
        yield Violation.hidden("publicAccessPrevention", prevention)
    elif prevention != ENFORCED:
        yield Violation(
            message=f'publicAccessPrevention is {prevention or "not set"}; only "{ENFORCED}" keeps the bucket closed',
            severity=Severity.WARNING,
        )


def _binding(binding: Resource) -> Iterator[Violation]:
    members = [binding.value(key) for key in ("member", "members")]
    for key, value in zip(("member", "members"), members, strict=True):
        if isinstance(value, Opaque) or (isinstance(value, tuple) and any(isinstance(one, Opaque) for one in value)):
            yield from _hidden(key, binding)
    for member in sorted({text for value in members for text in texts(value)}.intersection(EVERYONE)):
        yield Violation(
            message=f"it gives {binding.value('role')} to {member}: everybody can read, and you pay the egress"
        )


def _hidden(key: str, binding: Resource) -> Iterator[Violation]:
    """A member that came from another resource is an account, which is not everybody."""
    if not binding.options.property_dependencies.get(key):
        value = binding.value(key)
        yield Violation.hidden(key, value if isinstance(value, Opaque) else Opaque.UNKNOWN)


RULE: Final = Rule(
    id="GCS-PUBLIC",
    title="No bucket is public or can be made so by accident",
    severity=Severity.ERROR,
    applies_to=(BUCKET, *BINDINGS),
    remediation=(
        "Set uniformBucketLevelAccess to true and publicAccessPrevention to enforced; give roles to accounts, never to "
        "allUsers or allAuthenticatedUsers."
    ),
    url="https://docs.cloud.google.com/storage/docs/public-access-prevention",
    check=_check,
)
