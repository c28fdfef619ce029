"""One HTML page that needs nothing else: its template, style and script, and the hashes that let only these run."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

_ACTIVE: Final = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
"""What could end a script element, as JSON writes it otherwise."""


def rendered(data: Mapping[str, Any], **values: Any) -> str:
    """The page. Text goes in escaped; the rows go in as `data`, which its script sets as text."""
    style, script = _asset("page.css"), _asset("page.js")
    return _template().render(
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=Markup(json.dumps(data, allow_nan=False, separators=(",", ":")).translate(_ACTIVE)),
        **values,
    )


def ranks(values: Sequence[Fraction | None]) -> list[int | None]:
    """The place of each value among them all, which a browser can compare exactly; null where there is no figure."""
    places = {value: place for place, value in enumerate(sorted({value for value in values if value is not None}))}
    return [None if value is None else places[value] for value in values]


@cache
def _template() -> Template:
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True).from_string(_asset("page.html"))


@cache
def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """How a Content-Security-Policy names the one style or script that may run."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
