"""config.json: a model's config as a file, exact both ways."""

from __future__ import annotations

import json
from typing import Any, Final, TypeVar

from training.config_loading import build, plain
from training.errors import TrainingError

SCHEMA: Final = "spotrail.model/1"
"""What a config.json says that it is."""

ConfigT = TypeVar("ConfigT")


def to_json_text(config: Any) -> str:
    """Every field of `config` behind the schema; floats by the shortest text that reads back as they are."""
    return json.dumps({"schema": SCHEMA} | plain(config), indent=2, allow_nan=False) + "\n"


def from_json_text(kind: type[ConfigT], text: str, *, where: str) -> ConfigT:
    """The config that the text says. Raises TrainingError that begins with `where` for everything it cannot be."""
    try:
        content = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except (json.JSONDecodeError, RecursionError) as error:
        raise TrainingError(f"{where}: is not JSON ({error})") from None
    except TrainingError as error:
        raise TrainingError(f"{where}: {error}") from None
    if not isinstance(content, dict):
        raise TrainingError(f"{where}: is {type(content).__name__}, and a config is an object with fields")
    given = content.pop("schema", None)
    if given != SCHEMA:
        raise TrainingError(f'{where}: schema is {json.dumps(given)}; this version reads "{SCHEMA}"')
    return build(kind, content, where)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for name, value in pairs:
        if name in content:
            raise TrainingError(f"{name} stands twice in one object; which value is meant cannot be known")
        content[name] = value
    return content


def _refuse_constant(text: str) -> Any:
    raise TrainingError(f"{text} is no number of JSON")
