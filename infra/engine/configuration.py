"""The configuration of a stack, typed as Pulumi's CLI hands it to a program.

Every value is text there: numbers and truth values as written, lists and mappings as JSON. A value that the stack
file keeps encrypted (`secure:`) cannot be read offline; a placeholder stands for it.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from infra.engine.errors import ProjectError
from infra.engine.project import Project
from infra.engine.stack_yaml import Yaml, load_yaml
from policies.resources import SECRET, Value

ENCRYPTED_PLACEHOLDER: Final = "[secret]"
"""What a program gets for an encrypted value. Whatever text contains it is SECRET in the graph and never printed."""

_SECURE: Final = "secure"
_KEY: Final = re.compile(r"[^:]+:[^:]+")


@final
@dataclass(frozen=True, kw_only=True)
class Configuration:
    """All settings of one stack."""

    values: Mapping[str, str]
    """`namespace:name` to the text that the program gets."""
    secrets: frozenset[str]
    """The names whose value is a secret, or holds one."""

    def shown(self) -> Mapping[str, Value]:
        """The settings with SECRET in place of what is secret."""
        return {key: SECRET if key in self.secrets else text for key, text in sorted(self.values.items())}

    def of(self, namespace: str) -> Mapping[str, str]:
        """The settings of one namespace, by their names in it: those of a provider are its defaults."""
        prefix = f"{namespace}:"
        return {key.removeprefix(prefix): text for key, text in self.values.items() if key.startswith(prefix)}


def load_configuration(project: Project, stack: str) -> Configuration:
    """The settings of `stack`: its file over the defaults of Pulumi.yaml. Raises ProjectError."""
    file = project.stack_file(stack)
    document = load_yaml(file)
    if document is not None and not isinstance(document, dict):
        raise ProjectError(f"{file}: must be a mapping with config")
    for key in ("environment", "mainEnvironment"):
        if document and document.get(key) is not None:
            raise ProjectError(f"{file}: {key}: settings from Pulumi ESC cannot be read offline; put them into config")
    _check_keys(file, document or {})
    settings = (document or {}).get("config")
    if settings is not None and not isinstance(settings, dict):
        raise ProjectError(f"{file}: config is {settings!r}; it must be a mapping of settings")
    own = _own(project, file, settings or {})
    every = {**dict(_defaults(project, file, stack, own)), **own}
    values = {}
    for key, value in every.items():
        try:
            values[key] = _as_text(value)
        except ValueError:
            raise ProjectError(f"{file}: {key} holds a number that is infinite or none (.inf, .nan)") from None
    return Configuration(values=values, secrets=frozenset(key for key, value in every.items() if _has_secret(value)))


def _check_keys(file: Path, document: Mapping[str, Yaml]) -> None:
    """Refuse a misspelt `config`: Pulumi itself would run the stack without any settings."""
    if "config" not in document:
        close = difflib.get_close_matches("config", document, n=1)
        if close:
            raise ProjectError(f'{file}: "{close[0]}" is not a key of a stack file. Did you mean config?')


def _own(project: Project, file: Path, settings: Mapping[str, Yaml]) -> dict[str, Yaml]:
    """The settings of a stack file by their full names. Raises ProjectError."""
    own: dict[str, Yaml] = {}
    for key, value in settings.items():
        full = _full(project.name, key)
        if not _KEY.fullmatch(full):
            raise ProjectError(f'{file}: "{key}" is not the name of a setting; it is NAME or NAMESPACE:NAME')
        if full in own:
            raise ProjectError(f'{file}: {full} stands twice, once as "{key}"; keep one of them')
        own[full] = value
    return own


def _full(project: str, key: str) -> str:
    parts = key.split(":")
    if len(parts) == 3 and parts[1] == "config":  # `aws:config:region`, as old files write it
        return f"{parts[0]}:{parts[2]}"
    return key if len(parts) > 1 else f"{project}:{key}"


def _as_text(value: Yaml) -> str:
    if isinstance(value, list | dict) and not _is_secret(value):
        opened = _opened(value)
        return json.dumps(opened, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return _scalar(_opened(value))


def _scalar(value: Yaml) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(value)
    return value if isinstance(value, str) else str(value)


def _opened(value: Yaml) -> Yaml:
    """`value` with the placeholder for what is encrypted, and whole floats as Go writes them."""
    if _is_secret(value):
        return ENCRYPTED_PLACEHOLDER
    if isinstance(value, dict):
        return {key: _opened(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_opened(inner) for inner in value]
    whole = isinstance(value, float) and math.isfinite(value) and value.is_integer() and abs(value) < 1e21
    return int(value) if whole and isinstance(value, float) else value


def _is_secret(value: Yaml) -> bool:
    return isinstance(value, dict) and value.keys() == {_SECURE} and isinstance(value[_SECURE], str)


def _has_secret(value: Yaml) -> bool:
    if isinstance(value, dict):
        return _is_secret(value) or any(_has_secret(inner) for inner in value.values())
    return isinstance(value, list) and any(_has_secret(inner) for inner in value)


def _defaults(project: Project, file: Path, stack: str, own: Mapping[str, Yaml]) -> Iterator[tuple[str, Yaml]]:
    """The settings that Pulumi.yaml gives to every stack. Refuses what it declares and the stack file lacks."""
    missing = []
    for short, declared in sorted(project.config.items()):
        key = _full(project.name, short)
        schema = declared if isinstance(declared, dict) else {"default": declared}
        if key in own:
            _check_type(file, key, schema, own[key])
        elif (value := schema.get("default", schema.get("value"))) is not None:
            _check_type(project.file, key, schema, value)
            yield key, value
        else:
            missing.append(key)
    if missing:
        raise ProjectError(
            f"{file}: not set: {', '.join(missing)}; {project.file.name} declares no default for it."
            f" Set it: pulumi config set {missing[0]} ... --stack {stack}"
        )


def _check_type(file: Path, key: str, schema: Mapping[str, Yaml], value: Yaml) -> None:
    if schema.get("secret") is True and not _has_secret(value):
        raise ProjectError(f"{file}: {key} must be encrypted: pulumi config set --secret {key}")
    kind = schema.get("type")
    fits = _TYPES.get(kind) if isinstance(kind, str) else None
    if fits is not None and not _has_secret(value) and not fits(value):
        raise ProjectError(f"{file}: {key} is {value!r}; it must be of type {kind}")


_TYPES: Final[Mapping[str, Callable[[Yaml], bool]]] = {
    "string": lambda value: not isinstance(value, list | dict),
    "integer": lambda value: _scalar(value).lstrip("-").isdigit(),
    "boolean": lambda value: _scalar(value) in ("true", "false"),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
"""What the types of Pulumi.yaml take. A scalar is text by the time that Pulumi looks at it."""
