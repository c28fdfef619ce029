"""The file form of a record, `spotrail.record/1`: strict JSON, one resource or one time series a line.

Both ways work piece by piece: a week of ten thousand volumes has gigabytes of text and a tenth of that in memory.
"""

from __future__ import annotations

import difflib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, TypeVar, final

from policies.audit.files.json_stream import JsonStream, RecordError
from policies.audit.files.series_file import SeriesReader, rfc3339, written
from policies.audit.record import SCHEMA, Item, Metric, Missing, Part, Record, Series, Window
from policies.audit.times import instant
from policies.errors import InputError

__all__ = ["RecordError", "read_record", "write_record"]

STDIN: Final = "standard input"
_WAY_OUT: Final = "record it again with: spotrail audit --record FILE"
_NEEDED: Final = ("schema", "project", "recorded_at", "window")

_Key = TypeVar("_Key", Part, Metric)


def read_record(path_or_dash: str, stdin: BinaryIO | None = None) -> Record:
    """The record in the file at that path, or in `stdin` (by default the process's own) for `-`.

    Keys of the inventory and metrics that this version does not know are left out and said so in `notes`. A point
    whose value is no finite number is left out and counted in its series. Raises RecordError.
    """
    if path_or_dash == "-":
        if stdin is None and sys.stdin is None:
            raise RecordError("standard input is closed; name a file")
        return _read(STDIN, sys.stdin.buffer if stdin is None else stdin)
    try:
        with Path(path_or_dash).open("rb") as stream:
            return _read(path_or_dash, stream)
    except (OSError, ValueError) as error:
        if isinstance(error, RecordError):
            raise
        reason = error.strerror if isinstance(error, OSError) else f"{error}"
        raise RecordError(f"{path_or_dash}: cannot be read: {reason}") from None


def write_record(record: Record, stream: IO[str]) -> None:
    """Write the record; `read_record` gives an equal one. Write into a file by way of `scripts.output.opened`."""
    stream.writelines(_lines(record))


def _read(place: str, stream: BinaryIO) -> Record:
    return _Reading(JsonStream(stream, place), place).record()


