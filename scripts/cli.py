"""The `spotrail` command: finds the subcommand, and turns what went wrong into the documented exit codes.

A subcommand is one file of this package, named in `COMMANDS`; it is imported only when it runs or when its own help
is asked for, so that `spotrail --help` stays instant.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final, NoReturn, final

import click

from policies.errors import InputError
from policies.exit_codes import ExitCode

COMMANDS: Final = {
    "plan": ("scripts.plan", "Price a stack before it exists: resources, components, findings, total."),
}
EPILOG: Final = f"Exit codes: {'; '.join(f'{code.value} {code.meaning}' for code in ExitCode)}."


@final
class Commands(click.Group):
    """A click group that knows its commands by name and imports each one late."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        close = difflib.get_close_matches(args[0], COMMANDS, n=1)
        if close and args[0] not in COMMANDS:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {close[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.command(cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="spotrail")
def spotrail() -> None:
    """Cost guardrails for language models on Cloud TPU spot capacity.

    Every stack has a price before it exists. Start with: spotrail plan dev
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. Neither bad input nor an interrupt: a bug, it propagates."""
    try:
        result = spotrail.main(args=arguments, prog_name="spotrail", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return 130
    except InputError as error:
        click.echo(f"error: {error}", err=True)
        return 2
    return result if isinstance(result, int) else 0


def main() -> NoReturn:
    """Entry point of the console script."""
    sys.exit(run())
