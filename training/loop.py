"""The loop around the pure step: data in, metrics out, checkpoints beside it, until it is done or the capacity goes.

The order of things at the end of step N: its line in `metrics.jsonl`, then its checkpoint where one is due, then the
look at the notice of a preemption. A checkpoint named N has therefore seen exactly N updates and their lines, and a run
started again cuts the lines behind it and goes on with the batch of step N + 1, which follows from N alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, final

import jax
import jax.numpy as jnp
import numpy as np

from training.assembly import Assembly, sample_key
from training.checkpoint.checkpointer import Checkpointer
from training.checkpoint.names import prefix_of
from training.config import RunConfig
from training.data.batches import Batch, BatchSource
from training.data.prefetch import prefetch
from training.errors import TrainingError
from training.exit_codes import ExitCode
from training.export import Serving
from training.goodput import Bucket, Ledger
from training.heartbeat import Heartbeat
from training.metrics import MetricsLog
from training.model.loss import LossSums
from training.model.tokenizer import Tokenizer
from training.preemption import Notice
from training.progress import ProgressLine, Standing
from training.resuming import Start
from training.state_digest import sha256_of
from training.train_step import StepMetrics

PREFETCHED: Final = 2
"""Batches that are made ready while a step runs."""
COMMIT_MARGIN_SECONDS: Final = 0.5
"""Of the grace: what the process needs to end by itself after the commit."""


@final
@dataclass(frozen=True, kw_only=True)
class Instruments:
    """Everything around the step that leaves a trace."""

    ledger: Ledger
    log: MetricsLog
    checkpointer: Checkpointer
    heartbeat: Heartbeat
    progress: ProgressLine
    notice: Notice


@final
class Loop:
    """One attempt at a run, from what it starts with."""

    def __init__(
        self,
        config: RunConfig,
        assembly: Assembly,
        source: BatchSource,
        tokenizer: Tokenizer,
        serving: Serving,
        instruments: Instruments,
        start: Start,
    ) -> None:
        self.config, self.assembly, self.source, self.tokenizer = config, assembly, source, tokenizer
        self.serving = serving
        self.instruments = instruments
        self.state, self.step = start.state, start.step
        self._saved = self.step if self.step else None
        self._loss = start.loss
        self._lineage = start.lineage
        self._validation: float | None = None
        self._unreadable: TrainingError | None = None
        self._step_seconds: float | None = None

    @property
    def standing(self) -> str:
        """How far it has come."""
        seen = "" if self._validation is None else f", val {self._validation:.3f}"
        return f"step {self.step}, loss {self._loss:.3f}{seen}"

    def run(self) -> ExitCode:
        """Train to the last step, and say how it ended. The instruments are left open."""
        with closing(prefetch(self.source, self.step, self.config.steps, depth=PREFETCHED)) as batches:
            try:
                return self._steps(batches)
            except KeyboardInterrupt:
                return self._stopped()

    def _steps(self, batches: Iterator[Batch]) -> ExitCode:
        ready: Batch | None = self._next(batches)
        while ready is not None:
            if self.instruments.notice.given:
                return self._give_way()
            metrics, ready = self._one(ready, batches)
            self._tell(metrics)
            if metrics.skipped_in_a_row >= self.config.skips_in_a_row:
                return self._diverged(metrics)
            self._save_if_due()
            self.instruments.ledger.mark(self.step)
            if self._unreadable is not None:
                raise self._unreadable
        if self.instruments.notice.given and self._saved != self.step:
            return self._give_way()
        return self._finish()

    def _one(self, batch: Batch, batches: Iterator[Batch]) -> tuple[StepMetrics, Batch | None]:
        """One step, and the next batch, which is made ready while the devices are at work."""
        began = time.monotonic()
        first = self._step_seconds is None
        with self.instruments.ledger.measure(Bucket.COMPILE if first else Bucket.STEP):
            tokens, segments = self._placed(batch)
            self.state, told = self.assembly.step(self.state, tokens, segments)
            following = None if first else self._next_or_later(batches)
            metrics = jax.device_get(told)
        if first:
            following = self._next_or_later(batches)
        self._step_seconds = time.monotonic() - began
        self.step += 1
        return metrics, following

    def _next(self, batches: Iterator[Batch]) -> Batch | None:
        with self.instruments.ledger.measure(Bucket.DATA):
            batch: Batch | None = next(batches, None)
        return batch

    def _next_or_later(self, batches: Iterator[Batch]) -> Batch | None:
        """The next batch; where it cannot be read, that is raised when the step under way is told and saved."""
        try:
            return self._next(batches)
        except TrainingError as error:
            self._unreadable = error
            return None

    def _placed(self, batch: Batch) -> tuple[jax.Array, jax.Array]:
        tokens, segments = jax.device_put((batch.tokens, batch.segments), self.assembly.rows)
        return tokens, segments

    def _tell(self, metrics: StepMetrics) -> None:
        """The line of a step, with the look at the validation text and the sample that are due after it."""
        seconds = self._step_seconds or 0.0
        self._loss = float(metrics.loss)
        rate = float(metrics.tokens) / seconds if seconds else 0.0
        # A skipped step is no update, and does not move the schedule.
        updates = self.step - 1 - int(metrics.skipped) + int(metrics.skipped_in_a_row > 0)
        measured = self._look_up(self.config.log.validate_every, self._validate)
        account = self.instruments.ledger.account()
        cost = None if self.config.cost_per_hour is None else self.config.cost_per_hour * account.billed / 3600
        self.instruments.log.write(
            self.step,
            {
                "loss": self._loss,
                "z_loss": float(metrics.z_loss),
                "gradient_norm": float(metrics.gradient_norm),
                "learning_rate": float(self.assembly.learning_rate(updates)),
                "tokens": int(metrics.tokens),
                "tokens_per_second": round(rate, 3),
                "seconds": round(seconds, 6),
                "skipped": int(metrics.skipped),
                "goodput": round(account.goodput, 6),
                "validation_loss": self._validation if measured else None,
                "cost": cost,
            },
        )
        self.instruments.heartbeat.beat(self.step)
        self.instruments.progress.show(
            Standing(
                step=self.step,
                loss=self._loss,
                validation=self._validation,
                tokens_per_second=rate,
                step_seconds=seconds,
                goodput=account.goodput,
                cost=cost,
                skipped=int(metrics.skipped),
            )
        )
        self._look_up(self.config.log.sample_every, self._sample)

    def _is_due(self, every: int) -> bool:
        return bool(every) and (self.step % every == 0 or self.step == self.config.steps)

    def _look_up(self, every: int, look: Callable[[], bool]) -> bool:
        """Look where it is due; whether there is something to see. Nobody looks while the capacity goes."""
        if not self._is_due(every) or self.instruments.notice.given:
            return False
        with self.instruments.ledger.measure(Bucket.VALIDATION):
            return look()

    def _validate(self) -> bool:
        sums: LossSums | None = None
        for number in range(min(self.config.log.validation_batches, self.source.validation_batches)):
            if self.instruments.notice.given:
                return False
            part = self.assembly.validate(self.state.model, *self._placed(self.source.validation(number)))
            sums = part if sums is None else sums + part
        self._validation = None if sums is None else float(sums.mean_loss())
        return sums is not None

    def _sample(self) -> bool:
        prompt = np.asarray(self.tokenizer.encode(self.config.log.prompt), np.int32)
        key = sample_key(self.config.seed, self.step)
        chosen = self.assembly.sample(self.state.model, jnp.asarray(prompt), key)
        text = self.config.log.prompt + self.tokenizer.decode(np.asarray(chosen).tolist())
        self.instruments.progress.say("» " + text.strip().replace("\n", "\n  "), style="green")
        self.instruments.log.text(self.step, text)
        return True

    def _save_if_due(self) -> None:
        # What an earlier save failed with stops the run now, and not at the next save.
        self.instruments.checkpointer.check()
        if self.step % self.config.checkpoint.every and self.step != self.config.steps:
            return
        began = time.monotonic()
        with self.instruments.ledger.measure(Bucket.CHECKPOINT):
            self.instruments.checkpointer.save(self.step, self.state, self._meta())
        self._saved = self.step
        stolen = time.monotonic() - began
        name = prefix_of(self.step, self.instruments.checkpointer.attempt)
        size = sum(leaf.nbytes for leaf in jax.tree_util.tree_leaves(self.state)) / 2**20
        self.instruments.progress.say(
            f"saving checkpoint {name} ({size:,.1f} MiB, {stolen * 1000:.0f} ms stolen)", style="dim"
        )

    def _meta(self) -> Mapping[str, Any]:
        """What a checkpoint says besides its arrays. The batches and keys to come follow from it."""
        return {
            "loss": self._loss if math.isfinite(self._loss) else None,
            "data": {"digest": self.source.digest, "next_step": self.step},
            "random": {"seed": self.config.seed, "next_step": self.step},
            "serving": self.serving.to_json(),
            "lineage": list(self._lineage),
        }

    def _give_way(self) -> ExitCode:
        """The capacity is being taken back: commit the last finished step within the grace."""
        notice = self.instruments.notice
        words = f"every step is in the checkpoint of step {self._saved}" if self.step else "before the first step"
        if self._saved != self.step and self.step:
            left = max(0.0, notice.seconds_left - COMMIT_MARGIN_SECONDS)
            with self.instruments.ledger.measure(Bucket.CHECKPOINT):
                self.instruments.checkpointer.commit_now(self.step, self.state, self._meta(), deadline_seconds=left)
            words = f"step {self.step} committed in {notice.seconds_since:.1f} s of {notice.grace_seconds:g} s"
        else:
            self.instruments.checkpointer.wait(max(0.0, notice.seconds_left - COMMIT_MARGIN_SECONDS))
        self.instruments.ledger.mark(self.step)
        self.instruments.progress.warn(f"preempted: {words}; the same command resumes")
        return ExitCode.PREEMPTED

    def _diverged(self, metrics: StepMetrics) -> ExitCode:
        self.instruments.ledger.mark(self.step)
        self.instruments.progress.warn(
            f"diverged: {metrics.skipped_in_a_row} steps in a row had a gradient or loss that is not finite, the last "
            f"of them step {self.step}; {self._kept()}. Lower learning.rate, or look at the data of those steps",
            style="red",
        )
        return ExitCode.DIVERGED

    def _stopped(self) -> ExitCode:
        """By Ctrl-C: a save that is under way is waited for, unless there is a second one."""
        if self.instruments.notice.given:
            return self._give_way()
        self.instruments.checkpointer.wait()
        self.instruments.progress.warn(
            f"stopped after step {self.step}; {self._kept()}, and the same command goes on from there"
        )
        return ExitCode.STOPPED

    def _kept(self) -> str:
        """Which checkpoint there is to go on from."""
        return "there is no checkpoint yet" if self._saved is None else f"the checkpoint of step {self._saved} stands"

    def _finish(self) -> ExitCode:
        """Everything is trained: see the last checkpoint committed, and write the line by which others know it."""
        with self.instruments.ledger.measure(Bucket.CHECKPOINT):
            self.instruments.checkpointer.wait()
        self.instruments.ledger.mark(self.step)
        self.instruments.log.finish(
            {
                "step": self.step,
                "loss": self._loss,
                "params_sha256": sha256_of(self.state.model),
                "opt_state_sha256": sha256_of(self.state.opt_state),
            }
        )
        self.instruments.heartbeat.beat(self.step, at_once=True)
        return ExitCode.FINE
