"""The mistakes that people have really made, as one Pulumi program. Each resource is named after its mistake."""

import pulumi_gcp as gcp

ZONE = "us-east5-b"
LABELS = {"owner": "ml", "env": "dev", "ttl": "7d", "managed-by": "spotrail"}
SPOT = gcp.tpu.V2VmSchedulingConfigArgs(spot=True)


def tpu(name, accelerator_type="v6e-8", runtime_version="v2-alpha-tpuv6e", scheduling_config=SPOT, **more):
    more = {"labels": LABELS, "zone": ZONE, **more}
    return gcp.tpu.V2Vm(
        name,
        accelerator_type=accelerator_type,
        runtime_version=runtime_version,
        scheduling_config=scheduling_config,
        **more,
    )


# A general or foreign runtime boots, and the chips have no driver.
for number, runtime in enumerate(
    ["tpu-ubuntu2204-base", "v2-alpha-tpuv5-lite", "v2-alpha-tpuv5", "", "v2-alpha-tpuv6e", "tpu-vm-tf-2.16.1-pjrt"]
):
    tpu(f"runtime-{number}", runtime_version=runtime)

# Two ways to name a shape exclude each other; without either the provider takes a v2-8.
SHAPE = gcp.tpu.V2VmAcceleratorConfigArgs
tpu("shape-both", "v6e-4", accelerator_config=SHAPE(type="V6E", topology="2x2"))
tpu("shape-neither", None)
tpu("shape-order", None, accelerator_config=SHAPE(type="V6E", topology="4x2"))
tpu("shape-right", None, accelerator_config=SHAPE(type="V6E", topology="2x4"))
for name in ("v6e-2", "v6e-3", "v6e-512", "v6e-08", "V6E-8"):
    tpu(f"shape-{name}", name)

# A queued resource cannot ask for spot.
gcp.tpu.V2QueuedResource(
    "queued",
    zone=ZONE,
    tpu=gcp.tpu.V2QueuedResourceTpuArgs(
        node_specs=[
            gcp.tpu.V2QueuedResourceTpuNodeSpecArgs(
                parent=f"projects/acme/locations/{ZONE}",
                node_id=f"pod-{number}",
                node=gcp.tpu.V2QueuedResourceTpuNodeSpecNodeArgs(
                    runtime_version="v2-alpha-tpuv6e", accelerator_type="v6e-16"
                ),
            )
            for number in range(2)
        ]
    ),
)

# Capacity flags that contradict each other.
TERMS = gcp.tpu.V2VmSchedulingConfigArgs
tpu("terms-spot-reserved", scheduling_config=TERMS(spot=True, reserved=True))
tpu("terms-preemptible-reserved", scheduling_config=TERMS(preemptible=True, reserved=True))
tpu("terms-spot-preemptible", scheduling_config=TERMS(spot=True, preemptible=True))
tpu("terms-not-spot", scheduling_config=TERMS(spot=False))


def volume(name, size=140, provisioned_throughput=400, access_mode="READ_ONLY_MANY", **more):
    return gcp.compute.Disk(
        name,
        name=name,
        zone=ZONE,
        type="hyperdisk-ml",
        size=size,
        provisioned_throughput=provisioned_throughput,
        access_mode=access_mode,
        **{"labels": LABELS, **more},
    )


# An access mode that only the provider's documentation has, and one that this type does not take.
volume("mode-read-only-single", access_mode="READ_ONLY_SINGLE")
volume("mode-read-write-many", access_mode="READ_WRITE_MANY")
volume("mode-read-only-many")

# A disk that several hosts write to, by omission, by one writer among readers, on one slice of several hosts.
READ_ONLY, READ_WRITE = "READ_ONLY", "READ_WRITE"
DATA = gcp.tpu.V2VmDataDiskArgs
omitted = volume("shared-omitted", access_mode="READ_WRITE_SINGLE")
for number in range(4):
    tpu(f"shared-omitted-{number}", data_disks=[DATA(source_disk=omitted.id)])
mixed = volume("shared-mixed", access_mode="READ_WRITE_SINGLE")
for number in range(4):
    mode = READ_WRITE if number == 0 else READ_ONLY
    tpu(f"shared-mixed-{number}", data_disks=[DATA(source_disk=mixed.id, mode=mode)])
multi = volume("shared-multi", access_mode="READ_WRITE_SINGLE")
tpu("shared-multi-0", "v6e-16", data_disks=[DATA(source_disk=multi.id)])
right = volume("shared-right")
for number in range(4):
    tpu(f"shared-right-{number}", data_disks=[DATA(source_disk=right.id, mode=READ_ONLY)])

# Sizes and throughputs at and beyond the limits.
for size, throughput in [
    *[(140, 399), (140, 400), (140, 12000), (1000, 1200000), (1000, 1200001)],
    *[(3, 400), (4, 400), (65537, 400), (None, 2400)],
]:
    volume(f"limits-{size}-{throughput}", size, throughput)

# Labels that the API refuses.
for number, value in enumerate(["gs://b/run-1", "head.default", "Alice", "x" * 64, "x" * 63, "", "modèle-é", "モデル"]):
    volume(f"label-{number}", labels={**LABELS, "team": value})
for number, key in enumerate(["9k", "Key"]):
    volume(f"key-{number}", labels={**LABELS, key: "x"})

# Boot disks that the machine series does not take.
for number, (machine, disk) in enumerate(
    [
        *[("c4-standard-8", "pd-balanced"), ("n4-standard-2", "pd-ssd"), ("n1-standard-1", "hyperdisk-balanced")],
        *[("c4-standard-8", "hyperdisk-balanced"), ("n2-standard-8", "pd-balanced"), ("c4-standard-8", "hyperdisk-ml")],
    ]
):
    gcp.compute.Instance(
        f"boot-{number}",
        zone=ZONE,
        machine_type=machine,
        boot_disk=gcp.compute.InstanceBootDiskArgs(
            initialize_params=gcp.compute.InstanceBootDiskInitializeParamsArgs(type=disk, size=50)
        ),
        network_interfaces=[gcp.compute.InstanceNetworkInterfaceArgs(network="default")],
        labels=LABELS,
    )

# Checkpoints that rotate in a bucket with soft delete, and ones that a destroy would take along.
for name, retention in (("soft-delete-unset", None), ("soft-delete-off", 0), ("soft-delete-hour", 3600)):
    policy = None if retention is None else gcp.storage.BucketSoftDeletePolicyArgs(retention_duration_seconds=retention)
    gcp.storage.Bucket(f"checkpoints-{name}", location="US-EAST5", soft_delete_policy=policy, labels=LABELS)
gcp.storage.Bucket("checkpoints-force-destroy", location="US-EAST5", force_destroy=True, labels=LABELS)
