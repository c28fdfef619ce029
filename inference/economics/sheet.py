"""A file of sizes, YAML or JSON: every key once, every value as its text, and nothing silently lost."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn, TypeAlias, final

import yaml

from inference.economics.figures import count
from policies.errors import InputError
from policies.hardware.errors import hint

BIGGEST: Final = 2**20
"""Bytes of such a file; more is another one."""
MOST_NODES: Final = 20_000
"""Values in it: aliases of YAML can make a small file a large one."""
_NOTHING: Final = ("", "~", "null", "Null", "NULL")
_TRUTHS: Final = {"true": True, "false": False}

Node: TypeAlias = "Sheet | list[Node] | str | None"


@final
@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A mapping in the file."""

    where: str
    """What a message begins with: the file, and the path of the mapping in it."""
    entries: Mapping[str, Node]
    lines: Mapping[str, int]
    """The line of each key."""

    def refuse(self, name: str, message: str) -> NoReturn:
        """Raises InputError about one entry."""
        line = f" (line {self.lines[name]})" if name in self.lines else ""
        raise InputError(f"{self.where}{name}{line}: {message}")

    def check_names(self, known: Collection[str]) -> None:
        """Raises InputError for the first entry that is none of `known`, with the closest of them."""
        for name in self.entries:
            if name not in known:
                said = hint(name, known) or f" There are: {', '.join(sorted(known))}."
                self.refuse(name, f"there is no such field.{said}")

    def whole(self, name: str, default: int | None = None, *, least: int = 1, most: int = 10**12) -> int:
        """A whole number, which must be there where it has no default."""
        found = self.optional(name, least=least, most=most)
        if found is not None:
            return found
        if default is None:
            self.refuse(name, "is missing; it is a whole number")
        return default

    def optional(self, name: str, *, least: int = 1, most: int = 10**12) -> int | None:
        """A whole number, or None where none is given or it is null."""
        found = self.entries.get(name)
        if found is None:
            return None
        try:
            value = 0 if found == "0" else count(self._text(name))
        except InputError:
            self.refuse(name, f"is {self._text(name)!r}; it is a whole number, such as 2048 or 1.3B")
        if not least <= value <= most:
            self.refuse(name, f"is {value:,}; it is from {least:,} to {most:,}")
        return value

    def truth(self, name: str, default: bool) -> bool:
        """true or false."""
        if self.entries.get(name) is None:
            return default
        found = _TRUTHS.get(self._text(name).lower())
        if found is None:
            self.refuse(name, f"is {self._text(name)!r}; it is true or false")
        return found

    def choice(self, name: str, choices: Collection[str], default: str) -> str:
        """One of the words."""
        if self.entries.get(name) is None:
            return default
        word = self._text(name)
        if word not in choices:
            self.refuse(name, f"is {word!r}; it is one of {', '.join(choices)}.{hint(word, choices)}")
        return word

    def text(self, name: str, default: str) -> str:
        """A line of text."""
        return default if self.entries.get(name) is None else self._text(name)

    def sheets(self, name: str) -> tuple[Sheet, ...]:
        """A list of mappings, at least one."""
        found = self.entries.get(name)
        if found is None:
            self.refuse(name, "is missing; it is a list of mixers, such as [{type: ssd}]")
        if not isinstance(found, list) or not found:
            self.refuse(name, "is no list with something in it; it is a list of mixers, such as [{type: ssd}]")
        sheets = []
        for number, item in enumerate(found):
            if not isinstance(item, Sheet):
                self.refuse(name, f"[{number}] is no mapping; a mixer is {{type: ...}} with its sizes")
            sheets.append(item)
        return tuple(sheets)

    def _text(self, name: str) -> str:
        found = self.entries[name]
        if not isinstance(found, str):
            self.refuse(name, "is a list or a mapping; it is a single value")
        return found


def read_sheet(path: Path) -> Sheet:
    """The mapping in the file. Raises InputError where it cannot be read or is none."""
    try:
        with path.open("rb") as file:
            content = file.read(BIGGEST + 1)
        if len(content) > BIGGEST:
            raise InputError(f"{path}: has more than {BIGGEST:,} bytes; sizes of a model need a few lines")
        root = yaml.compose(content.decode("utf-8-sig"), Loader=yaml.SafeLoader)
        found = _Reader(str(path)).node(root, f"{path}: ") if root else None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; name a config.json or a YAML file of sizes") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply for a file of sizes") from None
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: neither YAML nor JSON: {' '.join(str(error).split())}") from None
    if not isinstance(found, Sheet):
        raise InputError(f"{path}: holds no mapping; sizes of a model are fields such as d_model: 2048")
    return found


@final
class _Reader:
    """Turns nodes of YAML into sheets, counting them."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen = 0

    def node(self, node: yaml.Node, where: str) -> Node:
        self._seen += 1
        if self._seen > MOST_NODES:
            raise InputError(f"{self._path}: has more than {MOST_NODES:,} values; sizes of a model need a few lines")
        if isinstance(node, yaml.MappingNode):
            return self._sheet(node, where)
        if isinstance(node, yaml.SequenceNode):
            return [self.node(each, f"{where}[{number}].") for number, each in enumerate(node.value)]
        if not isinstance(node, yaml.ScalarNode):
            raise InputError(f"{self._path}: holds what is no value")
        return None if node.style is None and node.value in _NOTHING else str(node.value)

    def _sheet(self, node: yaml.MappingNode, where: str) -> Sheet:
        entries: dict[str, Node] = {}
        lines: dict[str, int] = {}
        for key, line, value in self._pairs(node):
            if key in entries:
                raise InputError(f"{where}{key} stands twice, on lines {lines[key]} and {line}")
            lines[key] = line
            entries[key] = self.node(value, f"{where}{key}")
        return Sheet(where=where, entries=entries, lines=lines)

    def _pairs(self, node: yaml.MappingNode) -> Iterator[tuple[str, int, yaml.Node]]:
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise InputError(f"{self._path}: the key on line {line} is no word")
            yield key.value, line, value
