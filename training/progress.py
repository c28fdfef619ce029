"""What a person sees of a run: one line that moves in a terminal, one line now and then elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Self, final

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text


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
    seconds_to_go: float

    def words(self) -> str:
        """In one line."""
        parts = [
            f"loss {self.loss:.3f}",
            "" if self.validation is None else f"val {self.validation:.3f}",
            f"{self.tokens_per_second:,.0f} tok/s",
            f"{_duration_of_step(self.step_seconds)}/step",
            f"goodput {self.goodput:.0%}",
            "" if self.cost is None else f"cost {self.cost:,.2f}",
            f"eta {_clock(self.seconds_to_go)}",
        ]
        return "  ".join(part for part in parts if part)


@final
class ProgressLine:
    """Shows the standing of a run on `console`, and what else there is to say above it."""

    def __init__(self, console: Console, *, steps: int, every: int, quiet: bool = False) -> None:
        """`every` is the number of steps between two lines where the console is no terminal; `quiet` shows none."""
        self._console, self._steps, self._every, self._quiet = console, steps, every, quiet
        self._live: Progress | None = None
        self._task = TaskID(0)

    def __enter__(self) -> Self:
        if self._console.is_terminal and not self._quiet:
            columns = TextColumn("step"), _Count(), BarColumn(bar_width=24), TextColumn("{task.fields[words]}")
            self._live = Progress(*columns, console=self._console)
            self._live.start()
            self._task = self._live.add_task("train", total=self._steps, words="compiling ...")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, standing: Standing) -> None:
        """A step is finished."""
        if self._live is not None:
            self._live.update(self._task, completed=standing.step, words=standing.words())
        elif self._quiet:
            return
        elif standing.step % self._every == 0 or standing.step == self._steps:
            self.say(f"step {standing.step}/{self._steps}  {standing.words()}")

    def say(self, text: str, style: str | None = None) -> None:
        """A line of its own, which stays."""
        if not self._quiet:
            self.warn(text, style)

    def warn(self, text: str, style: str | None = None) -> None:
        """A line that is said even where the rest is not."""
        self._console.print(Text(text), style=style, soft_wrap=True)


class _Count(ProgressColumn):
    """The step out of all steps, without the share that the bar shows."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.completed:>{len(str(task.total))}.0f}/{task.total:.0f}")


def _duration_of_step(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
