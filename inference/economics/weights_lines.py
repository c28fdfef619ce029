"""What each way to weights bills in a month, line by line, and what of it does not fit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from inference.economics.assumptions import HBM, USABLE
from inference.economics.figures import bytes_text
from inference.economics.fleet import DISK, Fleet
from inference.economics.weights_bill import Line, Market, free
from inference.economics.weights_sources import GIB, MIB, ColdStart, Source
from policies.estimate.routes import transfer_item
from policies.hardware.machines import machine
from policies.hardware.zones import region_of

CHIP: Final = "tpu.v6e.chip"
MIBPS: Final = "MiB/s-month"


def lines_of(start: ColdStart, fleet: Fleet, market: Market, throughput: int) -> Iterator[Line]:
    """The bill of a way whose cold start is known. `throughput` is that of the volume, MiB/s."""
    yield from _common(fleet, market)
    if start.source is Source.DISK:
        yield from _of_disk(fleet, market, throughput)
    else:
        yield from _of_bucket(start.source, fleet, market)
    yield _waiting(fleet, market, start)


def _common(fleet: Fleet, market: Market) -> Iterator[Line]:
    """The bucket, from which all three come in the end."""
    gib = Fraction(fleet.size_bytes, GIB)
    objects = _pieces(fleet.size_bytes, Fraction(fleet.rates.object_size.value) * GIB)
    yield market.line("bucket", "storage.standard.capacity", gib * fleet.versions, fleet.bucket, unit="GiB-month")
    yield market.line(
        "uploads (class A)",
        "storage.standard.class-a",
        fleet.updates_per_month * objects / 1000,
        fleet.bucket,
        unit="1000-operations",
    )


def _of_disk(fleet: Fleet, market: Market, throughput: int) -> Iterator[Line]:
    gib = Fraction(fleet.size_bytes, GIB)
    parts = (("capacity", Fraction(fleet.disk_gib), "GiB-month"), ("throughput", Fraction(throughput), MIBPS))
    for name, quantity, unit in parts:
        note = "billed around the clock, read or not" if name == "throughput" else ""
        yield market.line(f"volume {name}", f"disk.{DISK}.{name}", quantity, fleet.zone, unit=unit, note=note)
    if fleet.updates_per_month:
        for name, quantity, unit in parts:
            yield market.line(
                f"second volume at updates, {name}",
                f"disk.{DISK}.{name}",
                quantity,
                fleet.zone,
                unit=unit,
                share=fleet.overlap,
            )
    if fleet.snapshot:
        yield market.line(
            "snapshot of the volume", "snapshot.standard.capacity", gib, region_of(fleet.zone), unit="GiB-month"
        )
    requests = _pieces(fleet.size_bytes, Fraction(fleet.rates.download_part.value) * MIB)
    yield _reads(fleet, market, fleet.updates_per_month * requests, by_start=False)
    yield _transfer(fleet, market, fleet.updates_per_month * gib, by_start=False)


def _of_bucket(source: Source, fleet: Fleet, market: Market) -> Iterator[Line]:
    rates = fleet.rates
    piece = rates.fuse_chunk if source is Source.FUSE else rates.download_part
    # A request for the metadata of each file, and one for each of its pieces.
    objects = _pieces(fleet.bytes_per_host, Fraction(rates.object_size.value) * GIB)
    requests = objects + _pieces(fleet.bytes_per_host, Fraction(piece.value) * MIB)
    hosts = fleet.starts * fleet.hosts
    yield _reads(fleet, market, hosts * requests, by_start=True)
    if source is Source.FUSE:
        yield market.line(
            "listings (class A)",
            "storage.standard.class-a",
            hosts / 1000,
            fleet.bucket,
            unit="1000-operations",
            by_start=True,
        )
    yield _transfer(fleet, market, hosts * Fraction(fleet.bytes_per_host, GIB), by_start=True)
    cache = Fraction(fleet.bytes_per_host * fleet.hosts * fleet.replicas, GIB)
    use = "file cache in memory" if source is Source.FUSE else "RAM disk"
    yield free(use, cache, "GiB", "the memory of the hosts is in the price of the chips")


def _reads(fleet: Fleet, market: Market, requests: Fraction, *, by_start: bool) -> Line:
    return market.line(
        "reads (class B)",
        "storage.standard.class-b",
        requests / 1000,
        fleet.bucket,
        unit="1000-operations",
        by_start=by_start,
    )


def _transfer(fleet: Fleet, market: Market, gib: Fraction, *, by_start: bool) -> Line:
    item = transfer_item(fleet.bucket, fleet.zone)
    if item is None:
        return free("transfer out of the bucket", gib, "GiB", "free within a region", by_start=by_start)
    note = f"from {fleet.bucket} to {region_of(fleet.zone)}"
    return market.line("transfer out of the bucket", item, gib, fleet.bucket, unit="GiB", by_start=by_start, note=note)


def _waiting(fleet: Fleet, market: Market, start: ColdStart) -> Line:
    hours = fleet.starts * start.seconds / 3600 * fleet.shape.chips
    return market.line(
        "accelerators waiting",
        CHIP,
        hours,
        fleet.zone,
        unit="chip-hour",
        model=fleet.capacity,
        by_start=True,
        note="while they read",
    )


def warnings(source: Source, fleet: Fleet) -> Iterator[str]:
    usable = Fraction(HBM.value) * 10**9 * fleet.shape.chips * Fraction(USABLE.value)
    if source is Source.DISK and fleet.size_bytes > usable:
        room, needed = bytes_text(usable), bytes_text(fleet.size_bytes)
        yield f"{fleet.shape.accelerator_type} has {room} for weights: {needed} do not fit"
    found = machine(fleet.shape.machine_type)
    if source is Source.DISK or found is None:
        return
    twice, host = 2 * fleet.bytes_per_host, Fraction(found.memory_gib) * GIB
    if twice > host:
        yield (
            f"{source.title}: {bytes_text(twice)} of memory are needed on each host (what is kept and what is loaded "
            f"from it), and {found.name} has {bytes_text(host)}"
        )


def _pieces(size: int, piece: Fraction) -> int:
    return math.ceil(size / piece)
