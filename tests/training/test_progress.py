"""What a person sees of a run, in a terminal and elsewhere."""

from __future__ import annotations

import io
import itertools
import re
import subprocess
import sys

import pytest
from rich.console import Console

from training.progress import ProgressLine, Standing

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def standing(step: int, **changes: float | None) -> Standing:
    said: dict[str, float | None] = {
        "loss": 1.8421,
        "validation": 1.901,
        "tokens_per_second": 3410.4,
        "step_seconds": 0.061,
        "goodput": 0.97,
        "cost": 0.02,
    }
    return Standing(step=step, **(said | changes))  # type: ignore[arg-type]


def console(*, terminal: bool, width: int = 100, term: str = "xterm") -> Console:
    return Console(
        file=io.StringIO(), force_terminal=terminal, width=width, highlight=False, _environ={"TERM": term}, height=25
    )


def written(shown: Console) -> str:
    assert isinstance(shown.file, io.StringIO)
    return shown.file.getvalue()


def clock(step_seconds: float = 2.0) -> itertools.count[float]:
    return itertools.count(100.0, step_seconds)


def test_elsewhere_there_is_a_line_now_and_then_and_no_escape() -> None:
    shown = console(terminal=False)
    ticks = clock()
    with ProgressLine(shown, steps=5, every=2, clock=lambda: next(ticks)) as line:
        for step in range(1, 6):
            line.show(standing(step, validation=None if step < 4 else 1.901, cost=None if step < 5 else 0.02))
    assert written(shown).splitlines() == [
        "step 2/5  loss 1.842  3,410 tok/s  61 ms/step  goodput 97%  eta 0:06",
        "step 4/5  loss 1.842  val 1.901  3,410 tok/s  61 ms/step  goodput 97%  eta 0:02",
        "step 5/5  loss 1.842  val 1.901  3,410 tok/s  61 ms/step  goodput 97%  cost 0.02",
    ]


def test_the_first_step_of_an_attempt_is_no_measure_of_the_others() -> None:
    shown = console(terminal=False)
    with ProgressLine(shown, steps=600, every=401) as line:
        line.show(standing(401, step_seconds=20.04, tokens_per_second=5.0))
    assert written(shown) == (
        "step 401/600  loss 1.842  val 1.901  first step 20.0 s, compilation included  goodput 97%  cost 0.02\n"
    )


def test_what_remains_is_told_by_all_that_a_step_has_cost_so_far() -> None:
    shown = console(terminal=False)
    ticks = iter([0.0, 1.0, 2.0, 63.0])  # the last one saw a validation of a minute
    with ProgressLine(shown, steps=103, every=1, clock=lambda: next(ticks)) as line:
        for step in range(1, 5):
            line.show(standing(step, step_seconds=1.0))
    assert re.findall(r"eta (\S+)", written(shown)) == ["1:41", "1:40", "34:39"]


@pytest.mark.parametrize(
    ("width", "last", "bar"),
    [
        (140, "cost 0.02", True),
        (87, "cost 0.02", False),
        (85, "goodput 97%", False),
        (60, "3,410 tok/s", False),
        (40, "val 1.901", False),
        (30, "loss 1.842", False),
        (20, "step 1000/1000", False),
    ],
)
def test_a_narrow_terminal_loses_the_bar_and_then_the_last_words(width: int, last: str, bar: bool) -> None:
    shown = console(terminal=True, width=width)
    with ProgressLine(shown, steps=1000, every=10, clock=iter([0.0, 1.0, 2.0]).__next__) as line:
        line.show(standing(1))
        line.show(standing(640))
        line.show(standing(1000))
    final = ESCAPES.sub("", written(shown)).replace("\r", "\n").strip().split("\n")[-1].rstrip()
    assert final.startswith("step 1000/1000")
    assert final.endswith(last)
    assert len(final) < width
    assert ("━" in final) is bar


def test_a_run_that_goes_on_begins_where_it_was() -> None:
    shown = console(terminal=True)
    with ProgressLine(shown, steps=1000, every=1, done=640):
        pass
    lines = ESCAPES.sub("", written(shown)).replace("\r", "\n").split("\n")
    assert {line[:15] for line in lines if line.strip()} == {"step  640/1000 "}


def test_skipped_steps_are_not_passed_over_in_silence() -> None:
    shown = console(terminal=False)
    with ProgressLine(shown, steps=9, every=1) as line:
        line.show(standing(1, loss=float("nan"), skipped=3))
    assert written(shown).startswith("step 1/9  loss nan  skipped 3  val 1.901")


def test_the_style_of_what_is_said_is_not_that_of_the_line_below() -> None:
    shown = console(terminal=True)
    with ProgressLine(shown, steps=10, every=1) as line:
        line.show(standing(1))
        line.say("a sample", style="green")
        line.warn("a failure", style="red")
    text = written(shown)
    assert re.findall(r"\x1b\[32m([^\x1b]*)", text) == ["a sample"]
    assert re.findall(r"\x1b\[31m([^\x1b]*)", text) == ["a failure"]


def test_a_terminal_that_cannot_move_has_lines() -> None:
    shown = console(terminal=True, term="dumb")
    with ProgressLine(shown, steps=4, every=2) as line:
        for step in range(1, 5):
            line.show(standing(step))
    assert [line[:8] for line in written(shown).splitlines()] == ["step 2/4", "step 4/4"]


def test_what_a_model_says_moves_no_cursor() -> None:
    shown = console(terminal=False)
    ProgressLine(shown, steps=1, every=1).say("» a\x1b[2Jb\x07\x08c\rd\x7f\x9be\u202ef\n\tö <|end|> [red]")
    assert written(shown) == "» a␛[2Jb␇␈c␍d␡\ufffde\ufffdf\n        ö <|end|> [red]\n"


def test_quiet_says_what_goes_wrong_alone() -> None:
    shown = console(terminal=True)
    with ProgressLine(shown, steps=2, every=1, quiet=True) as line:
        line.show(standing(1))
        line.say("a sample")
        line.warn("a failure")
    assert written(shown) == "a failure\n"


def test_a_run_goes_on_where_nobody_reads_its_log() -> None:
    script = (
        "import sys\nfrom training.progress import ProgressLine, RunConsole\n"
        "line = ProgressLine(RunConsole(stderr=True), steps=9, every=1)\n"
        "for number in range(20_000): line.say(f'line {number}')\n"
        "print('to the end', file=sys.stderr)\nprint('to the end')\n"
    )
    line = [sys.executable, "-c", script]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        assert run.stderr.readline() == "line 0\n"
        run.stderr.close()
        assert run.stdout.read() == "to the end\n"
        assert run.wait(60) == 0
