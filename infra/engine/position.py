"""Where in the program a resource was made, and the order that follows from it.

Registrations reach the engine in an order that depends on timing. The stack traces that the SDK sends along do not:
the lines through which the program ran are the same each time, so the graph is in the order of the program.
"""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from pulumi.runtime.proto import source_pb2

Trace: TypeAlias = tuple[tuple[str, int], ...]
"""File and line of each of the program's own frames, outermost first."""

_DIGITS: Final = re.compile(r"([0-9]+)")


@cache
def runtime_folders() -> tuple[str, ...]:
    """The folders whose frames are not the program's: Python's library, the packages, and the language host."""
    paths = sysconfig.get_paths()
    places = {paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")} | {str(Path(__file__).parent)}
    return tuple(sorted(places))


def is_own(file: str) -> bool:
    """Whether `file` belongs to the program rather than to what runs it; `<string>` and the like are no files."""
    return not file.startswith(("<", *(f"{folder}/" for folder in runtime_folders())))


def trace_of(stack: source_pb2.StackTrace) -> Trace:
    """The program's own frames in `stack`, outermost first."""
    frames = ((unquote(urlsplit(frame.pc.uri).path), frame.pc.line) for frame in reversed(stack.frames))
    return tuple((file, line) for file, line in frames if file and is_own(file))


def shown(trace: Trace) -> str:
    """`__main__.py:12`, or nothing where no frame is the program's."""
    if not trace:
        return ""
    file, line = trace[-1]
    return f"{Path(file).name}:{line}"


def program_order(traces: Mapping[str, Trace], parents: Mapping[str, str], first: Iterable[str] = ()) -> list[str]:
    """The URNs of `traces` as a program makes them: children follow their parent, siblings by line, then by name.

    `parents` has the parent of each (empty for the root); `first` are URNs that come before their siblings.
    """
    ahead = {urn: place for place, urn in enumerate(first)}
    children: dict[str, list[str]] = {}
    for urn in traces:
        children.setdefault(parents.get(urn, ""), []).append(urn)
    for siblings in children.values():
        siblings.sort(key=lambda urn: (ahead.get(urn, len(ahead)), _lines(traces[urn]), _natural(urn)), reverse=True)
    ordered: list[str] = []
    waiting = list(children.get("", ()))
    while waiting:
        urn = waiting.pop()
        ordered.append(urn)
        waiting.extend(children.get(urn, ()))
    return ordered


def _lines(trace: Trace) -> tuple[int, ...]:
    return tuple(line for _, line in trace)


def _natural(text: str) -> Sequence[tuple[int, str]]:
    """`text` cut so that host-10 follows host-9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in _DIGITS.split(text)]
