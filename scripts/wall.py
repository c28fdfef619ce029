"""`spotrail wall`: the memory wall of a model, softmax attention beside linear."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Final

import click

from scripts import options
from scripts.amounts import Amount, parsed
from scripts.sheet import Format, write

MOST: Final = 12
"""Contexts or batches of one answer."""
WEIGHTS: Final = ("float32", "bfloat16", "int8")
CACHES: Final = (*WEIGHTS, "float8")
"""As inference.economics.model_sizes has them, which is imported only when the command runs."""


@click.command(name="wall", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config",
    type=click.Path(exists=True, path_type=Path),
    required=True,
    metavar="FILE",
    help="The folder of an export, its config.json, or YAML with sizes (fields: inference/economics/model_sizes.py).",
)
@click.option("--contexts", default="4k,32k,128k,1m", show_default=True, help="Lengths of the requests, in tokens.")
@click.option("--batch", "batches", default="1,64", show_default=True, help="Requests that are decoded at once.")
@click.option("--shape", default="v6e-1", show_default=True, help="The slice that serves, as one server.")
@click.option("--zone", default="us-central1-b", show_default=True, help="Where a chip is priced.")
@click.option(
    "--capacity", type=click.Choice(("spot", "on-demand")), default="spot", show_default=True, help="How it is bought."
)
@click.option("--weights-dtype", type=click.Choice(WEIGHTS), help="Of the weights.  [default: the file's, or bfloat16]")
@click.option("--cache-dtype", type=click.Choice(CACHES), help="Of keys and values.  [default: likewise]")
@click.option("--heads", type=click.IntRange(min=1), help="Heads of the attention to compare with.")
@click.option(
    "--kv-heads", type=click.IntRange(min=1), help="Of keys and values of the grouped one.  [default: a quarter]"
)
@click.option("--mla-rank", type=click.IntRange(min=1), default=512, show_default=True, help="Latent of MLA, numbers.")
@click.option(
    "--mla-rope", type=click.IntRange(min=0), default=64, show_default=True, help="Its channels with positions."
)
@click.option(
    "--measured",
    multiple=True,
    metavar="TOK/S[@BATCH[@CONTEXT]]",
    help="Tokens a second that a benchmark gave, to stand beside the bound: 9000@64@4k. Without: the first of each.",
)
@click.option("--hbm", type=Amount(), help="Memory of a chip, GB.  [default: 32]")
@click.option("--bandwidth", type=Amount(), help="Bandwidth of the memory of a chip, GB/s.  [default: 1640]")
@click.option("--peak", type=Amount(), help="bf16 operations of a chip, TFLOP/s.  [default: 918]")
@click.option("--usable", type=Amount(most=1), help="Share of that memory that is not workspace.  [default: 0.9]")
@click.option("--snapshot-share", type=Amount(most=1), help="Share of the hosts' memory for prefixes.  [default: 0.5]")
@click.option(
    "--format",
    "form",
    type=click.Choice(Format, case_sensitive=False),
    default=Format.TABLE,
    show_default=True,
    help="A table or a page with plots for people, or strict JSON (spotrail.wall/1).",
)
@options.prices
@options.as_of
@options.output
def command(
    config: Path,
    contexts: str,
    batches: str,
    shape: str,
    zone: str,
    capacity: str,
    weights_dtype: str | None,
    cache_dtype: str | None,
    heads: int | None,
    kv_heads: int | None,
    mla_rank: int,
    mla_rope: int,
    measured: tuple[str, ...],
    hbm: Decimal | None,
    bandwidth: Decimal | None,
    peak: Decimal | None,
    usable: Decimal | None,
    snapshot_share: Decimal | None,
    form: Format,
    prices: Path | None,
    as_of: datetime.date,
    output_file: Path | None,
) -> int:
    """Show what a request holds and what a token costs: softmax attention (MHA, GQA, MLA) beside linear, by context.

    Bytes, requests that fit, tokens/s and dollars as bounds by arithmetic, and from where on linear attention wins
    something. Exits 4 where the book has no price for the chip.

    \b
    Examples:
      spotrail wall --config export/ --contexts 4k,128k,1m
      spotrail wall --config model.yaml --shape v6e-8 --measured 9000@64@4k --format html --output wall.html
    """
    # Imported here, so that help and mistyped options answer at once.
    from inference.economics.assumptions import BANDWIDTH, HBM, PEAK, SNAPSHOTS, USABLE
    from inference.economics.decoding import Machine
    from inference.economics.figures import count, tokens
    from inference.economics.model_sizes import read_sizes
    from inference.economics.variants import Choices
    from inference.economics.wall_json import wall_json
    from inference.economics.wall_report import wall_report
    from inference.memory_wall import memory_wall
    from policies.exit_codes import ExitCode
    from policies.hardware.slices import shape as shape_of
    from policies.hardware.zones import check_zone
    from policies.prices.book import PriceModel, load_book, shipped_book

    lengths, counts = parsed(contexts, tokens, "--contexts", MOST), parsed(batches, count, "--batch", MOST)
    check_zone(zone)
    machine = Machine(
        shape=shape_of(shape),
        hbm=HBM.given(hbm),
        bandwidth=BANDWIDTH.given(bandwidth),
        peak=PEAK.given(peak),
        usable=USABLE.given(usable),
        snapshots=SNAPSHOTS.given(snapshot_share),
    )
    wall = memory_wall(
        read_sizes(config, weights_dtype=weights_dtype, cache_dtype=cache_dtype),
        machine,
        lengths,
        counts,
        choices=Choices(heads=heads, kv_heads=kv_heads, mla_rank=mla_rank, mla_rope=mla_rope),
        book=load_book(prices) if prices else shipped_book(),
        zone=zone,
        capacity=PriceModel(capacity),
        as_of=as_of,
        measured=[_measured(text, counts[0], lengths[0]) for text in measured],
    )
    write(wall_report(wall), wall_json(wall), form, output_file)
    return ExitCode.UNDECIDED if wall.missing else ExitCode.FINE


def _measured(text: str, batch: int, context: int) -> tuple[Decimal, int, int]:
    from inference.economics.figures import count, tokens

    rate, *rest = text.split("@")
    if len(rest) > 2:
        raise click.BadParameter(f"{text!r} has more than a rate, a batch and a context", param_hint="--measured")
    try:
        found = Amount().convert(rate, None, None)
    except click.BadParameter as error:
        error.param_hint = "--measured"
        raise
    one = _of("--measured", count, rest[0]) if rest else batch
    return found, one, _of("--measured", tokens, rest[1]) if len(rest) > 1 else context


def _of(option: str, read: Callable[[str], int], text: str) -> int:
    return parsed(text, read, option, 1)[0]
