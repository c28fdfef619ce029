"""`python -m training checkpoints`: what is there, whether it is whole, and what may go."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from training.commands.arguments import HELP, Address, Commands
from training.exit_codes import ExitCode

if TYPE_CHECKING:
    from training.checkpoint.inspection import Entry

_FORM = click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True, help="How to say it."
)
_ROOT = click.argument("root", metavar="DIR", type=Address())
_SHOWN = 5


@click.group(
    "checkpoints", cls=Commands, context_settings=HELP, short_help="List, verify and remove the checkpoints of a run."
)
def command() -> None:
    """List, verify and remove checkpoints in DIR, a folder or gs://bucket/prefix.

    \b
    Examples:
      python -m training checkpoints ls runs/shakespeare/checkpoints
      python -m training checkpoints verify gs://acme-checkpoints/shakespeare
      python -m training checkpoints rm runs/shakespeare/checkpoints 00000100-1
    """


@command.command("ls", short_help="List them; no array is read.")
@_ROOT
@_FORM
def ls(root: str, form: str) -> None:
    """List the checkpoints in DIR. No array is read: whether they are whole, `verify` says."""
    from training.checkpoint.inspection import listing, meant_instead

    entries = listing(root)
    if not entries and form == "table":
        click.echo(f"{root}: no checkpoints{meant_instead(root)}")
        return
    _show(entries, form, root, f"{root}: {_counted(len(entries))}")


@command.command("verify", short_help="Read every byte of them.")
@_ROOT
@click.argument("names", nargs=-1, metavar="[NAME]...")
@_FORM
def verify(root: str, names: tuple[str, ...], form: str) -> None:
    """Read every byte of the checkpoints in DIR, or of those named, and hold it against their manifests.

    The tokenizer beside them, which an export needs, is held against its digest.

    Nothing is changed. Exit code 1: one of them is damaged. What was never finished is no damage. Exit code 2: there is
    none to verify.
    """
    from training.checkpoint.inspection import verify as verified

    entries = verified(root, names)
    found = Counter("damaged" if entry.problems else _VERIFIED.get(entry.state.value, "whole") for entry in entries)
    said = ", ".join(f"{found[words]} {words}" for words in ("whole", "damaged", *_VERIFIED.values()) if found[words])
    _show(entries, form, root, f"{root}: {_counted(len(entries))}, every byte read: {said}")
    if any(entry.problems for entry in entries):
        click.get_current_context().exit(ExitCode.BUG)


_VERIFIED = {"incomplete or foreign": "not finished or foreign"}
"""What is said of a state in which there is nothing to verify."""


@command.command("rm", short_help="Delete some for good; asks before.")
@_ROOT
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--force", is_flag=True, help="Also the newest valid one, from which its run would go on.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def rm(root: str, names: tuple[str, ...], force: bool, yes: bool) -> None:
    """Delete checkpoints in DIR for good, whatever they are. Asks before."""
    from training.checkpoint.inspection import remove

    deleted = remove(root, names, force=force, agreed=lambda: yes or _agreed(root, names))
    for entry in deleted:
        click.echo(f"deleted {entry.prefix} ({entry.state.value})")
    if not deleted:
        click.echo("nothing was deleted", err=True)


def _agreed(root: str, names: Sequence[str]) -> bool:
    try:
        return click.confirm(f"Delete {', '.join(names)} in {root} for good?", err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise click.UsageError("nothing was deleted: nobody is there to be asked; say --yes") from None


def _counted(number: int) -> str:
    return "1 checkpoint" if number == 1 else f"{number} checkpoints"


def _show(entries: Sequence[Entry], form: str, root: str, answer: str) -> None:
    if form == "json":
        click.echo(json.dumps({"root": root, "checkpoints": [entry.to_json() for entry in entries]}, indent=2))
        return
    click.echo(answer)
    _print_table(entries)
    for entry in entries:
        for line in entry.problems[:_SHOWN]:
            click.echo(f"  {line}")
        if len(entry.problems) > _SHOWN:
            click.echo(f"  and {len(entry.problems) - _SHOWN} more of {entry.prefix}")


def _print_table(entries: Sequence[Entry]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for title, side in (("checkpoint", "left"), ("run", "left"), ("state", "left"), ("MiB", "right"), ("made", "left")):
        table.add_column(title, justify="right" if side == "right" else "left", no_wrap=True)
    for entry in entries:
        size = "" if entry.bytes is None else f"{entry.bytes / 2**20:,.1f}"
        table.add_row(entry.prefix, entry.run or "", entry.state.value, size, (entry.created or "")[:19])
    Console(highlight=False, soft_wrap=True).print(table)
