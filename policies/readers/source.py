"""The way in: a path, or `-` for standard input, to a `Reading`."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final

from policies.changes import Reading
from policies.readers.document import Json, Parser
from policies.readers.encoding import decoded
from policies.readers.errors import ReadError
from policies.readers.notes import Notes
from policies.readers.registry import Source, readers
from policies.readers.stack_name import StackName, chosen, refuse_two_stacks
from policies.readers.values import Values
from policies.resources import ResourceError

STDIN: Final = "standard input"
LARGEST: Final = 1 << 30
"""Bytes of a source; a stack of a million resources is smaller."""


def open_source(path_or_dash: str, stdin: BinaryIO | None = None, wanted: StackName | None = None) -> Reading:
    """The reading of the file at that path, or of `stdin` (by default the process's own) for `-`. Raises ReadError."""
    if path_or_dash == "-":
        return read_source(STDIN, sys.stdin.buffer if stdin is None else stdin, wanted)
    try:
        with Path(path_or_dash).open("rb") as stream:
            return read_source(path_or_dash, stream, wanted)
    except (OSError, ValueError) as error:
        if isinstance(error, ReadError):
            raise
        raise ReadError(f"{path_or_dash}: cannot be read: {_reason(error)}") from None


def read_source(place: str, stream: BinaryIO, wanted: StackName | None = None) -> Reading:
    """The reading of all bytes of `stream`, which messages call `place`.

    With `wanted`, the stream may hold several documents, of which the one of that stack is read. Raises ReadError for
    what is none of the known documents, and for one that is broken or holds what cannot be.
    """
    with _no_collection():
        return _reading(decoded(_content(place, stream), place), place, wanted)


@contextmanager
def _no_collection() -> Iterator[None]:
    """What is read has no cycles, and the collector would walk all of it again and again: a sixth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _reading(text: str, place: str, wanted: StackName | None) -> Reading:
    values = Values()
    elements = {
        path: partial(_converted, convert, values) for reader in readers() for path, convert in reader.elements.items()
    }
    parser = Parser(text, place, elements)
    _refuse_other_text(parser, place)
    readings = [_document(parser, values, place)]
    while wanted and parser.next_character == "{":
        readings.append(_document(parser, values, place))
    reading = chosen(readings, wanted, place)
    return replace(reading, notes=(*reading.notes, *_rest(parser, place)))


def _document(parser: Parser, values: Values, place: str) -> Reading:
    values.revealed, notes = False, Notes()
    try:
        first = parser.document()
        source = Source(place=place, first=first, following=parser.documents(), values=values, notes=notes)
        reading = _read(source)
    except ResourceError as error:
        raise ReadError(f"{place}: {error}") from None
    refuse_two_stacks((each.urn for side in (reading.before or (), reading.after) for each in side), place)
    if values.revealed:
        notes.add("secret whole numbers that stand in the clear in this input are counted")
    return replace(reading, notes=(*reading.notes, *notes.written()))


def _converted(convert: Callable[[Json, str, Values], object], values: Values, element: Json, where: str) -> object:
    return convert(element, where, values)


def _content(place: str, stream: BinaryIO) -> bytes:
    try:
        content = stream.read(LARGEST + 1)
    except OSError as error:
        raise ReadError(f"{place}: cannot be read: {_reason(error)}") from None
    if len(content) > LARGEST:
        raise ReadError(f"{place}: larger than {LARGEST >> 20:,} MiB; no stack is")
    return content


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def _refuse_other_text(parser: Parser, place: str) -> None:
    if parser.ended:
        raise ReadError(f"{place}: it is empty; Pulumi wrote nothing, look at its exit code and at stderr. {_ways()}")
    if parser.next_character == "[":
        raise ReadError(f"{place}: it is a JSON list, which is no document of a stack. {_ways()}")
    if parser.next_character != "{":
        raise ReadError(
            f"{place}: {parser.position()}: text that is no JSON stands first; keep logs out of the file "
            f"(--logtostderr writes them to stderr). {_ways()}"
        )


def _read(source: Source) -> Reading:
    for reader in readers():
        if reader.claims(source.first):
            return reader.read(source)
    raise ReadError(f"{source.place}: {_what(source.first)}. {_ways()}")


def _what(first: Mapping[str, object]) -> str:
    """What a document is that no reader claims."""
    schema = first.get("schema")
    if isinstance(schema, str) and schema.startswith("spotrail."):
        advice = "; compare estimates with: spotrail diff" if schema.startswith("spotrail.estimate/") else ""
        return f"it is a report of spotrail itself ({schema[:40]}), not a stack{advice}"
    if "projects" in first and ("totalMonthlyCost" in first or "currency" in first):
        return "it is an estimate of infracost, not a stack; give the preview or the state that it was made of"
    if "planned_values" in first or "terraform_version" in first:
        return "it is a plan or state of Terraform, not of Pulumi"
    if "result" in first or "changes" in first:
        return "it looks like the outcome of an update, not a preview or a state"
    keys = ", ".join(list(first)[:5])
    return f"it is JSON, but neither a preview nor a state (it has {keys or 'nothing in it'})"[:300]


def _ways() -> str:
    return f"spotrail reads: {', '.join(reader.title for reader in readers())}."


def _rest(parser: Parser, place: str) -> Iterator[str]:
    """The note on what stands after the documents."""
    if parser.ended:
        return
    if parser.next_character in "{[":
        raise ReadError(
            f"{place}: {parser.position()}: a second document begins here; give one file at a time, or name the stack "
            "that is meant with --stack"
        )
    yield f"text after the JSON was left out, from {parser.position()}"
