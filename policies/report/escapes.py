"""Text of a stack made harmless: a name in a stack file is to command no terminal, page, sheet or workflow."""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 600
"""Characters of one text in a report that has to stay small."""
REPLACEMENT: Final = "\ufffd"
NOTHING: Final = "·"
"""In place of a text that is empty."""
APART: Final = "\u200b"
"""A space of no width: it breaks what a forge would turn into a link or a mention after it has drawn the page."""
_MARKED: Final = re.compile(r"([\\`*_{}\[\]<>()#!|~&$^])")
_LEADING: Final = re.compile(r"^([0-9]*)([-+=.])")
"""What begins a list or a rule at the start of a line."""
_LIVE: Final = re.compile(r"([@#])|(:)(?=//)|\b(www|GH)(?=[.-])", re.IGNORECASE)
_FORMULA: Final = tuple("=+-@＝＋－＠")
"""What a spreadsheet computes, in both widths; blanks before it are gone by then."""


def line(text: str) -> str:
    """`text` on one line: blanks as spaces, no control, direction or surrogate character."""
    whole = " ".join(text.split())
    if whole.isprintable():
        return whole
    return "".join(char if char.isprintable() else REPLACEMENT for char in whole)


def short(text: str, longest: int = LONGEST) -> str:
    """`line` cut to at most `longest` characters, with an ellipsis where something is cut."""
    whole = line(text[: 4 * longest])
    return whole if len(whole) <= longest and len(text) <= 4 * longest else f"{whole[: longest - 1]}…"


def markdown(text: str, longest: int = LONGEST) -> str:
    """`text` for the inside of a line or a cell of GitHub's Markdown: no markup, HTML, link, mention or reference."""
    marked = _LEADING.sub(r"\1\\\2", _MARKED.sub(r"\\\1", short(text, longest) or NOTHING))
    return _LIVE.sub(lambda match: f"{match.group()}{APART}", marked)


def cell(text: str) -> str:
    """`text` for a cell of a CSV file: what a spreadsheet would compute is preceded by an apostrophe."""
    whole = line(text)
    return f"'{whole}" if whole.startswith(_FORMULA) else whole
