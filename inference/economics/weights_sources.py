"""Where a server reads its weights from, and how long: bytes / min(rate of the source over its readers, of a VM)."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from inference.economics.assumptions import (
    BUCKET_RATE,
    DOWNLOAD_PART,
    DOWNLOAD_RATE,
    FUSE_CHUNK,
    FUSE_RATE,
    HEADROOM,
    OBJECT_SIZE,
    OVERLAP,
    RAM_RATE,
    VM_CAP,
    Assumption,
)

MIB: Final = 2**20
GIB: Final = 2**30


@final
class Source(enum.Enum):
    """One of the three; the value is that of `python -m inference --source`."""

    DISK = "disk"
    FUSE = "fuse"
    DOWNLOAD = "download"

    @property
    def title(self) -> str:
        """As a table names it."""
        return _TITLES[self]

    @property
    def ours(self) -> str:
        """How the serving image reads from it."""
        return _OURS[self]

    @property
    def of_vllm(self) -> tuple[str, ...]:
        """What a user of vLLM on TPU runs."""
        return _VLLM[self]


_TITLES: Final = {
    Source.DISK: "Hyperdisk ML",
    Source.FUSE: "GCS FUSE",
    Source.DOWNLOAD: "Boot download",
}
_OURS: Final = {
    Source.DISK: "python -m inference --weights /mnt/model --source disk",
    Source.FUSE: "python -m inference --weights /mnt/bucket/model --source fuse",
    Source.DOWNLOAD: "python -m inference --weights gs://BUCKET/model --source download",
}
_VLLM: Final = {
    Source.DISK: (
        "mount -o ro,noload /dev/disk/by-id/google-model /mnt/model",
        "vllm serve /mnt/model --load-format runai_streamer --model-loader-extra-config '{\"concurrency\":16}'",
    ),
    Source.FUSE: (
        "gcsfuse --implicit-dirs --metadata-cache-ttl-secs -1 --cache-dir /dev/shm/gcsfuse --file-cache-max-size-mb -1 "
        "--file-cache-cache-file-for-range-read --file-cache-enable-parallel-downloads BUCKET /mnt/bucket",
        "vllm serve /mnt/bucket/model --safetensors-load-strategy eager",
    ),
    Source.DOWNLOAD: (
        "vllm serve gs://BUCKET/model --load-format runai_streamer --model-loader-extra-config '{\"concurrency\":32}'",
    ),
}


@final
@dataclass(frozen=True, kw_only=True)
class Rates:
    """Everything that no price book says."""

    vm_cap: Assumption = VM_CAP
    fuse: Assumption = FUSE_RATE
    download: Assumption = DOWNLOAD_RATE
    ram: Assumption = RAM_RATE
    bucket: Assumption = BUCKET_RATE
    headroom: Assumption = HEADROOM
    overlap: Assumption = OVERLAP
    object_size: Assumption = OBJECT_SIZE
    fuse_chunk: Assumption = FUSE_CHUNK
    download_part: Assumption = DOWNLOAD_PART

    @property
    def all(self) -> tuple[Assumption, ...]:
        """In the order in which they are shown."""
        return (
            self.vm_cap,
            self.fuse,
            self.download,
            self.ram,
            self.bucket,
            self.headroom,
            self.overlap,
            self.object_size,
            self.fuse_chunk,
            self.download_part,
        )

    @property
    def bucket_mibps(self) -> Fraction:
        """What all readers of the bucket have together, MiB/s."""
        return Fraction(self.bucket.value) * 10**9 / 8 / MIB


@final
@dataclass(frozen=True, kw_only=True)
class ColdStart:
    """How one host comes by its weights."""

    source: Source
    bytes_read: int
    """By the host."""
    readers: int
    """Hosts that read at the same time."""
    mibps: Fraction
    """That the host gets."""
    limit: str
    """What keeps it from more: `the volume`."""
    seconds: Fraction
    """From the first byte to the last on the host; what comes before and after is the same for all three."""


def cold_start(source: Source, size: int, readers: int, rates: Rates, throughput: Fraction) -> ColdStart:
    """How one of `readers` hosts reads `size` bytes. `throughput` is that of the volume, MiB/s."""
    if source is Source.DISK:
        shared, own = throughput, Fraction(rates.vm_cap.value)
    else:
        shared = rates.bucket_mibps
        own = Fraction((rates.fuse if source is Source.FUSE else rates.download).value)
    mibps = min(shared / readers, own)
    seconds = size / (mibps * MIB)
    if source is Source.DOWNLOAD:
        # Written whole, then moved into its place and read: nothing half-made is ever loaded.
        seconds += size / (Fraction(rates.ram.value) * MIB)
    return ColdStart(
        source=source,
        bytes_read=size,
        readers=readers,
        mibps=mibps,
        limit=_limit(source, shared / readers < own),
        seconds=seconds,
    )


def _limit(source: Source, shared: bool) -> str:
    if source is Source.DISK:
        return "its share of the volume" if shared else "what a VM reads"
    return "its share of the bucket" if shared else "what a VM reads"
