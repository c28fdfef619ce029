"""From plain YAML data to typed, frozen configuration, and back; every mistake is named by its path.

A configuration is a dataclass of numbers, text, enums, tuples, optional values and other such dataclasses. Where a
field may be one of several dataclasses, its entry `type` says which: each has a field `type` whose default is its name.
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
import re
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from training.errors import TrainingError
from training.yaml_file import parse

ConfigT = TypeVar("ConfigT")
TYPE: Final = "type"


def build(cls: type[ConfigT], data: Mapping[str, Any], where: str) -> ConfigT:
    """The configuration that `data` says, with the defaults of `cls` for what it leaves out.

    Raises TrainingError with every mistake, one a line: a field that does not exist (with the closest that does), one
    that is missing, a value of another kind, and what the dataclass itself refuses.
    """
    mistakes: list[str] = []
    built = _dataclass(cls, data, "", mistakes)
    if mistakes:
        raise TrainingError("\n".join(f"{where}: {mistake}" for mistake in mistakes))
    return cast("ConfigT", built)


def plain(config: Any) -> Any:
    """The plain data that `build` makes `config` of again."""
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        return {field.name: plain(getattr(config, field.name)) for field in dataclasses.fields(config)}
    if isinstance(config, enum.Enum):
        return config.value
    if isinstance(config, Path):
        return str(config)
    if isinstance(config, Mapping):
        return {key: plain(value) for key, value in config.items()}
    if isinstance(config, (tuple, list)):
        return [plain(value) for value in config]
    return config


def override(data: dict[str, Any], assignment: str) -> None:
    """Set the field `a.b.c` of an assignment `a.b.c=value` in place; a number in the path is a place in a list.

    A new `type` starts its entry afresh, since its fields are those of another thing.
    Raises TrainingError for what is no assignment, or a path that leads through a value.
    """
    path, equals, text = assignment.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise TrainingError(f"--set {assignment}: write FIELD.FIELD=VALUE, as in --set optim.type=adamw")
    value = parse(text, f"--set {assignment}")
    holder: Any = data
    for depth, key in enumerate(keys[:-1]):
        holder = _child(holder, key, ".".join(keys[: depth + 1]), assignment)
    last = keys[-1]
    if isinstance(holder, list):
        holder[_place(holder, last, assignment)] = value
    elif last == TYPE and holder.get(TYPE) != value:
        holder.clear()
        holder[TYPE] = value
    else:
        holder[last] = value


def _child(holder: Any, key: str, path: str, assignment: str) -> Any:
    if isinstance(holder, list):
        child = holder[_place(holder, key, assignment)]
    else:
        if holder.get(key) is None:
            holder[key] = {}
        child = holder[key]
    if not isinstance(child, (dict, list)):
        raise TrainingError(f"--set {assignment}: {path} is {child!r}, which has no fields")
    return child


def _place(holder: Sequence[Any], key: str, assignment: str) -> int:
    if not key.isdecimal() or int(key) >= len(holder):
        raise TrainingError(f"--set {assignment}: {key!r} is no place in a list of {len(holder)} (they count from 0)")
    return int(key)


def _dataclass(cls: Any, data: Any, path: str, mistakes: list[str]) -> Any:
    if not isinstance(data, Mapping):
        mistakes.append(f"{path or 'the file'} is {_shown(data)}; it has the fields {', '.join(_names(cls))}")
        return None
    hints = typing.get_type_hints(cls)
    before = len(mistakes)
    mistakes += [_unknown(str(key), path, cls) for key in data if key not in _names(cls)]
    values: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        inside = f"{path}.{field.name}" if path else field.name
        if field.name in data:
            values[field.name] = _value(hints[field.name], data[field.name], inside, mistakes)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            mistakes.append(f"{inside} is missing; it has no default")
    if len(mistakes) > before:
        return None
    try:
        return cls(**values)
    except TrainingError as error:
        # Some name their field from the root of the configuration already.
        named = not path or re.match(rf"{re.escape(path.split('.')[0])}[.:]", str(error))
        mistakes.append(str(error) if named else f"{path}.{error}")
        return None


def _value(hint: Any, data: Any, path: str, mistakes: list[str]) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _union(arguments, data, path, mistakes)
    if origin is tuple:
        return _tuple(arguments, data, path, mistakes)
    if origin is typing.Literal:
        return _one_of(arguments, data, path, mistakes)
    if dataclasses.is_dataclass(hint):
        return _dataclass(hint, data, path, mistakes)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _member(hint, data, path, mistakes)
    return _scalar(hint, data, path, mistakes)


def _union(arguments: tuple[Any, ...], data: Any, path: str, mistakes: list[str]) -> Any:
    if data is None and type(None) in arguments:
        return None
    rest = [argument for argument in arguments if argument is not type(None)]
    tagged = {_tag(argument): argument for argument in rest if dataclasses.is_dataclass(argument)}
    if len(rest) == 1 or not tagged:
        return _value(rest[0], data, path, mistakes)
    if not isinstance(data, Mapping) or data.get(TYPE) not in tagged:
        given = data.get(TYPE) if isinstance(data, Mapping) else data
        mistakes.append(f"{path}.{TYPE} is {_shown(given)}, not one of {', '.join(tagged)}{_closest(given, tagged)}")
        return None
    return _dataclass(tagged[data[TYPE]], data, path, mistakes)


def _tag(cls: Any) -> str:
    return str(next(field.default for field in dataclasses.fields(cls) if field.name == TYPE))


def _tuple(arguments: tuple[Any, ...], data: Any, path: str, mistakes: list[str]) -> Any:
    if not isinstance(data, list):
        mistakes.append(f"{path} is {_shown(data)}, not a list")
        return ()
    if arguments[-1] is not Ellipsis and len(data) != len(arguments):
        mistakes.append(f"{path} has {len(data)} entries, not {len(arguments)}")
        return ()
    hints = [arguments[0]] * len(data) if arguments[-1] is Ellipsis else list(arguments)
    pairs = enumerate(zip(hints, data, strict=True))
    return tuple(_value(hint, item, f"{path}.{place}", mistakes) for place, (hint, item) in pairs)


def _one_of(names: tuple[Any, ...], data: Any, path: str, mistakes: list[str]) -> Any:
    if data not in names:
        mistakes.append(f"{path} is {_shown(data)}, not one of {', '.join(map(str, names))}{_closest(data, names)}")
    return data


def _member(hint: type[enum.Enum], data: Any, path: str, mistakes: list[str]) -> Any:
    found = next((member for member in hint if member.value == data), None)
    if found is None:
        names = [str(member.value) for member in hint]
        mistakes.append(f"{path} is {_shown(data)}, not one of {', '.join(names)}{_closest(data, names)}")
    return found


_KINDS: Final[Mapping[type, str]] = types.MappingProxyType(
    {bool: "true or false", int: "a whole number", float: "a number", str: "text", Path: "a path"}
)


def _scalar(hint: Any, data: Any, path: str, mistakes: list[str]) -> Any:
    if hint is float and isinstance(data, int) and not isinstance(data, bool):
        try:
            return float(data)
        except OverflowError:
            mistakes.append(f"{path} is a whole number of {len(str(data))} digits; a number is below 1.8e308")
            return None
    if hint is Path and isinstance(data, str):
        return Path(data)
    if hint in _KINDS and type(data) is hint:
        return data
    mistakes.append(f"{path} is {_shown(data)}, not {_KINDS.get(hint, hint)}")
    return None


def _names(cls: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(cls)]


def _unknown(key: str, path: str, cls: Any) -> str:
    owner = path or "a run"
    return f"{path + '.' if path else ''}{key} is no field of {owner}{_closest(key, _names(cls))}"


def _closest(given: Any, names: Any) -> str:
    close = difflib.get_close_matches(str(given), [str(name) for name in names], n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(map(str, names))}"


def _shown(value: Any) -> str:
    """As YAML has it."""
    words = {None: "empty", True: "true", False: "false"}
    text = words[value] if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
