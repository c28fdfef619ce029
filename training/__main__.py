"""`python -m training`: train, and what stands beside it. Heavy imports wait until a command needs them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

import click

from training.checkpoint.errors import BucketError, ResumeRefusedError, SaveFailedError, StoreError
from training.commands.arguments import HELP, Commands, Place
from training.errors import MachineError, TrainingError
from training.exit_codes import ExitCode
from training.preemption import Notice

COMMANDS: Final = ("checkpoints", "export", "prepare")
"""One module of `training.commands` each."""


class _Commands(Commands):
    """Loads the module of a command when it is called, or its help is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"training.commands.{cmd_name}").command
        return command


@click.group(cls=_Commands, invoke_without_command=True, context_settings=HELP)
@click.option(
    "--config", type=Place("copy the file to a disk first"), metavar="FILE", help="What to train: a YAML file."
)
@click.option(
    "--set", "overrides", multiple=True, metavar="FIELD=VALUE", help="Set one field, by its path; may be repeated."
)
@click.option(
    "--run-dir",
    type=Place("a run's folder is on a disk, and --set checkpoint.root=gs://bucket/prefix puts the checkpoints there"),
    metavar="DIR",
    help="The run's folder, on a disk.  [default: runs/NAME]",
)
@click.option("--fresh", is_flag=True, help="Start at step 0 though there are checkpoints. They are kept.")
@click.option("--allow-changes", is_flag=True, help="Go on though the configuration or the data were changed.")
@click.option("--quiet", is_flag=True, help="No progress; what goes wrong is still said.")
@click.pass_context
def main(
    context: click.Context,
    config: Path | None,
    overrides: tuple[str, ...],
    run_dir: Path | None,
    fresh: bool,
    allow_changes: bool,
    quiet: bool,
) -> None:
    """Train a language model; started again, the same command goes on from the newest valid checkpoint.

    \b
    Examples:
      python -m training prepare --corpus shakespeare --out data/shakespeare
      python -m training --config training/configs/shakespeare.yaml
      python -m training --config training/configs/shakespeare.yaml --set optim.type=adamw --set steps=500

    Exit codes: 0 finished; 1 a bug, or the machine failed; 2 a mistake in configuration or data; 5 the bucket failed;
    6 preempted, and the last finished step is committed; 7 the checkpoints are of another model, optimizer or data;
    8 diverged; 130 stopped by Ctrl-C.
    """
    if context.invoked_subcommand is not None:
        if config is not None or overrides or run_dir is not None or fresh or allow_changes or quiet:
            raise click.UsageError(
                f"--config, --set, --run-dir and --fresh are for training, not {context.invoked_subcommand}"
            )
        return
    if config is None:
        raise click.UsageError("name a configuration with --config, or a command: " + ", ".join(COMMANDS))
    began = time.time()
    # Before the imports, which take seconds in which capacity can go as well.
    notice = Notice()
    from training.commands.train import Options, train
    from training.progress import RunConsole

    console = RunConsole(stderr=True, highlight=False)
    options = Options(fresh=fresh, allow_changes=allow_changes, quiet=quiet)
    code = train(config, overrides, run_dir, options, console=console, notice=notice, began=began)
    notice.settle()
    context.exit(code)


def run(arguments: Sequence[str]) -> int:
    """The exit code of one command line; a mistake of the user is one message and no traceback."""
    try:
        code = main.main(args=list(arguments), prog_name="python -m training", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("stopped", err=True)
        return ExitCode.STOPPED
    except click.ClickException as error:
        error.show()
        return ExitCode.BAD_INPUT
    except ResumeRefusedError as error:
        click.echo(f"error: {error}", err=True)
        return ExitCode.RESUME_REFUSED
    except TrainingError as error:
        click.echo(f"error: {error}", err=True)
        return ExitCode.BAD_INPUT
    except (MachineError, StoreError, SaveFailedError) as error:
        click.echo(f"error: {error}", err=True)
        of_a_bucket = isinstance(error, BucketError) or isinstance(error.__cause__, BucketError)
        return ExitCode.CLOUD_FAILED if of_a_bucket else ExitCode.BUG
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package == "training":
            raise
        click.echo(f"error: training needs {package}, which is not installed: pip install 'spotrail[train]'", err=True)
        return ExitCode.BAD_INPUT
    except SystemExit:
        # By click, where the reader of a pipe has gone: it has read what it wanted.
        return ExitCode.FINE
    except OSError as error:
        # What no room has foreseen: a disk that is full, a folder that went away.
        click.echo(f"error: {error.filename or 'the machine'}: {error.strerror or error}", err=True)
        return ExitCode.BUG
    return int(code or ExitCode.FINE)


def flushed(code: int) -> int:
    """The exit code when all that was said has been written; a reader who has gone has read what it wanted."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except BrokenPipeError:
            continue
        except OSError as error:
            click.echo(f"error: standard output: cannot be written: {error.strerror}", err=True)
            code = code or ExitCode.BUG
    return code


if __name__ == "__main__":
    ended = flushed(run(sys.argv[1:]))
    # Everything is closed. What still runs are threads inside native code (of a compilation that Ctrl-C left, of a
    # client), which do not survive an orderly end: the process would die of a signal instead of its exit code.
    os._exit(ended)
