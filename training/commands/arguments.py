"""What a command line is made of: places on a disk, and groups of commands that know the closest name."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, final

import click

HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
"""Of every command."""


@final
class Place(click.Path):
    """A file or a folder of this machine.

    An empty one, as of a variable of the shell that is not set, would be the working folder; the address of a bucket
    would be a folder called `gs:`. Both are refused; `instead` says what to do with a bucket.
    """

    def __init__(self, instead: str) -> None:
        super().__init__(path_type=Path)
        self._instead = instead

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if not str(value).strip():
            self.fail("it is empty; name a file or a folder", param, ctx)
        if str(value).startswith("gs:"):
            self.fail(f"{value} is a bucket; {self._instead}", param, ctx)
        return Path(value)


@final
class Address(click.types.StringParamType):
    """A folder, or gs://bucket/prefix: what `open_store` takes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not value.strip():
            self.fail("it is empty; name a folder or gs://bucket/prefix", param, ctx)
        return str(value)


class Commands(click.Group):
    """Says which command a mistyped one is closest to."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            close = difflib.get_close_matches(args[0], known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
            ctx.fail(f"there is no command {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)
