"""The part of a program's traceback that its author can use: from the program's own file on, without what runs it."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from itertools import dropwhile
from pathlib import Path
from types import TracebackType
from typing import Final

from infra.engine.position import is_own

_RUNTIME: Final = frozenset({"pulumi", "asyncio", "runpy.py"})
_HEADER: Final = "Traceback (most recent call last):\n"


def own_part(error: BaseException, elsewhere: TracebackType | None = None) -> str:
    """`error` as Python shows it, each traceback of its chain cut to the program's own part.

    An error in an `apply` is awaited more than once, and after the first time asyncio forgets where it came from;
    `elsewhere` is the traceback that somebody kept.
    """
    shown = traceback.TracebackException.from_exception(error, compact=True)
    if elsewhere is not None and not _own_frames(shown):
        shown = traceback.TracebackException(type(error), error, elsewhere, compact=True)
    return "".join(_chain(shown)).rstrip()


def _chain(shown: traceback.TracebackException) -> Iterator[str]:
    before, link = _before(shown)
    # What only Pulumi's own code has raised on the way says the same once more.
    if before is not None and _own_frames(before):
        yield from _chain(before)
        yield link
    frames = _own_frames(shown)
    if frames:
        yield _HEADER
        yield from traceback.StackSummary.from_list(frames).format()
    yield from shown.format_exception_only()


def _before(shown: traceback.TracebackException) -> tuple[traceback.TracebackException | None, str]:
    if shown.__cause__ is not None:
        return shown.__cause__, "\nThe above exception was the direct cause of the following exception:\n\n"
    context = None if shown.__suppress_context__ else shown.__context__
    return context, "\nDuring handling of the above exception, another exception occurred:\n\n"


def _own_frames(shown: traceback.TracebackException) -> list[traceback.FrameSummary]:
    """The frames from the program's first on, those of Pulumi's runtime left out."""
    rest = dropwhile(lambda frame: not is_own(frame.filename), shown.stack)
    return [frame for frame in rest if not _is_runtime(frame.filename)]


def _is_runtime(file: str) -> bool:
    return file.startswith("<frozen ") or (not is_own(file) and bool(_RUNTIME & set(Path(file).parts[-4:])))