@final
class _Reading:
    """One record that is being read."""

    def __init__(self, text: JsonStream, place: str) -> None:
        self._text = text
        self._place = place
        self._head: dict[str, Any] = {}
        self._inventory: dict[Part, tuple[Item, ...]] = {}
        self._metrics: dict[Metric, tuple[Series, ...]] = {}
        self._notes: list[str] = []

    def record(self) -> Record:
        if not self._text.peek():
            raise RecordError(f"{self._place}: it is empty; {_WAY_OUT}")
        for name in self._text.members(""):
            self._member(name)
        self._text.end()
        self._check_schema()
        absent = [name for name in _NEEDED if name not in self._head]
        if absent:
            raise self._refused(absent[0], f"is absent; a record has {', '.join(_NEEDED)}; {_WAY_OUT}")
        return Record(
            project=self._words(self._head["project"], "project"),
            recorded_at=self._time(self._head["recorded_at"], "recorded_at"),
            window=self._window(self._head["window"]),
            inventory=self._inventory,
            metrics=self._metrics,
            missing=tuple(self._missing(self._head.get("missing", []))),
            notes=(*self._given_notes(self._head.get("notes", [])), *self._notes),
        )

    def _member(self, name: str) -> None:
        if name == "inventory":
            self._inventory = self._lists(name, Part, self._items)
        elif name == "metrics":
            self._metrics = self._lists(name, Metric, self._series)
        elif name in (*_NEEDED, "missing", "notes"):
            self._head[name] = self._text.value(name)
        else:
            self._text.value(name[:60], lenient=True)
            self._notes.append(f'the record has a member "{name[:60]}", which this version of spotrail does not know')
        if name == "schema":
            self._check_schema()

    def _lists(self, name: str, keys: type[_Key], read: Callable[[_Key, str], Any]) -> dict[_Key, Any]:
        """The lists of the inventory or of the metrics by their key."""
        known = {key.value: key for key in keys}
        found: dict[_Key, Any] = {}
        for word in self._text.members(name):
            path = f"{name}.{word}"
            if word in known:
                found[known[word]] = read(known[word], path)
                continue
            for number in self._text.elements(path):
                self._text.value(f"{path}[{number}]", lenient=True)
            near = difflib.get_close_matches(word, known, 1, 0.8)
            hint = f" (did you mean {near[0]}?)" if near else ""
            self._notes.append(f'{name} has "{word[:80]}", which this version of spotrail does not judge{hint}')
        return found

    def _items(self, _: Part, path: str) -> tuple[Item, ...]:
        return tuple(self._item(f"{path}[{number}]") for number in self._text.elements(path))

    def _item(self, path: str) -> Item:
        item = self._text.value(path)
        if not isinstance(item, dict):
            raise self._refused(path, f"is {_shown(item)}; it must be a resource, an object")
        return item

    def _series(self, metric: Metric, path: str) -> tuple[Series, ...]:
        reader = SeriesReader()
        found: list[Series] = []
        for number in self._text.elements(path):
            place = f"{path}[{number}]"
            given = self._text.value(place, lenient=True)
            found.append(reader.read(given, metric, partial(self._fault, place)))
        return tuple(found)

    def _check_schema(self) -> None:
        schema = self._head.get("schema")
        if schema == SCHEMA:
            return
        if isinstance(schema, str) and schema.startswith("spotrail.record/"):
            raise self._refused("schema", f"is {_shown(schema)}; this version of spotrail reads {SCHEMA}; {_WAY_OUT}")
        if isinstance(schema, str) and schema.startswith("spotrail."):
            raise self._refused("schema", f"is {_shown(schema)}: a report, not a record; {_WAY_OUT}")
        said = f"is {_shown(schema)}" if "schema" in self._head else "is absent"
        raise self._refused("schema", f'{said}; a record begins with {{"schema": "{SCHEMA}", ...; {_WAY_OUT}')

    def _window(self, found: Any) -> Window:
        if not isinstance(found, dict) or not {"start", "end"} <= found.keys():
            raise self._refused("window", f'is {_shown(found)}; it must be {{"start": ..., "end": ...}}')
        start, end = (self._time(found[name], f"window.{name}") for name in ("start", "end"))
        try:
            return Window(start=start, end=end)
        except InputError as error:
            raise RecordError(f"{self._place}: {error}") from None

    def _missing(self, found: Any) -> Iterator[Missing]:
        for number, gap in enumerate(self._list(found, "missing")):
            path = f"missing[{number}]"
            if not isinstance(gap, dict) or not {"part", "why"} <= gap.keys():
                raise self._refused(path, f'is {_shown(gap)}; it must be {{"part": ..., "why": ...}}')
            yield Missing(
                part=self._words(gap["part"], f"{path}.part"), why=self._words(gap["why"], f"{path}.why", empty=True)
            )

    def _given_notes(self, found: Any) -> Iterator[str]:
        for number, note in enumerate(self._list(found, "notes")):
            yield self._words(note, f"notes[{number}]", empty=True)

    def _list(self, found: Any, path: str) -> list[Any]:
        if not isinstance(found, list):
            raise self._refused(path, f"is {_shown(found)}; it must be a list")
        return found

    def _words(self, found: Any, path: str, *, empty: bool = False) -> str:
        if not isinstance(found, str) or not (found or empty):
            raise self._refused(path, f"is {_shown(found)}; it must be text")
        return found

    def _time(self, found: Any, path: str) -> Any:
        try:
            return instant(self._words(found, path))
        except RecordError:
            raise
        except InputError as error:
            raise self._refused(path, f"{error}") from None

    def _fault(self, place: str, path: str, rule: str) -> RecordError:
        return self._refused(place + path, rule)

    def _refused(self, path: str, rule: str) -> RecordError:
        return RecordError(f"{self._place}: {path} {rule}")


def _lines(record: Record) -> Iterator[str]:
    window = {"start": rfc3339(record.window.start), "end": rfc3339(record.window.end)}
    yield f'{{"schema": "{SCHEMA}",\n'
    yield f' "project": {_shown_whole(record.project)},\n'
    yield f' "recorded_at": "{rfc3339(record.recorded_at)}",\n'
    yield f' "window": {_shown_whole(window)},\n "inventory": {{'
    yield from _members(record.inventory, lambda _, items: map(_shown_whole, items))
    yield '},\n "metrics": {'
    times: dict[float, str] = {}
    yield from _members(record.metrics, lambda metric, lines: (written(line, metric, times) for line in lines))
    yield '},\n "missing": ['
    yield from _list(_shown_whole({"part": gap.part, "why": gap.why}) for gap in record.missing)
    if record.notes:
        yield '],\n "notes": ['
        yield from _list(map(_shown_whole, record.notes))
    yield "]}\n"


def _members(lists: Mapping[_Key, tuple[Any, ...]], lines: Callable[[_Key, Any], Iterable[str]]) -> Iterator[str]:
    for number, (key, found) in enumerate(lists.items()):
        yield f'{"," if number else ""}\n  "{key.value}": ['
        yield from _list(lines(key, found))
        yield "]"


def _list(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"{',' if number else ''}\n   {line}"


def _shown(value: Any) -> str:
    return json.dumps(value, default=str)[:80]


def _shown_whole(value: Any) -> str:
    return json.dumps(value, allow_nan=False)
