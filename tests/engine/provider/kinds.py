"""The resource types that the program uses: the form of their ids, and what of them can change in place.

An id is a pattern over the inputs, as Google's provider builds it; what a type cannot change in place replaces the
resource. Sources: pulumi-gcp 10.2 (the import sections of its documentation) and the schemas of
terraform-provider-google (fields without ForceNew).
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from infra.engine.wire import Wire
from tests.engine.provider.values import holds_unknown, revealed


@final
@dataclass(frozen=True, kw_only=True)
class Kind:
    """One resource type."""

    id: str
    """Its id: `{number}` is one of Google's own, `{uuid}` too; all else are inputs."""
    in_place: frozenset[str] = frozenset()
    """Inputs that change without a replacement, or paths below them such as `scheduling.maxRunDuration`."""
    path: str = ""
    """Where it is kept in the loopback Google Cloud, if not under its id."""
    named: bool = False
    """Whether the provider makes up a name where the program gives none."""

    @property
    def kept_at(self) -> str:
        return self.path or self.id


def _kind(id_: str, in_place: str = "", *, path: str = "", named: bool = True) -> Kind:
    return Kind(id=id_, in_place=frozenset(in_place.split()), path=path, named=named)


_ZONE: Final = "projects/{project}/zones/{zone}"
_REGION: Final = "projects/{project}/regions/{region}"
_GLOBAL: Final = "projects/{project}/global"
_LOCATION: Final = "projects/{project}/locations/{location}"
_TPU: Final = "projects/{project}/locations/{zone}"
_MEMBER: Final = "{role}/{member}"

