"""What an answer has to say, as plain data: the text for a terminal and the page for a browser are both made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from inference.economics.assumptions import Assumption


@final
@dataclass(frozen=True, kw_only=True)
class Table:
    """Names to the left, figures to the right."""

    title: str
    columns: tuple[str, ...]
    """Headings of the figures."""
    rows: tuple[tuple[str, ...], ...]
    """A name, then a figure a column."""
    note: str = ""


@final
@dataclass(frozen=True, kw_only=True)
class Series:
    """One line of a plot."""

    name: str
    points: tuple[tuple[Fraction, Fraction], ...]
    """Rising in the first; both above 0."""
    limit: bool = False
    """Whether it is a limit, drawn broken, and no curve."""


@final
@dataclass(frozen=True, kw_only=True)
class Plot:
    """Lines over two logarithmic axes."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_text: Callable[[Fraction], str]
    """How a value stands at the axis."""
    y_text: Callable[[Fraction], str]
    x_base: int = 10
    """Ticks are powers of it, thinned out where there are many."""
    y_base: int = 10


@final
@dataclass(frozen=True, kw_only=True)
class Remark:
    """A sentence or two about what the figures mean."""

    key: str
    """By which a program knows it."""
    text: str
    warning: bool = False
    """Whether it takes something away from what the figures promise."""


@final
@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything that is shown."""

    heading: str
    """`spotrail wall  1.3B`."""
    terms: str
    """Slice, place, capacity, prices."""
    answers: tuple[str, ...]
    """First of all, what was asked."""
    tables: tuple[Table, ...]
    remarks: tuple[Remark, ...]
    assumptions: tuple[Assumption, ...]
    plots: tuple[Plot, ...]
    notes: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
