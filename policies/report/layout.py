"""Lines of a fixed width: columns that fold from the right, text that wraps, nothing that a terminal would obey."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final, final

from rich.cells import cell_len
from rich.text import Text

GAP: Final = 2
NARROWEST: Final = 48
"""A narrower terminal gets lines of this width."""
WIDEST: Final = 100
"""A wider table does not spread: notes stand beside it."""


@final
class Column(Enum):
    """A column of figures: heading, width, and the terminal width from which on it is shown."""

    QUANTITY = ("Qty", 9, 76)
    UNIT = ("Unit", 15, 76)
    UNIT_PRICE = ("Unit price", 12, 76)
    HOURLY = ("Hourly", 10, 96)
    MONTHLY = ("Monthly", 12, 0)

    @property
    def heading(self) -> str:
        """What stands above it."""
        return self.value[0]

    @property
    def width(self) -> int:
        """In terminal cells."""
        return self.value[1]

    def pad(self, text: str) -> str:
        """`text` in the width of the column: figures stand to the right, units to the left."""
        missing = " " * max(0, self.width - cell_len(text))
        return text + missing if self is Column.UNIT else missing + text


@final
@dataclass(frozen=True)
class Page:
    """The width of a report and what fits in it."""

    width: int

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns that are shown: on a narrow page only the money of a month."""
        return tuple(column for column in Column if self.width >= column.value[2])

    def compact(self, name: str, figures: Mapping[Column, str], mark: str = "") -> str:
        """The name of a row together with what the page has no column for."""
        if Column.QUANTITY in self.columns or Column.QUANTITY not in figures:
            return name
        return f"{name}: {figures[Column.QUANTITY]} {figures[Column.UNIT]} {mark}".rstrip()

    def row(self, name: str, figures: Mapping[Column, str], style: str = "", *, note: str = "") -> Iterator[Text]:
        """One row of the table. A name takes the room of the empty columns beside it, and wraps where that is full.

        A note stands in that room too where it fits, else beside the table, else below the row.
        """
        table = min(max(self.width, NARROWEST), WIDEST)
        empty = next((place for place, column in enumerate(self.columns) if figures.get(column)), len(self.columns))
        cells = "".join(" " * GAP + column.pad(figures.get(column, "")) for column in self.columns[empty:])
        room = table - cell_len(cells)
        lead = name[: len(name) - len(name.lstrip(" ├└"))].replace("├", "│").replace("└", " ")
        note, shown = clean(note), clean(name)
        if cell_len(shown) > room and any(cell_len(f"{lead}{word}") > room for word in shown.split()):
            # A word that is longer than its room stands above its figures, whole.
            yield from self.paragraph(name.lstrip(), name[: len(name) - len(name.lstrip())], style, hanging=f"{lead}  ")
            shown = lead
        head, *rest = _wrapped(shown, room, f"{lead}  ")
        free = room - cell_len(head)
        inside = bool(note) and not rest and cell_len(note) + GAP <= free
        beside = bool(note) and not inside and table + GAP + cell_len(note) <= self.width
        line = Text(head, style).append(f"{note if inside else '':>{free}}", "dim").append(cells, style)
        line.rstrip()
        yield line.append(f"{' ' * (table + GAP - line.cell_len)}{note}", "dim") if beside else line
        yield from (Text(more, style) for more in rest)
        if note and not inside and not beside:
            yield from self.paragraph(note, f"{lead}  ", "dim")

    def paragraph(self, text: str, indent: str = " ", style: str = "", *, hanging: str | None = None) -> Iterator[Text]:
        """Wrapped text; `hanging` is the indent of all lines but the first."""
        lines = textwrap.wrap(
            clean(text),
            max(self.width, NARROWEST),
            initial_indent=indent,
            subsequent_indent=indent if hanging is None else hanging,
            break_on_hyphens=False,
        )
        yield from (Text(line, style) for line in lines)

    def ends(self, left: str, right: str, style: str = "") -> Iterator[Text]:
        """Two texts at the two ends of a line, or one below the other where they do not fit on one."""
        room = min(self.width, WIDEST) - cell_len(left) - cell_len(right)
        if room >= GAP:
            yield Text(f"{left}{' ' * room}{right}", style)
            return
        yield from self.paragraph(left.lstrip(), " " * (len(left) - len(left.lstrip())), style)
        yield from self.paragraph(right, " ", style)


def _wrapped(text: str, room: int, hanging: str) -> list[str]:
    """The lines of `text`. Nearly every one fits; to wrap it would take as long as all the rest of its row."""
    if text and cell_len(text) <= room and not text[-1].isspace():
        return [text]
    return textwrap.wrap(text, room, subsequent_indent=hanging, break_on_hyphens=False) or [""]


def clean(text: str) -> str:
    """`text` without anything that a terminal would obey: a name in a stack file is not to move the cursor."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "�" for char in text)
