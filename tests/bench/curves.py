"""Optimizers on real text, each at its best rate: `python -m tests.bench.curves --out FOLDER [--plot FILE.svg]`.

Every run is `python -m training --config CONFIG` with another optimizer, learning rate or seed, in a folder of its own
under FOLDER; what has been run is not run again, and what was stopped goes on. First each optimizer is run at every
rate with seed 0; then at the rate whose last loss on the validation text was least, with the other seeds. Printed are
all last losses, and those of the seeds at the best rate; the plot has their curves.

A best rate at the end of the range is said to be so: it may lie beyond. `--jobs` runs go side by side, on one core
each; the time of a step is then that of one core.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

RATES: Final[Mapping[str, tuple[float, ...]]] = {
    "adamw": (1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2),
    "kron": (1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2),
}
ONE_CORE: Final = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


@final
@dataclass(frozen=True, kw_only=True)
class Trial:
    """One run."""

    optimizer: str
    rate: float
    seed: int

    @property
    def name(self) -> str:
        """Of its folder."""
        return f"{self.optimizer}-{self.rate:g}-{self.seed}"


@final
@dataclass(frozen=True, kw_only=True)
class Curve:
    """What a run has written down."""

    steps: Sequence[int]
    """After which the validation text was looked at."""
    losses: Sequence[float]
    """Of the validation text there, in nats a token; infinite where it was not finite."""
    step_seconds: float
    """The median of a step."""

    @property
    def last(self) -> float:
        """The loss at the end."""
        return self.losses[-1]


def main() -> None:
    """Run, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, default=Path("training/configs/shakespeare.yaml"))
    parser.add_argument("--out", type=Path, required=True, help="where the runs are kept")
    parser.add_argument("--set", action="append", default=[], metavar="A.B=C", help="for every run, as of the trainer")
    parser.add_argument("--seeds", type=int, default=3, help="of the best rate (default 3)")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side (default 1)")
    parser.add_argument("--plot", type=Path, help="an SVG of the curves at the best rates")
    options = parser.parse_args()
    with ThreadPoolExecutor(options.jobs) as pool:

        def curves(trials: Sequence[Trial]) -> dict[Trial, Curve]:
            return dict(zip(trials, pool.map(lambda trial: run(trial, options), trials), strict=True))

        # The middle rates first: a mistake in the configuration shows on a run that would have gone well.
        search = curves([Trial(optimizer=name, rate=rate, seed=0) for rate, name in _middle_first()])
        best = {name: min((t for t in search if t.optimizer == name), key=lambda t: search[t].last) for name in RATES}
        again = [
            Trial(optimizer=one.optimizer, rate=one.rate, seed=seed)
            for one in best.values()
            for seed in range(options.seeds)
        ]
        at_best = curves(again)
    report(search, best, at_best)
    if options.plot:
        draw(at_best, options.plot)


def _middle_first() -> Iterator[tuple[float, str]]:
    for place in (2, 1, 3, 0, 4):
        for name, rates in RATES.items():
            yield rates[place], name


def run(trial: Trial, options: argparse.Namespace) -> Curve:
    """The curve of a trial, which is run unless it has been."""
    folder = options.out / trial.name
    metrics = folder / "metrics.jsonl"
    if not (metrics.exists() and '"final"' in metrics.read_text().splitlines()[-1]):
        settings = [f"optim.type={trial.optimizer}", f"learning.rate={trial.rate:g}", f"seed={trial.seed}"]
        order = [sys.executable, "-m", "training", "--config", str(options.config), "--run-dir", str(folder), "--quiet"]
        for setting in (*settings, *options.set):
            order += ["--set", setting]
        flags = f"{os.environ.get('XLA_FLAGS', '')} {ONE_CORE if options.jobs > 1 else ''}"
        ended = subprocess.run(order, env={**os.environ, "XLA_FLAGS": flags}, stderr=subprocess.PIPE, text=True)
        # A run that diverges is an answer too: exit code 8.
        if ended.returncode not in (0, 8):
            raise SystemExit(f"{trial.name}: exit code {ended.returncode}\n{ended.stderr}")
        print(f"{trial.name}: {read(metrics).last:.4f}", file=sys.stderr, flush=True)
    return read(metrics)


def read(metrics: Path) -> Curve:
    """The curve in the file of a run."""
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    looks = [line for line in lines if line.get("validation_loss") is not None]
    steps, losses = [int(line["step"]) for line in looks], [float(line["validation_loss"]) for line in looks]
    told = [line for line in lines if "seconds" in line]
    if "final" not in lines[-1] or steps[-1] != told[-1]["step"]:  # it diverged
        steps.append(int(told[-1]["step"]))
        losses.append(math.inf)
    return Curve(steps=steps, losses=losses, step_seconds=statistics.median(float(line["seconds"]) for line in told))


def report(search: Mapping[Trial, Curve], best: Mapping[str, Trial], at_best: Mapping[Trial, Curve]) -> None:
    """The last losses of all, and of the seeds at the best rates."""
    for name, rates in RATES.items():
        print(f"\n{name}, last validation loss at each rate, seed 0:")
        for rate in rates:
            curve = search[Trial(optimizer=name, rate=rate, seed=0)]
            print(f"  {rate:<8g} {curve.last:.4f}{'   the least' if rate == best[name].rate else ''}")
        if best[name].rate in (rates[0], rates[-1]):
            print("  the least stands at the end of the range: the best rate may lie beyond it")
        lasts = [curve.last for trial, curve in at_best.items() if trial.optimizer == name]
        spread = statistics.stdev(lasts) if len(lasts) > 1 else 0.0
        seconds = statistics.median(curve.step_seconds for trial, curve in at_best.items() if trial.optimizer == name)
        print(f"  at {best[name].rate:g}: {statistics.mean(lasts):.4f} ± {spread:.4f} over {len(lasts)} seeds", end="")
        print(f" ({', '.join(f'{last:.4f}' for last in lasts)}); a step takes {seconds:.3f} s")


def draw(curves: Mapping[Trial, Curve], file: Path) -> None:
    """The validation loss of every curve, by step."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "spotrail", "font.size": 9})
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 3.2), layout="constrained")
    colours = {"adamw": "#7a5195", "kron": "#ef5675"}
    for trial, curve in curves.items():
        label = f"{trial.optimizer}, rate {trial.rate:g}" if trial.seed == 0 else None
        axis.plot(curve.steps, curve.losses, label=label, color=colours[trial.optimizer], alpha=0.9, linewidth=1.2)
    axis.set(xlabel="step", ylabel="validation loss, nats a token")
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)
    figure.savefig(file, metadata={"Date": None})


if __name__ == "__main__":
    main()
