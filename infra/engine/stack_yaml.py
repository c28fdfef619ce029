"""YAML as Pulumi reads it: the rules of Go's yaml.v3, under which `yes` is text and a bare date is a timestamp.

PyYAML follows YAML 1.1 (`yes` is true, `1:30` is 90, `1e3` is text); a stack file must mean the same in an offline
preview and under `pulumi up`.
"""

from __future__ import annotations

import datetime
import math
import re
from pathlib import Path
from typing import Final, TypeAlias, final

import yaml

from infra.engine.errors import ProjectError

Yaml: TypeAlias = "bool | int | float | str | list[Yaml] | dict[str, Yaml] | None"

_CONSTANTS: Final[dict[str, bool | float | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_INTEGER: Final = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_LEAST: Final = -(2**63)
_MOST: Final = 2**64 - 1
"""Go keeps what an int64 or a uint64 holds; what is longer becomes a float there."""
_BIGGEST: Final = 1 << 20
"""Bytes of a file beyond which it is not one that anybody wrote."""
_MOST_VALUES: Final = 100_000
"""Values of a document with its aliases opened up: nine lines of them can stand for a billion."""
_STRING_TAG: Final = "tag:yaml.org,2002:str"
_MERGE: Final = "<<"


def load_yaml(path: Path) -> Yaml:
    """The document in `path`; None for an empty file. Raises ProjectError naming file and line."""
    try:
        node = yaml.compose(_text(path), Loader=yaml.BaseLoader)
        return None if node is None else _Reader().value(node)
    except UnicodeDecodeError as error:
        raise ProjectError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    except OSError as error:
        raise ProjectError(f"{path}: cannot be read: {error.strerror}") from None
    except RecursionError:
        raise ProjectError(f"{path}: its lists and mappings are nested too deeply, or one stands in itself") from None
    except yaml.MarkedYAMLError as error:
        line = f"{path}:{error.problem_mark.line + 1}" if error.problem_mark else f"{path}"
        raise ProjectError(f"{line}: not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise ProjectError(f"{path}: not valid YAML: {error}") from None


def _text(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(_BIGGEST + 1)
    if len(content) > _BIGGEST:
        raise ProjectError(f"{path}: has more than {_BIGGEST >> 20} MiB; settings are smaller, put data elsewhere")
    return content.decode("utf-8-sig")


@final
class _Reader:
    """Turns the nodes of one document into values, and counts them."""

    def __init__(self) -> None:
        self._left = _MOST_VALUES

    def value(self, node: yaml.Node) -> Yaml:
        """The value of `node`. Raises MarkedYAMLError."""
        self._left -= 1
        if self._left < 0:
            raise _broken(f"more than {_MOST_VALUES:,} values, those of aliases included", node)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item) for item in node.value]
        if isinstance(node, yaml.ScalarNode) and node.style is None and node.tag == _STRING_TAG:
            return _plain(node.value)
        return str(node.value)

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Yaml]:
        found: dict[str, Yaml] = {}
        merged: dict[str, Yaml] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise _broken("a key must be text, not a list or a mapping", key_node)
            key = key_node.value
            if key == _MERGE and key_node.style is None:
                merged = {**self._merged(value_node), **merged}
            elif key in found:
                raise _broken(f'the key "{key}" stands twice', key_node)
            else:
                found[key] = self.value(value_node)
        return {**merged, **found}

    def _merged(self, node: yaml.Node) -> dict[str, Yaml]:
        """What `<<` brings in; of several mappings the first that has a key gives its value."""
        merged: dict[str, Yaml] = {}
        for source in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(source, yaml.MappingNode):
                raise _broken(f"{_MERGE} takes a mapping or a list of mappings", source)
            merged = {**self._mapping(source), **merged}
        return merged


def _broken(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


def _plain(text: str) -> Yaml:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    number = _INTEGER.fullmatch(text.replace("_", ""))
    if number:
        return _integer(number[1], number[2])
    if _FLOAT.fullmatch(text.replace("_", "")):
        return float(text.replace("_", ""))
    date = _DATE.fullmatch(text)
    return _timestamp(text, *map(int, date.groups())) if date else text


def _integer(sign: str, digits: str) -> int | float:
    octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    size = int(digits, 8) if octal else int(digits, 0)
    number = -size if sign == "-" else size
    return number if _LEAST <= number <= _MOST else float(number)


def _timestamp(text: str, year: int, month: int, day: int) -> str:
    try:
        return f"{datetime.date(year, month, day).isoformat()}T00:00:00Z"
    except ValueError:
        return text
