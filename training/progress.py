"""What a person sees of a run: one line that moves in a terminal, one line now and then elsewhere."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Final, Self, final

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

BAR: Final = 24
"""Columns of the bar, where there are so many; where less than a third of them is left, there is none."""
_GAP: Final = 2
_REVERSING: Final = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_PICTURES: Final = MappingProxyType(
    {number: chr(0x2400 + number) for number in range(32) if chr(number) not in "\t\n"}
    | {0x7F: "\u2421"}
    | dict.fromkeys((*range(0x80, 0xA0), *_REVERSING), "\ufffd")
)
"""For characters that would move the cursor, or turn the line round: what a model says may hold any of them."""


@final
@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a run stands."""

    step: int
    loss: float
    """Nats a token."""
    validation: float | None
    """The newest loss on the validation text; None before there is one."""
    tokens_per_second: float
    step_seconds: float
    goodput: float
    """Of the whole run, between 0 and 1."""
    cost: float | None
    """Spent so far at the price given; None without one."""
    skipped: int = 0
    """Steps whose gradient or loss was not finite, of the whole run."""

    def parts(self, seconds_to_go: float | None, *, compiled: bool) -> tuple[str, ...]:
        """What there is to say, the most important first. `compiled`: the step was, which is most of its time."""
        duration = _duration_of_step(self.step_seconds)
        pace = (f"{self.tokens_per_second:,.0f} tok/s", f"{duration}/step")
        parts = (
            f"loss {self.loss:.3f}",
            f"skipped {self.skipped}" if self.skipped else "",
            "" if self.validation is None else f"val {self.validation:.3f}",
            *((f"first step {duration}, compilation included",) if compiled else pace),
            f"goodput {self.goodput:.0%}",
            "" if self.cost is None else f"cost {self.cost:,.2f}",
            "" if seconds_to_go is None else f"eta {_clock(seconds_to_go)}",
        )
        return tuple(part for part in parts if part)


@final
class RunConsole(Console):
    """Says nothing more where its reader has gone: a run outlives the pipe of its log."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


@final
class ProgressLine:
    """Shows the standing of a run on `console`, and what else there is to say above it."""

    def __init__(
        self,
        console: Console,
        *,
        steps: int,
        every: int,
        done: int = 0,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`every` is the number of steps between two lines where the console is no terminal; `quiet` shows none. `done`
        are the steps that were made before."""
        self._clock = clock
        self._first: tuple[int, float] | None = None
        self._console, self._steps, self._every, self._quiet = console, steps, every, quiet
        self._live: Live | None = None
        self._step = done
        self._parts: tuple[str, ...] = ("compiling ...",)
        self._widest = 0

    def __enter__(self) -> Self:
        if self._console.is_terminal and not self._console.is_dumb_terminal and not self._quiet:
            self._live = Live(console=self._console, get_renderable=self._line, refresh_per_second=10)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, standing: Standing) -> None:
        """A step is finished; the first of an attempt was compiled."""
        compiled = self._first is None
        parts = standing.parts(self._seconds_to_go(standing.step), compiled=compiled)
        if self._live is not None:
            self._step, self._parts = standing.step, parts
        elif standing.step % self._every == 0 or standing.step == self._steps:
            self.say(f"step {standing.step}/{self._steps}  {'  '.join(parts)}")

    def _seconds_to_go(self, step: int) -> float | None:
        """By all that the attempt has spent on a step since its first; None at the first and the last."""
        now = self._clock()
        if self._first is None:
            self._first = step, now
        first, began = self._first
        if step in (first, self._steps):
            return None
        return (self._steps - step) * (now - began) / (step - first)

    def say(self, text: str, style: str = "") -> None:
        """A line of its own, which stays."""
        if not self._quiet:
            self.warn(text, style)

    def warn(self, text: str, style: str = "") -> None:
        """A line that is said even where the rest is not."""
        # The style is that of the text: as one of `print` it would be that of the moving line below too.
        self._console.print(Text(text.translate(_PICTURES), style=style), soft_wrap=True)

    def _line(self) -> Table:
        """The moving line: where it is too long, its end is left out, and the bar before anything else."""
        room = self._console.width - 1
        step = f"step {self._step:>{len(str(self._steps))}}/{self._steps}"
        words = _fitting(self._parts, room - len(step) - _GAP)
        self._widest = max(self._widest, len(words))
        # Of what the longest words so far have left, so that the bar does not breathe with every digit.
        bar = min(BAR, room - len(step) - self._widest - 2 * _GAP)
        line = Table.grid(padding=(0, _GAP, 0, 0))
        cells: list[Text | ProgressBar] = [
            Text(step),
            ProgressBar(total=self._steps, completed=self._step, width=bar),
            Text(words),
        ]
        if bar < BAR // 3:
            del cells[1]
        for _ in cells:
            line.add_column(no_wrap=True, overflow="crop")
        line.add_row(*cells)
        return line


def _fitting(parts: tuple[str, ...], room: int) -> str:
    """As many of the parts as fit, from the first on."""
    while parts and len("  ".join(parts)) > room:
        parts = parts[:-1]
    return "  ".join(parts)


def _duration_of_step(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
