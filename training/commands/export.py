"""`python -m training export`: from a checkpoint to a folder that can be served."""

from __future__ import annotations

import json
from pathlib import Path

import click

from training.commands.arguments import HELP, Address, Place

_OUT = Place("export to a disk, and copy the folder there afterwards")


@click.command(
    "export", context_settings=HELP, short_help="Write the weights of a checkpoint as a model that can be served."
)
@click.argument("checkpoint", type=Address())
@click.argument("out", type=_OUT)
@click.option("--run", metavar="NAME", help="Whose newest checkpoint is taken, where several runs have some there.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(checkpoint: str, out: Path, run: str | None, form: str) -> None:
    """Write CHECKPOINT as a model: config.json, model.safetensors, tokenizer.json, chat_template.jinja, MANIFEST.json.

    CHECKPOINT is a checkpoint, or a folder or gs:// prefix of them, whose newest valid one is taken: never
    one that its run set aside when it was started over, unless it is named itself. OUT must be new.
    The digest that is printed last names the model volume: it goes into `spotrail:model.manifest_sha256`.

    \b
    Example:
      python -m training export runs/shakespeare/checkpoints export/
      python -m inference --weights export/ --port 8000
    """
    from training.export import export_checkpoint

    exported = export_checkpoint(checkpoint, out, run=run)
    for why in exported.skipped:
        click.echo(f"stepped over: {why}", err=True)
    if form == "json":
        told = {
            "checkpoint": exported.checkpoint,
            "skipped": list(exported.skipped),
            "folder": str(exported.folder),
            "files": dict(exported.files),
        }
        click.echo(json.dumps({**told, "manifest_sha256": exported.manifest_sha256}, indent=2))
        return
    click.echo(f"{exported.folder}: the model of {exported.checkpoint}")
    for name, size in exported.files.items():
        click.echo(f"{size:>14,}  {exported.folder / name}")
    click.echo(f"manifest sha256 {exported.manifest_sha256}")