KINDS: Final = {
    "gcp:artifactregistry/repository:Repository": _kind(
        f"{_LOCATION}/repositories/{{repositoryId}}",
        "cleanupPolicies cleanupPolicyDryRun description dockerConfig labels remoteRepositoryConfig"
        " virtualRepositoryConfig vulnerabilityScanningConfig",
        named=False,
    ),
    "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember": _kind(
        f"projects/{{project}}/locations/{{location}}/repositories/{{repository}}/{_MEMBER}", named=False
    ),
    "gcp:billing/budget:Budget": _kind(
        "billingAccounts/{billingAccount}/budgets/{uuid}",
        "allUpdatesRule amount budgetFilter displayName ownershipScope thresholdRules",
        named=False,
    ),
    "gcp:cloudrunv2/job:Job": _kind(
        f"{_LOCATION}/jobs/{{name}}",
        "annotations binaryAuthorization client clientVersion deletionProtection labels launchStage runExecutionToken"
        " startExecutionToken template",
    ),
    "gcp:cloudrunv2/jobIamMember:JobIamMember": _kind(f"{_LOCATION}/jobs/{{name}}/{_MEMBER}", named=False),
    "gcp:cloudscheduler/job:Job": _kind(
        "projects/{project}/locations/{region}/jobs/{name}",
        "attemptDeadline description httpTarget paused pubsubTarget appEngineHttpTarget retryConfig schedule timeZone",
        path="projects/{project}/locations/{region}/schedulerJobs/{name}",
    ),
    "gcp:compute/address:Address": _kind(f"{_REGION}/addresses/{{name}}", "labels"),
    "gcp:compute/disk:Disk": _kind(
        f"{_ZONE}/disks/{{name}}",
        "accessMode createSnapshotBeforeDestroy createSnapshotBeforeDestroyPrefix labels provisionedIops"
        " provisionedThroughput size",
    ),
    "gcp:compute/firewall:Firewall": _kind(
        f"{_GLOBAL}/firewalls/{{name}}",
        "allows denies description destinationRanges disabled enableLogging logConfig priority sourceRanges"
        " sourceServiceAccounts sourceTags targetServiceAccounts targetTags",
    ),
    "gcp:compute/instance:Instance": _kind(
        f"{_ZONE}/instances/{{name}}",
        "advancedMachineFeatures allowStoppingForUpdate attachedDisks deletionProtection description desiredStatus"
        " enableDisplay labels machineType metadata minCpuPlatform resourcePolicies serviceAccount"
        " shieldedInstanceConfig tags bootDisk.autoDelete scheduling.automaticRestart scheduling.onHostMaintenance",
    ),
    "gcp:compute/instanceGroupManager:InstanceGroupManager": _kind(
        f"{_ZONE}/instanceGroupManagers/{{name}}",
        "allInstancesConfig autoHealingPolicies baseInstanceName instanceLifecyclePolicy listManagedInstancesResults"
        " namedPorts standbyPolicy statefulDisks statefulExternalIps statefulInternalIps targetPools targetSize"
        " targetStoppedSize targetSuspendedSize updatePolicy versions waitForInstances waitForInstancesStatus",
    ),
    "gcp:compute/instanceTemplate:InstanceTemplate": _kind(f"{_GLOBAL}/instanceTemplates/{{name}}"),
    "gcp:compute/network:Network": _kind(
        f"{_GLOBAL}/networks/{{name}}", "deleteDefaultRoutesOnCreate networkFirewallPolicyEnforcementOrder routingMode"
    ),
    "gcp:compute/resourcePolicy:ResourcePolicy": _kind(
        f"{_REGION}/resourcePolicies/{{name}}", "snapshotSchedulePolicy"
    ),
    "gcp:compute/router:Router": _kind(f"{_REGION}/routers/{{name}}", "bgp description"),
    "gcp:compute/routerNat:RouterNat": _kind(
        "{project}/{region}/{router}/{name}",
        "drainNatIps enableDynamicPortAllocation enableEndpointIndependentMapping icmpIdleTimeoutSec logConfig"
        " maxPortsPerVm minPortsPerVm natIpAllocateOption natIps rules sourceSubnetworkIpRangesToNat subnetworks"
        " tcpEstablishedIdleTimeoutSec tcpTimeWaitTimeoutSec tcpTransitoryIdleTimeoutSec udpIdleTimeoutSec",
        path=f"{_REGION}/routers/{{router}}/nats/{{name}}",
    ),
    "gcp:compute/snapshot:Snapshot": _kind(f"{_GLOBAL}/snapshots/{{name}}", "labels"),
    "gcp:compute/subnetwork:Subnetwork": _kind(
        f"{_REGION}/subnetworks/{{name}}",
        "description ipCidrRange logConfig privateIpGoogleAccess privateIpv6GoogleAccess secondaryIpRanges stackType",
    ),
    "gcp:iam/workloadIdentityPool:WorkloadIdentityPool": _kind(
        "projects/{project}/locations/global/workloadIdentityPools/{workloadIdentityPoolId}",
        "description disabled displayName",
        named=False,
    ),
    "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider": _kind(
        "projects/{project}/locations/global/workloadIdentityPools/{workloadIdentityPoolId}/providers/"
        "{workloadIdentityPoolProviderId}",
        "attributeCondition attributeMapping aws description disabled displayName oidc saml x509",
        named=False,
    ),
    "gcp:monitoring/alertPolicy:AlertPolicy": _kind(
        "projects/{project}/alertPolicies/{number}",
        "alertStrategy combiner conditions displayName documentation enabled notificationChannels severity userLabels",
        named=False,
    ),
    "gcp:monitoring/dashboard:Dashboard": _kind("projects/{project}/dashboards/{uuid}", "dashboardJson", named=False),
    "gcp:monitoring/notificationChannel:NotificationChannel": _kind(
        "projects/{project}/notificationChannels/{number}",
        "description displayName enabled forceDelete labels sensitiveLabels type userLabels",
        named=False,
    ),
    "gcp:projects/iAMCustomRole:IAMCustomRole": _kind(
        "projects/{project}/roles/{roleId}", "description permissions stage title", named=False
    ),
    "gcp:projects/iAMMember:IAMMember": _kind(
        f"{{project}}/{_MEMBER}", path=f"projects/{{project}}/iam/{_MEMBER}", named=False
    ),
    "gcp:projects/service:Service": _kind(
        "{project}/{service}",
        "disableDependentServices disableOnDestroy checkIfServiceHasUsageOnDestroy",
        path="projects/{project}/services/{service}",
        named=False,
    ),
    "gcp:pubsub/topic:Topic": _kind(
        "projects/{project}/topics/{name}",
        "ingestionDataSourceSettings kmsKeyName labels messageRetentionDuration messageStoragePolicy messageTransforms"
        " schemaSettings",
    ),
    "gcp:pubsub/topicIAMMember:TopicIAMMember": _kind(f"projects/{{project}}/topics/{{topic}}/{_MEMBER}", named=False),
    "gcp:secretmanager/secretIamMember:SecretIamMember": _kind(
        f"projects/{{project}}/secrets/{{secretId}}/{_MEMBER}", named=False
    ),
    "gcp:serviceaccount/account:Account": _kind(
        "projects/{project}/serviceAccounts/{accountId}@{project}.iam.gserviceaccount.com",
        "createIgnoreAlreadyExists description disabled displayName",
    ),
    "gcp:serviceaccount/iAMMember:IAMMember": _kind(f"{{serviceAccountId}}/{_MEMBER}", named=False),
    "gcp:storage/bucket:Bucket": _kind(
        "{name}",
        "autoclass cors defaultEventBasedHold encryption forceDestroy ipFilter labels lifecycleRules logging"
        " publicAccessPrevention requesterPays retentionPolicy rpo softDeletePolicy storageClass"
        " uniformBucketLevelAccess versioning website",
        path="buckets/{name}",
    ),
    "gcp:storage/bucketIAMMember:BucketIAMMember": _kind(f"b/{{bucket}}/{_MEMBER}", named=False),
    "gcp:tpu/v2QueuedResource:V2QueuedResource": _kind(f"{_TPU}/queuedResources/{{name}}"),
    "gcp:tpu/v2Vm:V2Vm": _kind(f"{_TPU}/nodes/{{name}}", "dataDisks description labels metadata tags"),
}
"""By type token. `deletionPolicy`, which the provider keeps to itself, changes in place everywhere."""


