"""What goes wrong with a cloud, told in one line and with its exit code, for the commands that talk to one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec

import click

from scripts import output

if TYPE_CHECKING:
    from policies.exit_codes import ExitCode

P = ParamSpec("P")


def failures_told(command: Callable[P, ExitCode]) -> Callable[P, ExitCode]:
    """The command, which says on standard error what no API answered, and then exits 5."""

    @functools.wraps(command)
    def told(*args: P.args, **kwargs: P.kwargs) -> ExitCode:
        from policies.audit.live.failures import CloudError
        from policies.exit_codes import ExitCode

        try:
            return command(*args, **kwargs)
        except CloudError as error:
            click.echo(f"error: {output.printable(str(error))}", err=True)
            return ExitCode.CLOUD_FAILED

    return told
