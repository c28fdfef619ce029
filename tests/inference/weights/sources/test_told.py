"""How a download is said in lines: nothing that begins is silent for long, and nothing is said without end."""

from __future__ import annotations

import itertools
import time

import pytest

from inference.weights.sources.attempts import Trouble
from inference.weights.sources.progress import EVERY, DownloadProgress, Stage, Told


def trouble(tries: int) -> Trouble:
    return Trouble(what="refused", tries=tries, ends=time.monotonic() + 60)


@pytest.mark.parametrize("step", [0.25, 1.0, 7.0])
def test_every_stage_and_every_trouble_is_said_as_it_begins_and_then_every_few_seconds(step: float) -> None:
    now = 1000.0
    lines: list[tuple[float, str]] = []
    told = Told(lambda line: lines.append((now, line)), lambda: now)
    begins: dict[str, float] = {}
    for stage, seconds in ((Stage.LISTING, 31.0), (Stage.WAITING, 12.0), (Stage.DOWNLOADING, 40.0)):
        start = now
        while now < start + seconds:
            failing = trouble(1) if stage is not Stage.WAITING and now >= start + 10 else None
            begins.setdefault(stage.value + (" fails" if failing else ""), now)
            told(DownloadProgress(stage=stage, subject="it", trouble=failing))
            now += step
    for key, began in begins.items():
        said, fails = key.partition(" ")[::2]
        mine = [at for at, line in lines if line.startswith(said) and ("tried" in line) == bool(fails)]
        assert mine[0] == began, key
        assert all(after - before >= EVERY for before, after in itertools.pairwise(mine))
        assert all(after - before <= EVERY + step for before, after in itertools.pairwise(mine))


def test_trouble_that_comes_and_goes_is_said_every_few_seconds_at_most() -> None:
    now = 0.0
    lines: list[str] = []
    told = Told(lines.append, lambda: now)
    for turn in range(400):
        told(DownloadProgress(stage=Stage.DOWNLOADING, subject="it", trouble=trouble(1) if turn % 2 else None))
        now += 0.25
    assert 100 / EVERY <= len(lines) <= 2 * 100 / EVERY + 2


def test_what_a_line_says() -> None:
    progress = DownloadProgress(
        stage=Stage.DOWNLOADING, subject="gs://b/m", done=3 << 29, total=1 << 31, fetched=1 << 30, seconds=2.0
    )
    assert str(progress) == "downloading gs://b/m: 1.50 of 2.00 GiB, 0.50 GiB/s"
    listing = DownloadProgress(stage=Stage.LISTING, subject="gs://b/m", trouble=trouble(3))
    assert str(listing).startswith("listing gs://b/m; no answer: refused; tried 3 times, and again until ")
