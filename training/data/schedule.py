"""From the configuration to the stages of the mixture: weights, temperature and caps become shares of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from training.data.config import DataConfig
from training.data.mixture import Mixture, Stage, capped_weights, exact_shares, temperature_weights
from training.errors import TrainingError

SMALLEST: Final = 1e-9
"""The least share of a source that is not left out; less is a typing mistake, and lost in rounding."""


def plan_mixture(config: DataConfig, sizes: Sequence[int], batch_size: int, steps: int | None) -> Mixture:
    """The mixture of a run over sources of `sizes` rows. Only caps on epochs ask for `steps`, the length of the run.

    Raises TrainingError where no weight is left, or the caps leave too few rows for all steps.
    """
    stages = [(0, _first_weights(config, sizes)), *((stage.from_step, stage.weights) for stage in config.stages)]
    for from_step, weights in stages:
        _check_weights(config, from_step, weights)
    rows = [(step * batch_size, weights) for step, weights in stages]
    if not has_caps(config):
        return Mixture([Stage(first_row=first, shares=exact_shares(weights)) for first, weights in rows])
    if steps is None:
        raise TrainingError("data.sources: max_epochs shares out the rows of the whole run; give its steps")
    return _capped(config, sizes, rows, steps * batch_size)


def has_caps(config: DataConfig) -> bool:
    """Whether a source may be read only so often, so that the length of the run decides what is read."""
    return any(source.max_epochs is not None for source in config.sources)


def _first_weights(config: DataConfig, sizes: Sequence[int]) -> tuple[float, ...]:
    given = tuple(source.weight for source in config.sources if source.weight is not None)
    return given or temperature_weights(sizes, config.temperature)


def _check_weights(config: DataConfig, from_step: int, weights: Sequence[float]) -> None:
    total = sum(weights)
    if not total:
        raise TrainingError(f"data: every source has the weight 0 from step {from_step} on; give one of them more")
    for source, weight in zip(config.sources, weights, strict=True):
        if 0 < weight < SMALLEST * total:
            raise TrainingError(
                f"data: the weight of {source.path} from step {from_step} on is {weight} of {total}, "
                "less than a row in a thousand million; give 0 to leave it out"
            )


def _capped(
    config: DataConfig, sizes: Sequence[int], stages: Sequence[tuple[int, tuple[float, ...]]], rows: int
) -> Mixture:
    """The mixture in which no source gives more rows than its cap in the `rows` of the run.

    Where all caps together are no more than the run takes, one may give a row or two too many: the blocks round.
    """
    # Without a cap of its own a source can give all rows.
    most = [
        rows if source.max_epochs is None else min(rows, int(source.max_epochs * size))
        for source, size in zip(config.sources, sizes, strict=True)
    ]
    caps = list(most)
    found = _capped_stages(stages, caps, rows)
    if found is None:
        raise TrainingError(_too_few(config, stages, most, rows))
    while True:
        mixture = Mixture(found)
        over = [max(0, count - cap) for count, cap in zip(mixture.counts(rows), most, strict=True)]
        # What was rounded up too far is aimed so much lower, as long as the others have room for it.
        caps = [cap - excess for cap, excess in zip(caps, over, strict=True)]
        found = _capped_stages(stages, caps, rows) if any(over) else None
        if found is None:
            return mixture


def _capped_stages(
    stages: Sequence[tuple[int, tuple[float, ...]]], caps: Sequence[int], rows: int
) -> list[Stage] | None:
    """Stage after stage, each within what the ones before have left of the caps; None where too little is left."""
    left = [float(cap) for cap in caps]
    found = []
    ends = [*(first for first, _ in stages[1:]), rows]
    for (first, weights), end in zip(stages, ends, strict=True):
        length = min(end, rows) - first
        if length <= 0:
            break
        shares = capped_weights(weights, left, length)
        if shares is None:
            return None
        left = [max(0.0, cap - share * length) for cap, share in zip(left, shares, strict=True)]
        found.append(Stage(first_row=first, shares=exact_shares(shares)))
    return found


def _too_few(
    config: DataConfig, stages: Sequence[tuple[int, tuple[float, ...]]], most: Sequence[int], rows: int
) -> str:
    caps = ", ".join(f"{source.path} {source.max_epochs:g}" for source in config.sources if source.max_epochs)
    used = [any(weights[index] for _, weights in stages) for index in range(len(most))]
    given = sum(cap for cap, some in zip(most, used, strict=True) if some)
    where = "" if given < rows else " in one of its stages"
    return (
        f"data.sources: with max_epochs ({caps}) the sources have {given:,} rows, and the run takes {rows:,}: too many"
        f"{where}. Raise max_epochs, give more data, or take fewer steps"
    )
