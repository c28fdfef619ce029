"""What a `data:` part cannot say, told with the place and the rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.data.prepared import write_rows
from training.data.batches import BatchSource
from training.data.config import DataConfig, SourceConfig, StageConfig
from training.errors import TrainingError

A, B = SourceConfig(path="a"), SourceConfig(path="b")
HALF = SourceConfig(path="a", weight=0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SourceConfig(path=""), "a source needs a path"),
        (lambda: SourceConfig(path="a", weight=-1), "the weight of a is -1; it must be 0 or more"),
        (lambda: SourceConfig(path="a", weight=float("nan")), "the weight of a is nan"),
        (lambda: SourceConfig(path="a", max_epochs=0), "max_epochs of a is 0; it must be above 0"),
        (lambda: StageConfig(from_step=0, weights=(1,)), "from_step is 0; a later stage begins at step 1 or later"),
        (lambda: StageConfig(from_step=5, weights=(1, -1)), "the weights from step 5 must all be 0 or more"),
        (lambda: DataConfig(sources=()), "data.sources is empty; name a folder"),
        (lambda: DataConfig(sources=(HALF, B)), "b has no weight, and others have"),
        (lambda: DataConfig(sources=(A, B), temperature=0), "data.temperature is 0; it must be above 0"),
        (lambda: DataConfig(sources=(HALF,), temperature=2), "no effect on sources with weights"),
        (
            lambda: DataConfig(sources=(A, B), stages=(StageConfig(from_step=3, weights=(1,)),)),
            "1 weights from step 3 for 2 sources; give one for each",
        ),
        (
            lambda: DataConfig(sources=(A,), stages=tuple(StageConfig(from_step=n, weights=(1,)) for n in (3, 3))),
            r"from_step must rise from stage to stage; the steps are \[3, 3\]",
        ),
    ],
)
def test_what_cannot_be_is_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(TrainingError, match=message):
        make()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ((0.0, 0.0), "every source has the weight 0 from step 0 on"),
        ((1.0, 1e-12), "the weight of .*1 from step 0 on is 1e-12 of 1.0"),
    ],
)
def test_weights_that_leave_nothing_are_refused(tmp_path: Path, weights: tuple[float, ...], message: str) -> None:
    folders = [write_rows(tmp_path / str(number), 5, name=str(number)) for number in range(2)]
    sources = tuple(SourceConfig(path=str(path), weight=weight) for path, weight in zip(folders, weights, strict=True))
    with pytest.raises(TrainingError, match=message):
        BatchSource(DataConfig(sources=sources), 0, 1)


def test_temperature_evens_out_sizes(tmp_path: Path) -> None:
    folders = [write_rows(tmp_path / str(size), size, name=str(size)) for size in (100, 400)]
    sources = tuple(SourceConfig(path=str(path)) for path in folders)
    for temperature, share in ((1.0, 1 / 5), (2.0, 1 / 3)):
        source = BatchSource(DataConfig(sources=sources, temperature=temperature), 0, 100)
        rows = [row for step in range(30) for row in source.batch(step).rows]
        assert sum(row < 100 for row in rows) == pytest.approx(3000 * share, abs=2)
