"""A plot as SVG: lines over two logarithmic axes, each named where it ends. Colours are those of the page's style."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from markupsafe import Markup

from inference.economics.report import Plot, Series
from policies.report.escapes import line

WIDTH: Final = 860
HEIGHT: Final = 400
LEFT: Final = 84
RIGHT: Final = 220
"""Room for the names of the lines."""
TOP: Final = 14
BOTTOM: Final = 48
APART: Final = 17
"""Least distance of two names."""
COLOURS: Final = 7
MOST_TICKS: Final = 9


@final
@dataclass(frozen=True, kw_only=True)
class _Axis:
    """Where values lie between two ends, by their logarithm."""

    least: float
    most: float
    start: float
    end: float

    def place(self, value: Fraction) -> float:
        """In the units of the drawing."""
        share = (log(value) - self.least) / ((self.most - self.least) or 1.0)
        return self.start + share * (self.end - self.start)


def log(value: Fraction) -> float:
    """The natural logarithm of any positive fraction, however large."""
    return math.log(value.numerator) - math.log(value.denominator)


def drawing(plot: Plot) -> Markup:
    """The plot as one SVG element. Every text goes in escaped."""
    points = [point for series in plot.series for point in series.points]
    if not points:
        return Markup("")
    x = _axis([at for at, _ in points], LEFT, WIDTH - RIGHT)
    y = _axis([value for _, value in points], HEIGHT - BOTTOM, TOP)
    parts = [
        *_grid(plot, x, y),
        *(_line(number, series, x, y) for number, series in enumerate(plot.series)),
        *_names(plot.series, y),
        Markup('<text class="axis" x="{}" y="{}" text-anchor="middle">{}</text>').format(
            (LEFT + WIDTH - RIGHT) // 2, HEIGHT - 8, line(plot.x_label)
        ),
    ]
    title = line(f"{plot.title}: {plot.y_label} by {plot.x_label}")
    opening = Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>').format(
        WIDTH, HEIGHT, title, title
    )
    return opening + Markup("\n").join(parts) + Markup("</svg>")


def _axis(values: Sequence[Fraction], start: float, end: float) -> _Axis:
    logs = [log(value) for value in values]
    return _Axis(least=min(logs), most=max(logs), start=start, end=end)


def _grid(plot: Plot, x: _Axis, y: _Axis) -> Iterator[Markup]:
    for value in _ticks(x, plot.x_base):
        across = x.place(value)
        yield Markup('<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>').format(
            across, TOP, HEIGHT - BOTTOM
        )
        yield Markup('<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
            across, HEIGHT - BOTTOM + 18, plot.x_text(value)
        )
    for value in _ticks(y, plot.y_base):
        up = y.place(value)
        yield Markup('<line class="grid" x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}"/>').format(LEFT, WIDTH - RIGHT, up)
        yield Markup('<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{}</text>').format(
            LEFT - 8, up + 4, plot.y_text(value)
        )


def _ticks(axis: _Axis, base: int) -> list[Fraction]:
    """Powers of the base between the ends; every second, third ... one where there are many."""
    unit = math.log(base)
    first, last = math.ceil(axis.least / unit - 1e-9), math.floor(axis.most / unit + 1e-9)
    every = max(1, -(-(last - first + 1) // MOST_TICKS))
    return [Fraction(base) ** power for power in range(first, last + 1) if power % every == 0]


def _line(number: int, series: Series, x: _Axis, y: _Axis) -> Markup:
    places = " ".join(f"{x.place(at):.1f},{y.place(value):.1f}" for at, value in series.points)
    style = "limit" if series.limit else f"line c{number % COLOURS}{' first' if number == 0 else ''}"
    return Markup('<polyline class="{}" points="{}"><title>{}</title></polyline>').format(
        style, places, line(series.name)
    )


def _names(series: Sequence[Series], y: _Axis) -> Iterator[Markup]:
    """Beside the end of each line, moved apart where they would lie on one another."""
    wanted = sorted((y.place(each.points[-1][1]), number, each) for number, each in enumerate(series))
    heights = [height for height, _, _ in wanted]
    for place in range(1, len(heights)):
        heights[place] = max(heights[place], heights[place - 1] + APART)
    over = max(0.0, heights[-1] - (HEIGHT - BOTTOM))
    for place in reversed(range(len(heights))):
        limit = heights[place + 1] - APART if place + 1 < len(heights) else heights[place] - over
        heights[place] = min(heights[place], limit)
    for height, (_, number, each) in zip(heights, wanted, strict=True):
        style = "name" if each.limit else f"name c{number % COLOURS}"
        yield Markup('<text class="{}" x="{}" y="{:.1f}">{}</text>').format(
            style, WIDTH - RIGHT + 8, height + 4, line(each.name)
        )
