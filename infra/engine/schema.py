"""Inputs against the typed classes of the installed SDK: what a dict with a misspelt key gets past the SDK itself.

`pulumi._types` and the table of resource modules are private parts of the SDK; the lock file holds the version for
which the tests have seen them work. The check runs in the program's own process, where the classes are loaded.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import sys
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from pulumi import _types
from pulumi.runtime import rpc

from infra.engine.wire import Wire, is_opaque
from policies.resources import PROVIDER_PREFIX, dotted

_ITSELF: Final = ("pulumi", "pulumi-python")
"""Packages of the engine itself, whose resources have no typed inputs."""
_SHOWN: Final = 60
"""Characters of a value that a message shows."""
_KINDS: Final[Mapping[type, str]] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a mapping",
}

Path: typing.TypeAlias = "tuple[str | int, ...]"


def check(resources: Collection[Mapping[str, Any]]) -> list[str]:
    """What is wrong with `resources`, each with `urn`, `type`, `inputs` and `place` (such as `__main__.py:12`)."""
    problems: list[str] = []
    for resource in resources:
        token = resource["type"]
        if token.startswith(PROVIDER_PREFIX) or token.split(":")[0] in _ITSELF:
            continue
        found = input_class(token)
        said = problems_of(resource["inputs"], found, _name(token)) if found else [_unknown_type(token)]
        place = f"\n  at {resource['place']}" if resource["place"] else ""
        problems += [f"{resource['urn']}: {problem}{place}" for problem in said]
    return problems


def input_class(token: str) -> type | None:
    """The class of the inputs of a resource type; None where no installed SDK has the type."""
    package, _, rest = token.partition(":")
    for module in rpc._RESOURCE_MODULES.get(rpc._module_key(package, rest.rpartition(":")[0]), []):
        info: Mapping[str, Any] = getattr(module, "mod_info", {})
        name = info.get("classes", {}).get(token)
        if name is not None:
            resource = getattr(importlib.import_module(info["fqn"]), name)
            home = sys.modules[resource.__module__]
            # The generator writes InitArgs where an input type of the same name exists.
            found: type | None = getattr(home, f"{name}InitArgs", getattr(home, f"{name}Args", None))
            return found
    return None


def inputs_among(token: str, names: Collection[str]) -> list[str]:
    """Those of `names` that are inputs of a resource type; none where no SDK has the type."""
    found = input_class(token)
    return sorted(_types.input_type_types(found).keys() & names) if found else []


def problems_of(inputs: Mapping[str, Wire], expected: type, name: str) -> Iterator[str]:
    """What in `inputs` does not fit the class `expected`; `name` is what the user calls the resource type."""
    for path, said in _object(inputs, expected, ()):
        yield said.format(path=dotted(path), owner=name)


def _walk(value: Wire, expected: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if value is None or is_opaque(value) or expected is Any:
        return
    expected = _types.unwrap_type(expected)
    origin = typing.get_origin(expected)
    if inspect.isclass(expected) and _types.is_input_type(expected):
        yield from _object(value, expected, path) if isinstance(value, dict) else _wrong(value, "a mapping", path)
    elif inspect.isclass(origin) and issubclass(origin, Mapping):
        yield from _items(value, dict, expected, path)
    elif inspect.isclass(origin) and issubclass(origin, Sequence):
        yield from _items(value, list, expected, path)
    elif expected in (bool, int, float, str) and not _is(value, expected):
        yield from _wrong(value, _KINDS[expected], path)


def _object(value: Mapping[str, Wire], expected: type, path: Path) -> Iterator[tuple[Path, str]]:
    types = _types.input_type_types(expected)
    names = {wire: python for python, wire in _types.input_type_py_to_pulumi_names(expected).items()}
    for key, inner in value.items():
        if key in types:
            yield from _walk(inner, types[key], (*path, names[key]))
        else:
            yield (*path, key), _unknown_key(inner, key, list(names.values()))
    for missing in sorted(_types._required_property_names(expected) - value.keys()):
        yield (*path, names[missing]), "{path} is not set; {owner} needs it"


def _items(value: Wire, kind: type, expected: Any, path: Path) -> Iterator[tuple[Path, str]]:
    item = typing.get_args(expected)[-1] if typing.get_args(expected) else Any
    if kind is dict and isinstance(value, dict):
        for key, inner in value.items():
            yield from _walk(inner, item, (*path, key))
    elif kind is list and isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _walk(inner, item, (*path, place))
    else:
        yield from _wrong(value, _KINDS[kind], path)


def _is(value: Wire, expected: type) -> bool:
    if isinstance(value, bool) or expected is bool:
        return isinstance(value, bool) and expected is bool
    if isinstance(value, int | float):
        return expected is float or (expected is int and float(value).is_integer())
    return isinstance(value, str) and expected is str


def _wrong(value: Wire, rule: str, path: Path) -> Iterator[tuple[Path, str]]:
    yield path, f"{{path}} of {{owner}} is {_shown(value)}; it must be {rule}"


def _unknown_key(value: Wire, key: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(key, names, n=1, cutoff=0.5)
    meant = f"Did you mean {close[0]}?" if close else f"Known there: {', '.join(sorted(names))}."
    return f"{{path}} (here {_shown(value)}) is not an input of {{owner}}. {_braces(meant)}"


def _shown(value: Wire) -> str:
    """`value` for a message: never what is secret in it, and not much of what is long."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _braces(f'"{value}"' if len(value) <= _SHOWN else f'"{value[: _SHOWN - 3]}..."')
    if isinstance(value, int | float):
        return str(int(value)) if float(value).is_integer() else repr(value)
    return "null" if value is None else _KINDS[type(value)]


def _braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _name(token: str) -> str:
    """`gcp.compute.Disk` for `gcp:compute/disk:Disk`."""
    package, module, name = token.split(":")
    return f"{package}.{module.split('/')[0]}.{name}"


def _unknown_type(token: str) -> str:
    known = [name for modules in rpc._RESOURCE_MODULES.values() for module in modules for name in _tokens(module)]
    package = token.split(":")[0]
    if not any(name.startswith(f"{package}:") for name in known):
        return f'there is no provider "{package}": no SDK that the program imports has the type {token}'
    close = difflib.get_close_matches(token, known, n=1)
    return f"{token} is not a type of the {package} provider." + (f" Did you mean {close[0]}?" if close else "")


def _tokens(module: Any) -> Collection[str]:
    tokens: Collection[str] = getattr(module, "mod_info", {}).get("classes", {})
    return tokens
