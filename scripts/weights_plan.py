"""`spotrail weights-plan`: FUSE, Hyperdisk ML and boot download side by side."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scripts import options
from scripts.amounts import Amount, Size
from scripts.sheet import Format, write

if TYPE_CHECKING:
    from inference.economics.weights_sources import Rates


def rate_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Every figure that no price book says; the report shows where its default comes from."""
    for option in reversed(
        (
            click.option("--vm-cap", type=Amount(), help="A VM reads so much of Hyperdisk ML, MiB/s.  [default: 2400]"),
            click.option("--fuse-rate", type=Amount(), help="A VM reads so much by FUSE, MiB/s.  [default: 1000]"),
            click.option("--download-rate", type=Amount(), help="A VM downloads so much, MiB/s.  [default: 2000]"),
            click.option("--ram-rate", type=Amount(), help="A RAM disk is read so fast, MiB/s.  [default: 5000]"),
            click.option("--bucket-rate", type=Amount(), help="All VMs read so much, Gbit/s.  [default: 200]"),
            click.option("--headroom", type=Amount(zero=True, most=10), help="Room on the volume.  [default: 0.05]"),
            click.option(
                "--overlap-hours",
                type=Amount(zero=True, most=730),
                help="Two volumes stand so long at an update.  [default: 1]",
            ),
            click.option("--object-size", type=Amount(), help="Size of one file of weights, GiB.  [default: 4]"),
            click.option("--fuse-chunk", type=Amount(), help="One range request of FUSE, MiB.  [default: 200]"),
            click.option("--download-part", type=Amount(), help="One of the download, MiB.  [default: 32]"),
        )
    ):
        function = option(function)
    return function


@click.command(name="weights-plan", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--size", type=Size(), required=True, help="Of the weights: 140GiB.")
@click.option("--replicas", type=click.IntRange(1, 100_000), required=True, help="Servers, a slice each.")
@click.option(
    "--restarts-per-day",
    type=Amount(most=100_000),
    required=True,
    help="How often each replica starts: preemptions, deploys, scaling.",
)
@click.option("--shape", default="v6e-8", show_default=True, help="The slice of a replica.")
@click.option("--zone", default="us-central1-b", show_default=True, help="Where the replicas and the volume are.")
@click.option("--bucket-location", help="Where the bucket is.  [default: the region of the zone]")
@click.option(
    "--capacity",
    type=click.Choice(("spot", "on-demand")),
    default="spot",
    show_default=True,
    help="How chips are bought.",
)
@click.option("--hosts-per-replica", type=click.IntRange(1, 64), help="VMs that read.  [default: those of the shape]")
@click.option("--at-once", type=click.IntRange(1), help="Replicas that start together.  [default: all]")
@click.option("--throughput", type=click.IntRange(1), help="MiB/s of the volume.  [default: what costs least in all]")
@click.option(
    "--model-updates-per-month",
    "updates",
    type=Amount(zero=True, most=10_000),
    default="1",
    show_default=True,
    help="New versions of the weights.",
)
@click.option("--versions", type=click.IntRange(1, 1000), default=1, show_default=True, help="Kept in the bucket.")
@click.option("--snapshot/--no-snapshot", default=True, show_default=True, help="Whether the volume has one.")
@click.option(
    "--reads", type=click.Choice(("shards", "all")), default="shards", show_default=True, help="What a host reads."
)
@rate_options
@click.option(
    "--format",
    "form",
    type=click.Choice(Format, case_sensitive=False),
    default=Format.TABLE,
    show_default=True,
    help="A table or a page with plots for people, or strict JSON (spotrail.weights-plan/1).",
)
@options.prices
@options.as_of
@options.output
def command(
    size: int,
    replicas: int,
    restarts_per_day: Decimal,
    shape: str,
    zone: str,
    bucket_location: str | None,
    capacity: str,
    hosts_per_replica: int | None,
    at_once: int | None,
    throughput: int | None,
    updates: Decimal,
    versions: int,
    snapshot: bool,
    reads: str,
    form: Format,
    prices: Path | None,
    as_of: datetime.date,
    output_file: Path | None,
    **rates: Decimal | None,
) -> int:
    """Show how long a cold start takes and what a month costs, for each of the three ways to weights.

    A Hyperdisk ML volume bills its throughput around the clock; a bucket costs next to nothing, and accelerators wait
    longer for it. Exits 4 where the book has no price for one of the three: Hyperdisk ML has them in few regions.

    \b
    Examples:
      spotrail weights-plan --size 140GiB --replicas 16 --restarts-per-day 8
      spotrail weights-plan --size 140GiB --replicas 16 --restarts-per-day 8 --at-once 1 --throughput 2400 --format json
    """
    # Imported here, so that help and mistyped options answer at once.
    from inference.economics.fleet import Fleet
    from inference.economics.weights_json import weights_json
    from inference.economics.weights_report import weights_report
    from inference.weights_plan import weights_plan
    from policies.exit_codes import ExitCode
    from policies.hardware.slices import shape as shape_of
    from policies.hardware.zones import check_zone, region_of
    from policies.prices.book import PriceModel, load_book, shipped_book

    check_zone(zone)
    slice_of = shape_of(shape)
    fleet = Fleet(
        size_bytes=size,
        replicas=replicas,
        shape=slice_of,
        zone=zone,
        capacity=PriceModel(capacity),
        restarts_per_day=Fraction(restarts_per_day),
        hosts=hosts_per_replica or slice_of.hosts,
        at_once=at_once or replicas,
        bucket=(bucket_location or region_of(zone)).lower(),
        throughput=throughput,
        updates_per_month=Fraction(updates),
        versions=versions,
        snapshot=snapshot,
        whole=reads == "all",
        rates=_rates(rates),
    )
    plan = weights_plan(fleet, load_book(prices) if prices else shipped_book(), as_of)
    write(weights_report(plan), weights_json(plan), form, output_file)
    return ExitCode.FINE if plan.complete else ExitCode.UNDECIDED


def _rates(given: dict[str, Decimal | None]) -> Rates:
    """The assumptions, those that were given in the place of the defaults."""
    from inference.economics.weights_sources import Rates

    defaults = Rates()
    return Rates(
        vm_cap=defaults.vm_cap.given(given["vm_cap"]),
        fuse=defaults.fuse.given(given["fuse_rate"]),
        download=defaults.download.given(given["download_rate"]),
        ram=defaults.ram.given(given["ram_rate"]),
        bucket=defaults.bucket.given(given["bucket_rate"]),
        headroom=defaults.headroom.given(given["headroom"]),
        overlap=defaults.overlap.given(given["overlap_hours"]),
        object_size=defaults.object_size.given(given["object_size"]),
        fuse_chunk=defaults.fuse_chunk.given(given["fuse_chunk"]),
        download_part=defaults.download_part.given(given["download_part"]),
    )