@functools.cache
def kind_of(token: str) -> Kind:
    """The kind of a type; one that is not listed is kept under its name, and only its labels change in place."""
    if token in KINDS:
        return KINDS[token]
    collection = token.split(":")[-1]
    return _kind(f"projects/{{project}}/{collection}/{{name}}", "labels description")


def identity(token: str, urn: str, inputs: Mapping[str, Wire]) -> tuple[str, str]:
    """Id, and path in the cloud, of what is to be made. Raises ValueError where an input for it is not there yet."""
    kind = kind_of(token)
    digest = hashlib.sha256(urn.encode()).hexdigest()
    number = str(10**18 + int(digest[:14], 16))
    uuid = f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
    texts = {"number": number, "uuid": uuid}
    for key in set(re.findall(r"\{(\w+)\}", kind.id + kind.kept_at)) - texts.keys():
        value = revealed(inputs.get(key))
        if not isinstance(value, str) or not value or holds_unknown(value):
            raise ValueError(f"{key} is not set; the id of {token} is made with it")
        texts[key] = value
    return kind.id.format_map(texts), kind.kept_at.format_map(texts)


def path_of(token: str, id_: str) -> str:
    """Where a resource is kept, from its id. Raises ValueError for an id that the type cannot have."""
    return kind_of(token).kept_at.format_map(parts_of(token, id_))


def parts_of(token: str, id_: str) -> dict[str, str]:
    """The inputs that an id is made of. Raises ValueError for an id that the type cannot have."""
    kind, seen = kind_of(token), set[str]()

    def group(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in seen:
            return f"(?P={name})"
        seen.add(name)
        return f"(?P<{name}>{'.+' if name in ('role', 'serviceAccountId') else '[^/]+'})"

    pattern = re.sub(r"\\\{(\w+)\\\}", group, re.escape(kind.id))
    found = re.fullmatch(pattern, id_)
    if found is None:
        raise ValueError(f'"{id_}" is no id of {token}; it has the form {kind.id}')
    return found.groupdict()
