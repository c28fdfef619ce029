"""What the options of `spotrail audit` mean together: which go with which, and what to type next."""

from __future__ import annotations

import datetime
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from scripts.options import STDIN

OF_A_PLAN: Final = frozenset({"source", "do", "yes", "endpoint", "now", "output_file", "quiet"})
"""Options that mean something where --from names a plan."""
OF_THE_PLACE: Final = ("endpoint", "now")
OF_THE_TERMS: Final = ("window", "grace", "per_vm_cap", "schedules", "prices", "as_of")
_HOUR: Final = datetime.timedelta(hours=1)


def check(context: click.Context) -> None:
    """Refuse options that contradict each other, or that would mean nothing. Raises UsageError."""
    given = context.params
    if (given["project"] is None) == (given["source"] is None):
        raise click.UsageError("Name one of --project ID (a live project) and --from FILE (a recorded one).")
    if given["yes"] and not given["do"]:
        raise click.UsageError("--yes answers the questions of --apply, and there is no --apply.")
    if given["now"] is not None and given["endpoint"] is None:
        raise click.UsageError("--now is the clock of --endpoint, and there is none; Google's has its own.")
    if given["source"] is not None and given["endpoint"] is not None and not given["do"]:
        raise click.UsageError("--endpoint is where --project and --apply go; --from FILE alone asks no cloud.")
    for name in ("resources", "stack"):
        if given[name] and not (given["do"] or given["plan_file"]):
            raise click.UsageError(f"{_option(context, name)} chooses what --plan and --apply touch; there is neither.")
    if given["do"] and not given["yes"] and (given["source"] == STDIN or sys.stdin is None or not sys.stdin.isatty()):
        raise click.UsageError(
            "--apply asks before each step, and nobody is there to answer; review --plan, then --yes."
        )
    _check_files(given)


def _check_files(given: dict[str, Any]) -> None:
    """No file is written twice, and none that is read."""
    written = {"--output": given["output_file"], "--record": given["record_file"], "--plan": given["plan_file"]}
    on_output = [name for name, path in written.items() if str(path) == STDIN or (name == "--output" and path is None)]
    if len(on_output) > 1:
        raise click.UsageError(
            f"{' and '.join(on_output)} would both go to standard output; name a file with {on_output[0]} FILE."
        )
    seen: dict[Path, str] = {}
    read = {"--from": given["source"], "--prices": given["prices"]}
    for name, path in (*read.items(), *written.items()):
        if path is None or str(path) == STDIN or (Path(path).exists() and not Path(path).is_file()):
            continue
        if (first := seen.setdefault(_place(Path(path)), name)) != name:
            raise click.UsageError(f"{first} and {name} are the same file, {path}; name another one.")


def _place(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):  # no name of a file; who opens it says so
        return path


def check_plan_options(context: click.Context) -> None:
    """Refuse what would choose among the remedies of a plan that is written already. Raises UsageError."""
    useless = [_option(context, name) for name in _said(context) if name not in OF_A_PLAN]
    if context.params["do"] and context.params["output_file"] is not None:
        useless.append("--output")
    if useless:
        raise click.UsageError(
            f"{context.params['source']} is a plan, which is shown, or done with --apply, as it is; {useless[0]} means "
            "nothing for it. Take whole measures out of the file, or write another one from the record."
        )


def next_steps(context: click.Context, *, remedies: bool) -> Iterator[str]:
    """Commands that can be typed as they stand: a recorded file is judged again for nothing."""
    given = context.params
    place = _words(context, OF_THE_PLACE)
    if given["plan_file"] is not None and str(given["plan_file"]) != STDIN:
        yield _line("--from", str(given["plan_file"]))
        yield _line("--from", str(given["plan_file"]), "--apply", *place)
        return
    file = str(given["record_file"]) if given["record_file"] else given["source"]
    terms = _words(context, OF_THE_TERMS)
    if file not in (None, STDIN):
        if remedies:
            yield _line("--from", file, *terms, "--plan", "remedies.json")
        return
    if given["project"] is not None:
        live = ("--project", given["project"], *place, *terms)
        yield _line(*live, "--record", "week.json")
        if remedies:
            yield _line(*live, "--plan", "remedies.json")


def _line(*words: str) -> str:
    return shlex.join(("spotrail", "audit", *words))


def _said(context: click.Context) -> Iterator[str]:
    """The names of the options that were typed."""
    for name in context.params:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            yield name


def _words(context: click.Context, names: tuple[str, ...]) -> Iterator[str]:
    """What was typed of these options, again."""
    said = set(_said(context))
    for name in names:
        value = context.params[name]
        for each in value if isinstance(value, tuple) else (value,):
            if name in said:
                yield from (_option(context, name), _text(each))


def _text(value: object) -> str:
    if isinstance(value, datetime.timedelta):
        return f"{value // _HOUR}h"
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def _option(context: click.Context, name: str) -> str:
    return next(parameter.opts[0] for parameter in context.command.params if parameter.name == name)
