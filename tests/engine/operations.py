"""The commands of the page for operations, which are run as they are written."""

from __future__ import annotations

from typing import Final

from tests.engine.stand import ROOT

PAGE: Final = ROOT / "docs" / "operations.md"


def documented(line: str) -> str:
    """`line`, which the page has to show as a line of its own."""
    assert f"    {line}" in PAGE.read_text(encoding="utf-8").splitlines(), f"{PAGE} does not say: {line}"
    return line
