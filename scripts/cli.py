"""The `spotrail` command: finds the subcommand, and turns what went wrong into the documented exit codes.

A subcommand is one file of this package, named in `COMMANDS`; it is imported only when it runs or when its own help
is asked for, so that `spotrail --help` stays instant.
"""

from __future__ import annotations

import contextlib
import difflib
import gc
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn, final

import click

COMMANDS: Final = {
    "plan": ("scripts.plan", "Price a stack before it exists: resources, components, findings, total."),
    "estimate": ("scripts.estimate", "Price a preview (before, after, difference) or a state, from Pulumi's files."),
    "diff": ("scripts.diff", "Show what one stack costs beyond another, resource by resource."),
    "check": ("scripts.check", "Judge a stack by rules and budgets, with one exit code an outcome: the gate for CI."),
    "audit": ("scripts.audit", "Find the money that runs idle in a live or recorded project, and what would stop it."),
    "guard": ("scripts.guard", "Run the guard once: look at a project, tell what is lost, do what is safe."),
    "wall": ("scripts.wall", "Show the memory wall of a model: what softmax and linear attention hold, do and cost."),
    "weights-plan": ("scripts.weights_plan", "Plan how servers read their weights: FUSE, Hyperdisk ML, boot download."),
    "prices": ("scripts.prices", "Show the price book, check its age, refresh it from the Cloud Billing Catalog."),
}
GC_THRESHOLDS: Final = (2_000_000, 20, 50)
INTERRUPTED: Final = 128 + signal.SIGINT
"""As shells say it."""
TERMINATED: Final = 128 + signal.SIGTERM


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

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from policies.exit_codes import ExitCode

        formatter.write_paragraph()
        formatter.write_text(f"Exit codes: {'; '.join(f'{code.value} {code.meaning}' for code in ExitCode)}.")


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="spotrail")
def spotrail() -> None:
    """Cost guardrails for language models on Cloud TPU spot capacity.

    Every stack has a price before it exists. Start with: spotrail plan dev
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code. Neither bad input nor an interrupt: a bug, it propagates."""
    # Imported here, so that what is installed beside us cannot come first: see `main`.
    from policies.errors import InputError
    from policies.exit_codes import ExitCode
    from scripts.output import printable

    try:
        result = spotrail.main(args=arguments, prog_name="spotrail", standalone_mode=False)
    except click.ClickException as error:
        with contextlib.suppress(OSError):  # the code says it where standard error takes nothing
            error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    except SystemExit as left:
        # click ends itself, with 1, where the reader of a help page has left.
        return TERMINATED if left.code == TERMINATED else ExitCode.FINE
    except InputError as error:
        with contextlib.suppress(OSError):
            click.echo(f"error: {printable(str(error))}", err=True)
        return ExitCode.BAD_INPUT
    return result if isinstance(result, int) else ExitCode.FINE


def main() -> NoReturn:
    """Entry point of the console script."""
    _fill_standard_streams()
    # A command keeps what it makes until it ends, and hardly any of it goes round in a circle: looking for garbage took
    # a twentieth of the time of a large stack and found nothing.
    gc.set_threshold(*GC_THRESHOLDS)
    signal.signal(signal.SIGTERM, _end)
    # Before PYTHONPATH, which may lead to a package `infra` of somebody else.
    sys.path.insert(0, str(Path(__file__).parents[1]))
    try:
        code = run()
    except KeyboardInterrupt:  # before click is there to take it
        code = INTERRUPTED
    sys.exit(code)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    """End as after Ctrl-C: with the cursor shown again and the program's process gone."""
    sys.exit(TERMINATED)


def _fill_standard_streams() -> None:
    """Occupy the descriptors of closed standard streams, so that no socket or file of ours is taken for one."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
