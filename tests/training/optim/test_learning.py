"""Learning rates against their closed forms: functions of the number of updates, and of nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from training.errors import TrainingError
from training.optim.adamw import AdamWConfig
from training.optim.build import PEAKS, learning_rate
from training.optim.kron_config import KronConfig
from training.optim.learning import LearningConfig, ScheduleKind, rate_at
from training.optim.muon import MuonConfig

PEAK, STEPS, WARMUP = 0.02, 40, 10


def cosine(count: int) -> float:
    return 0.1 + 0.9 * (1 + math.cos(math.pi * (count - WARMUP) / (STEPS - WARMUP))) / 2


def linear(count: int) -> float:
    return 1 - 0.9 * (count - WARMUP) / (STEPS - WARMUP)


def wsd(count: int) -> float:
    """A quarter of all steps, which is ten, goes down."""
    return min(1.0, 1 - 0.9 * (count - 30) / 10)


CURVES: dict[ScheduleKind, Callable[[int], float]] = {
    ScheduleKind.COSINE: cosine,
    ScheduleKind.LINEAR: linear,
    ScheduleKind.CONSTANT: lambda count: 1.0,
    ScheduleKind.WSD: wsd,
}


@pytest.mark.parametrize("kind", ScheduleKind)
def test_every_schedule_is_its_closed_form(kind: ScheduleKind) -> None:
    rate = rate_at(PEAK, LearningConfig(schedule=kind, warmup_steps=WARMUP, decay_fraction=0.25), STEPS)
    counts = np.arange(STEPS + 1)
    expected = [PEAK * ((n + 1) / WARMUP if n < WARMUP else CURVES[kind](n)) for n in range(STEPS + 1)]
    np.testing.assert_allclose(jax.vmap(rate)(jnp.asarray(counts)), expected, rtol=1e-6)


@pytest.mark.parametrize("cut", [5, 10, 11, 39])
def test_the_rate_is_a_function_of_the_count_alone(cut: int) -> None:
    config = LearningConfig(warmup_steps=WARMUP)
    straight = [float(rate_at(PEAK, config, STEPS)(jnp.int32(n))) for n in range(STEPS)]
    resumed = rate_at(PEAK, config, STEPS)
    assert [float(resumed(jnp.int32(n))) for n in range(cut, STEPS)] == straight[cut:]


@pytest.mark.parametrize("kind", ScheduleKind)
@pytest.mark.parametrize("warmup", [0, 1])
def test_a_short_warm_up_or_none_starts_at_the_peak(kind: ScheduleKind, warmup: int) -> None:
    rate = rate_at(PEAK, LearningConfig(schedule=kind, warmup_steps=warmup), STEPS)
    assert float(rate(0)) == pytest.approx(PEAK)
    assert float(rate(STEPS)) == pytest.approx(PEAK if kind is ScheduleKind.CONSTANT else PEAK / 10)


def test_wsd_decays_for_a_step_at_least_and_never_into_the_warm_up() -> None:
    config = LearningConfig(schedule=ScheduleKind.WSD, warmup_steps=WARMUP, decay_fraction=1.0)
    assert float(rate_at(PEAK, config, STEPS)(WARMUP)) == pytest.approx(PEAK)
    config = LearningConfig(schedule=ScheduleKind.WSD, warmup_steps=WARMUP, decay_fraction=0.0)
    assert float(rate_at(PEAK, config, STEPS)(STEPS - 1)) == pytest.approx(PEAK)


def test_a_warm_up_that_takes_the_whole_run_is_refused() -> None:
    with pytest.raises(TrainingError, match="warmup_steps is 40 and steps is 40: the peak is never reached"):
        rate_at(PEAK, LearningConfig(warmup_steps=40), 40)


@pytest.mark.parametrize("config", [KronConfig(), AdamWConfig(), MuonConfig()])
def test_without_a_rate_each_optimizer_has_its_own(config: KronConfig | AdamWConfig | MuonConfig) -> None:
    constant = {"schedule": ScheduleKind.CONSTANT, "warmup_steps": 0}
    assert float(learning_rate(config, LearningConfig(**constant), 10)(3)) == pytest.approx(PEAKS[config.type])
    assert float(learning_rate(config, LearningConfig(rate=0.5, **constant), 10)(3)) == 0.5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": 0.0}, "rate is 0.0; a learning rate is positive"),
        ({"rate": math.nan}, "rate is nan"),
        ({"rate": math.inf}, "rate is inf"),
        ({"warmup_steps": -1}, "warmup_steps is -1; it counts updates"),
        ({"final_fraction": 1.5}, "final_fraction is 1.5; it is a share"),
        ({"decay_fraction": math.nan}, "decay_fraction is nan"),
        ({"weight_decay": -0.1}, "weight_decay is -0.1; it is 0 or positive"),
        ({"clip_norm": 0.0}, "clip_norm is 0.0; it is positive and finite, or null"),
    ],
)
def test_what_cannot_be_meant_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=message):
        LearningConfig(**change)


@pytest.mark.parametrize(
    ("config", "change", "message"),
    [
        (AdamWConfig, {"b1": 1.0}, "b1 is 1.0; it is the decay of an average"),
        (AdamWConfig, {"b2": -0.1}, "b2 is -0.1"),
        (AdamWConfig, {"eps": 0.0}, "eps is 0.0; it keeps a division by zero off"),
        (MuonConfig, {"beta": 1.0}, "beta is 1.0; it is the decay of an average"),
        (MuonConfig, {"iterations": 0}, "iterations is 0; it counts Newton-Schulz iterations"),
        (MuonConfig, {"update_rms": 0.0}, "update_rms is 0.0; it is positive"),
    ],
)
def test_a_setting_of_an_optimizer_that_cannot_be_is_refused(
    config: type[AdamWConfig | MuonConfig], change: dict[str, Any], message: str
) -> None:
    with pytest.raises(TrainingError, match=message):
        config(**change)
