"""Figures that no price book has: what a chip can do, how fast weights are read. Each has a source and an option."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final, final

from policies.hardware.disks import PER_VM_CAP_MIBPS

V6E: Final = "https://docs.cloud.google.com/tpu/docs/v6e"


@final
@dataclass(frozen=True, kw_only=True)
class Assumption:
    """One figure that an answer rests on."""

    option: str
    """The option that sets it: `--bandwidth`."""
    what: str
    """What it is, in words."""
    value: Decimal
    unit: str
    source: str
    """Where the default comes from; `given` where it was set."""

    def given(self, value: Decimal | None) -> Assumption:
        """The same figure as the user has it; unchanged for None."""
        if value is None or value == self.value:
            return self
        return Assumption(option=self.option, what=self.what, value=value, unit=self.unit, source="given")

    @property
    def help(self) -> str:
        """What the option says of itself."""
        return f"{self.what[0].upper()}{self.what[1:]}, {self.unit}.  [default: {self.value:,f}; {self.source}]"


HBM: Final = Assumption(
    option="--hbm",
    what="memory of a chip",
    value=Decimal(32),
    unit="GB",
    source=V6E,
)
BANDWIDTH: Final = Assumption(
    option="--bandwidth",
    what="bandwidth of the memory of a chip",
    value=Decimal(1640),
    unit="GB/s",
    source=f"{V6E}: 1640 in older revisions, 1600 in the newest",
)
PEAK: Final = Assumption(
    option="--peak",
    what="bf16 operations of a chip",
    value=Decimal(918),
    unit="TFLOP/s",
    source=V6E,
)
USABLE: Final = Assumption(
    option="--usable",
    what="share of the memory for weights, states and KV; the rest is workspace",
    value=Decimal("0.9"),
    unit="of 1",
    source="the default of vLLM's --gpu-memory-utilization in most releases",
)
SNAPSHOTS: Final = Assumption(
    option="--snapshot-share",
    what="share of the memory of the hosts for snapshots of prefixes",
    value=Decimal("0.5"),
    unit="of 1",
    source="assumed: the other half for weights on their way and for the server",
)

VM_CAP: Final = Assumption(
    option="--vm-cap",
    what="most that one VM reads from Hyperdisk ML",
    value=Decimal(PER_VM_CAP_MIBPS),
    unit="MiB/s",
    source="measured by Google on TPU7x; for v6e its page gives no figure",
)
FUSE_RATE: Final = Assumption(
    option="--fuse-rate",
    what="most that one VM reads through GCS FUSE",
    value=Decimal(1000),
    unit="MiB/s",
    source="assumed, between 160 MiB/s told of a cold file cache (marin#1208) and 12,400 of fio with 144 jobs on C4",
)
DOWNLOAD_RATE: Final = Assumption(
    option="--download-rate",
    what="most that one VM downloads from Cloud Storage in parallel ranges",
    value=Decimal(2000),
    unit="MiB/s",
    source="assumed, below 2,900 MiB/s that Run:ai publish of 32 streams from another store",
)
RAM_RATE: Final = Assumption(
    option="--ram-rate",
    what="reading back what was downloaded into a RAM disk",
    value=Decimal(5000),
    unit="MiB/s",
    source="assumed; two threads on two busy cores read 2,000 MiB/s from one",
)
BUCKET_RATE: Final = Assumption(
    option="--bucket-rate",
    what="most that all VMs together read from the bucket",
    value=Decimal(200),
    unit="Gbit/s",
    source="the usual default quota of a project for reads in one region, from general knowledge: look at yours",
)
HEADROOM: Final = Assumption(
    option="--headroom",
    what="room on the volume beside the weights",
    value=Decimal("0.05"),
    unit="of the size",
    source="assumed: file system and tokenizer",
)
OVERLAP: Final = Assumption(
    option="--overlap-hours",
    what="time for which the old and the new volume stand side by side at a model update",
    value=Decimal(1),
    unit="h",
    source="assumed: hydration and one wave of restarts",
)
OBJECT_SIZE: Final = Assumption(
    option="--object-size",
    what="size of one file of weights",
    value=Decimal(4),
    unit="GiB",
    source="assumed: shards as most exports have them",
)
FUSE_CHUNK: Final = Assumption(
    option="--fuse-chunk",
    what="bytes of one range request of GCS FUSE",
    value=Decimal(200),
    unit="MiB",
    source="gcsfuse: the default of download-chunk-size-mb",
)
DOWNLOAD_PART: Final = Assumption(
    option="--download-part",
    what="bytes of one range request of the boot download",
    value=Decimal(32),
    unit="MiB",
    source="assumed: parts of 16 to 64 MiB are usual",
)
