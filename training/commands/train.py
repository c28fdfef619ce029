"""`python -m training --config FILE`: one attempt at a run, from its files to its exit code."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import jax
from rich.console import Console
from rich.text import Text

from training.assembly import Assembly, assemble
from training.checkpoint.checkpointer import Checkpointer
from training.checkpoint.errors import ResumeRefusedError, SaveFailedError, StoreError
from training.checkpoint.store import AbstractStore, open_store
from training.config import RunConfig, read_data, read_run
from training.config_loading import plain
from training.data.batches import BatchSource
from training.exit_codes import ExitCode
from training.export import Serving
from training.fingerprint import fingerprint
from training.goodput import Ledger
from training.heartbeat import NAME as HEARTBEAT
from training.heartbeat import Heartbeat
from training.loop import Instruments, Loop
from training.metrics import MetricsLog
from training.model.language_model import parameter_count
from training.model.tokenizer import load_tokenizer
from training.preemption import Notice
from training.progress import ProgressLine
from training.resuming import Start, start
from training.run_directory import RunDirectory

_OUT_OF_MEMORY: Final = ("RESOURCE_EXHAUSTED", "Out of memory")
"""How an accelerator and a processor say it."""


@final
@dataclass(frozen=True, kw_only=True)
class Options:
    """What a command line says besides the configuration."""

    fresh: bool = False
    """Start at step 0 though there are checkpoints."""
    allow_changes: bool = False
    """Go on from checkpoints of another configuration or other data."""
    quiet: bool = False
    """Say only what goes wrong."""


def train(
    config_path: Path,
    overrides: Sequence[str],
    run_dir: Path | None,
    options: Options,
    *,
    console: Console,
    notice: Notice,
    began: float,
) -> ExitCode:
    """Train what a configuration says, going on from its newest valid checkpoint; `began` is when the process did.

    Raises TrainingError for a mistake in the configuration, the data or the folders; StoreError and SaveFailedError
    where checkpoints cannot be read or written, unless the capacity is going anyway.
    """
    config, source = read_run(read_data(config_path, overrides), str(config_path))
    notice.grace_seconds = config.checkpoint.grace_seconds
    assembly = assemble(config)
    with ExitStack() as open_things:
        directory = RunDirectory(run_dir or Path("runs") / config.name)
        open_things.callback(directory.close)
        open_things.enter_context(jax.set_mesh(assembly.mesh))
        try:
            store = open_store(config.checkpoint.root or directory.checkpoints)
            open_things.callback(store.close)
            attempt = _Attempt(
                config=config,
                source=source,
                assembly=assembly,
                directory=directory,
                store=store,
                options=options,
                console=console,
                notice=notice,
                began=began,
            )
            return attempt.run()
        except jax.errors.JaxRuntimeError as error:
            # Never called a preemption, even where one has been announced: the next attempt would fail as this one did.
            if not any(words in str(error) for words in _OUT_OF_MEMORY):
                raise
            hint = "less at once (batch.accumulate, model.checkpoint_policy), a smaller model, or more devices"
            console.print(Text(f"error: out of memory: {error}\n  {hint}"), style="red", soft_wrap=True)
            return ExitCode.BUG
        except (SaveFailedError, StoreError) as error:
            if not notice.given:
                raise
            console.print(Text(f"preempted, and nothing was committed: {error}"), style="red", soft_wrap=True)
            return ExitCode.PREEMPTED


@final
@dataclass(frozen=True, kw_only=True)
class _Attempt:
    """Restore, train, and close everything, whatever happens."""

    config: RunConfig
    source: BatchSource
    assembly: Assembly
    directory: RunDirectory
    store: AbstractStore
    options: Options
    console: Console
    notice: Notice
    began: float

    def run(self) -> ExitCode:
        now = fingerprint(plain(self.config), self.source.digest)
        fresh, changes = self.options.fresh, self.options.allow_changes
        if not fresh:
            self._refuse_another_run()
        restoring = time.monotonic()
        begin = start(self.config, self.assembly, self.store, now, fresh=fresh, allow_changes=changes)
        restored = time.monotonic() - restoring if begin.step else 0.0
        if not self.options.quiet:
            _introduce(self.config, begin, self.console)
            if self.config.log.validate_every and not self.source.validation_batches:
                self.console.print("  the data have no validation text: nothing is validated", style="yellow")
        tokenizer = load_tokenizer(self.source.tokenizer_path)
        with ExitStack() as open_things:
            checkpointer = Checkpointer(
                self.store,
                run=self.config.name,
                retention=self.config.checkpoint.keep,
                fingerprint=now,
                start_over=fresh,
            )
            open_things.enter_context(checkpointer)
            self.directory.write_config(plain(self.config))
            self.directory.cut_metrics(begin.step)
            serving = Serving.published(self.store, self.config.model, self.source.tokenizer_path)
            instruments = self._instruments(checkpointer, begin, restored, open_things)
            loop = Loop(self.config, self.assembly, self.source, tokenizer, serving, instruments, begin)
            code = loop.run()
        if code is ExitCode.FINE and not self.options.quiet:
            place = shlex.quote(str(self.config.checkpoint.root or self.directory.checkpoints))
            words = "there was nothing left to do" if begin.step == loop.step else "finished"
            self.console.print(f"{words}: {loop.standing}", style="bold")
            self.console.print(Text(f"  Next: python -m training export {place} export/"), soft_wrap=True)
        return code

    def _refuse_another_run(self) -> None:
        """A folder is of one run, in one place: with another name or root it would start at 0, and lose its metrics."""
        before = self.directory.read_config()
        for field, was, is_ in (
            ("name", before.get("name"), self.config.name),
            ("checkpoint.root", (before.get("checkpoint") or {}).get("root"), self.config.checkpoint.root),
        ):
            if before and was != is_:
                raise ResumeRefusedError(
                    f"--run-dir {self.directory.path}: {field} was {was or 'not set'} there, and is "
                    f"{is_ or 'not set'} now: its checkpoints "
                    "would not be found. Name another folder, or start at step 0 on purpose (--fresh)"
                )

    def _instruments(
        self, checkpointer: Checkpointer, begin: Start, restored: float, open_things: ExitStack
    ) -> Instruments:
        """Everything around the step, each closed with `open_things`."""
        number = int(checkpointer.attempt)
        log_config, directory = self.config.log, self.directory
        ledger = Ledger(directory.goodput, number, resumed_at=begin.step, restored=restored, began=self.began)
        open_things.callback(ledger.close)
        board = directory.tensorboard if log_config.tensorboard else None
        log = MetricsLog(directory.metrics, tensorboard=board, resumed_at=begin.step)
        open_things.callback(log.close)
        line = ProgressLine(
            self.console,
            steps=self.config.steps,
            every=log_config.every,
            done=begin.step,
            quiet=self.options.quiet,
        )
        progress = open_things.enter_context(line)
        heartbeat = Heartbeat(
            lambda body: self.store.replace(HEARTBEAT, body, _generation(self.store)),
            run=self.config.name,
            attempt=number,
            failed=lambda error: progress.warn(f"the heartbeat was not written: {error}", style="yellow"),
        )
        return Instruments(
            ledger=ledger,
            log=log,
            checkpointer=checkpointer,
            heartbeat=heartbeat,
            progress=progress,
            notice=self.notice,
        )


def _generation(store: AbstractStore) -> str | None:
    before = store.read(HEARTBEAT)
    return None if before is None else before.generation


def _introduce(config: RunConfig, from_here: Start, console: Console) -> None:
    """The line that a run begins with, and the doubts about it."""
    mixers = "/".join(dict.fromkeys(mixer.type for mixer in config.model.mixers))
    devices = jax.devices()
    place = f"{len(devices)} × {devices[0].device_kind}" if len(devices) > 1 else devices[0].device_kind
    parameters = parameter_count(from_here.state.model)
    parts = (config.name, config.optim.type, mixers, f"{_size(parameters)} parameters", place, from_here.words)
    console.print(" · ".join(parts), style="bold", markup=False, soft_wrap=True)
    for note in from_here.notes:
        console.print(f"  {note}", style="yellow", markup=False, soft_wrap=True)


def _size(parameters: int) -> str:
    for unit, letter in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if parameters >= unit:
            return f"{parameters / unit:.1f} {letter}"
    return str(parameters)
