"""`python -m training --config FILE`: one attempt at a run, from its files to its exit code."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import jax
from rich.console import Console

from training.assembly import Assembly, assemble
from training.checkpoint.checkpointer import Checkpointer
from training.checkpoint.errors import ResumeRefusedError, SaveFailedError, StoreError
from training.checkpoint.store import AbstractStore, open_store
from training.config import RunConfig, read_data, read_run
from training.config_loading import plain
from training.data.batches import BatchSource
from training.data.tokenizer import load_tokenizer
from training.exit_codes import ExitCode
from training.export import Serving, publish_tokenizer
from training.fingerprint import fingerprint
from training.goodput import Ledger
from training.heartbeat import NAME as HEARTBEAT
from training.heartbeat import Heartbeat
from training.loop import Instruments, Loop
from training.metrics import MetricsLog
from training.model.language_model import parameter_count
from training.preemption import Notice
from training.progress import ProgressLine
from training.resuming import Start, start
from training.run_directory import RunDirectory


def train(
    config_path: Path,
    overrides: Sequence[str],
    run_dir: Path | None,
    *,
    fresh: bool,
    allow_changes: bool,
    console: Console,
    notice: Notice,
    began: float,
) -> ExitCode:
    """Train what a configuration says, going on from its newest valid checkpoint; `began` is when the process did.

    Raises TrainingError for a mistake in the configuration, the data or the folders.
    """
    config, source = read_run(read_data(config_path, overrides), str(config_path))
    notice.grace_seconds = config.checkpoint.grace_seconds
    assembly = assemble(config)
    with ExitStack() as open_things:
        directory = RunDirectory(run_dir or Path("runs") / config.name)
        open_things.callback(directory.close)
        directory.write_config(plain(config))
        open_things.enter_context(jax.set_mesh(assembly.mesh))
        try:
            store = open_store(config.checkpoint.root or directory.checkpoints)
            open_things.callback(store.close)
            return _attempt(config, source, assembly, directory, store, fresh, allow_changes, console, notice, began)
        except ResumeRefusedError as error:
            console.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
            return ExitCode.RESUME_REFUSED
        except (SaveFailedError, StoreError) as error:
            console.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
            return ExitCode.PREEMPTED if notice.given else ExitCode.BUG


def _attempt(
    config: RunConfig,
    source: BatchSource,
    assembly: Assembly,
    directory: RunDirectory,
    store: AbstractStore,
    fresh: bool,
    allow_changes: bool,
    console: Console,
    notice: Notice,
    began: float,
) -> ExitCode:
    """Restore, train, and close everything, whatever happens."""
    print_of_run = fingerprint(plain(config), source.digest)
    from_here = start(config, assembly, store, print_of_run, fresh=fresh, allow_changes=allow_changes)
    _introduce(config, from_here, console)
    tokenizer = load_tokenizer(source.tokenizer_path)
    with ExitStack() as open_things:
        checkpointer = Checkpointer(
            store,
            run=config.name,
            retention=config.checkpoint.keep,
            fingerprint=print_of_run,
            start_over=fresh,
        )
        open_things.enter_context(checkpointer)
        directory.cut_metrics(from_here.step)
        ledger = Ledger(directory.goodput, int(checkpointer.attempt), resumed_at=from_here.step, began=began)
        open_things.callback(ledger.close)
        board = directory.tensorboard if config.log.tensorboard else None
        log = MetricsLog(directory.metrics, tensorboard=board, resumed_at=from_here.step)
        open_things.callback(log.close)
        progress = open_things.enter_context(ProgressLine(console, steps=config.steps, every=config.log.every))
        heartbeat = Heartbeat(
            lambda body: store.replace(HEARTBEAT, body, _generation(store)),
            run=config.name,
            attempt=int(checkpointer.attempt),
            failed=lambda error: progress.say(f"the heartbeat was not written: {error}", style="yellow"),
        )
        instruments = Instruments(
            ledger=ledger,
            log=log,
            checkpointer=checkpointer,
            heartbeat=heartbeat,
            progress=progress,
            notice=notice,
        )
        serving = Serving(model=config.model, tokenizer=publish_tokenizer(store, source.tokenizer_path))
        return Loop(config, assembly, source, tokenizer, serving, instruments, from_here).run()


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
