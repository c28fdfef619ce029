"""YAML as a configuration may have it: one document, no key twice, numbers as people write them."""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, Final

import yaml

from training.errors import TrainingError

BIGGEST: Final = 1 << 20
"""Bytes of a configuration; more is another file."""
_KINDS: Final = {str: "text", list: "a list", type(None): "nothing"}
_FLOAT: Final = re.compile(r"^[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9]+)[eE][-+]?[0-9]+$")


class _Loader(yaml.SafeLoader):
    """YAML 1.1 takes 1e-3 for a word and keeps the last of two equal keys; people mean neither."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, f"a key on line {line} is no word", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key.value!r} stands twice, on lines {seen[key.value]} and {line}", key.start_mark
                )
            seen[str(key.value)] = line
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))


def parse(text: str, where: str) -> Any:
    """The value that `text` says; `where` names it in messages.

    Raises TrainingError where it is no YAML, with the line.
    """
    try:
        # A SafeLoader by inheritance: it makes plain data only.
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError) as error:
        raise TrainingError(f"{where}: not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise TrainingError(f"{where}: nested too deeply for a configuration") from None


def read(path: Path) -> dict[str, Any]:
    """The mapping in a file.

    Raises TrainingError where the file cannot be read, is not UTF-8, or is no mapping.
    """
    try:
        if path.stat().st_size > BIGGEST:
            raise TrainingError(f"{path}: {path.stat().st_size:,} bytes; a configuration has at most {BIGGEST:,}")
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise TrainingError(f"{path}: {error.strerror or error}; name a YAML file with --config") from None
    except UnicodeDecodeError as error:
        raise TrainingError(f"{path}: not UTF-8 at byte {error.start}") from None
    value = parse(text, str(path))
    if not isinstance(value, dict):
        raise TrainingError(
            f"{path}: holds {_KINDS.get(type(value), 'a value')}, and a configuration is a mapping of fields"
        )
    return value
