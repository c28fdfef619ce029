"""From `--weights` to an engine that has made a token: where they are, loading, compiling, a test of all of it.

Each step says what it took. What is wrong with the weights or does not fit the machine is one message, and the server
is never ready with it.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, Generic, TypeVar, final

import jax

from inference.engine.abstract_engine import AbstractEngine
from inference.engine.engine import Engine
from inference.engine.replicated_engine import ReplicatedEngine
from inference.engine.sampling_parameters import SamplingParameters
from inference.engine.slots import FaultySlotsError
from inference.errors import ServingError
from inference.http.lifecycle import Event
from inference.http.metrics import Reading
from inference.http.service import Assembled, AssemblyError
from inference.protocol.served_model import ServedModel
from inference.settings import GIB, KIB, MIB, Settings
from inference.version import version
from inference.weights.loading import LoadedModel, load_model
from inference.weights.progress import LoadReport, Progress
from inference.weights.sources.errors import CloudError
from inference.weights.sources.kinds import LocalModel, SourceKind
from inference.weights.sources.progress import EVERY, Told
from inference.weights.sources.resolving import resolve

MOST_ANSWERS: Final = 128
"""Of one request."""
_NO_NUMBERS: Final = (
    "the model answers with NaN or infinities; it is of a run that diverged, or --dtype is too narrow for it"
)
_WHOLE: Final = "Every device holds the whole model, and none is served sharded over several yet"
ProgressT = TypeVar("ProgressT")
_EXHAUSTED: Final = "RESOURCE_EXHAUSTED"


def assemble(settings: Settings, tell: Callable[[Event], None], say: Callable[[str], None]) -> Assembled:
    """An engine of these settings. Raises ServingError, TrainingError, and AssemblyError where a bucket fails."""
    if settings.compile_cache is not None:
        _keep_programs(settings.compile_cache)
    devices = devices_of(settings.devices, jax.local_devices())
    tell(Event.WEIGHTS)
    local = _resolved(settings, say)
    with _fits(f"--weights {settings.weights}: the model does not fit the memory of a device; take --dtype bfloat16"):
        loaded = load_model(
            local.folder,
            local.style,
            dtype=None if settings.dtype == "as-stored" else settings.dtype,
            verify=settings.verify,  # a download too: an earlier start may not have held it against its digests
            progress=_Spaced(say, _load_progress),
        )
    for warning in loaded.warnings:
        say(f"warning: {warning}")
    say(f"loaded {loaded.report.to_text()}")
    tell(Event.COMPILE)
    with _fits(
        f"--slots {settings.slots} --context {settings.context}: does not fit the memory of a device beside the "
        "weights; take fewer slots, or --dtype bfloat16"
    ):
        engine, seconds = _compiled(loaded, devices, settings, say)
        self_test(engine, settings.weights)
    return Assembled(
        engine=engine,
        fingerprint=engine.fingerprint,
        model=_served(loaded, local, settings, slots=engine.limits.slots),
        readings=readings(local.seconds, loaded.report, compile_seconds=seconds, devices=len(devices)),
    )


def devices_of(wanted: int | None, here: Sequence[jax.Device]) -> tuple[jax.Device, ...]:
    """The first `wanted` of the devices that are here, or all. Raises ServingError where there are fewer."""
    if wanted is not None and wanted > len(here):
        found = f"one is here ({here[0].platform})" if len(here) == 1 else f"{len(here)} are here ({here[0].platform})"
        raise ServingError(f"--devices {wanted}: {found}; ask for no more, or for all")
    return tuple(here[:wanted])


def self_test(engine: AbstractEngine, weights: str) -> None:
    """Make two tokens on each device, so that every part has worked before anybody is let in.

    Raises ServingError where what comes out is no number: weights may be whole, and still be of a run that diverged.
    And where it is not the same on each device.
    """
    slots = engine.free_slots()[: engine.limits.devices]
    parameters = SamplingParameters(temperature=0, logprobs=0)
    for slot in slots:
        engine.admit(slot, parameters, prompt=(0,), start=None)
    try:
        first = {slot: engine.prefill(slot).choice for slot in slots}
        then = engine.decode(slots)
    except FaultySlotsError:
        raise ServingError(f"--weights {weights}: {_NO_NUMBERS}") from None
    finally:
        for slot in slots:
            engine.release(slot)
    for device, slot in enumerate(slots):
        said = (first[slot], then[slot])
        if not all(choice is not None and math.isfinite(choice.logprob or 0.0) for choice in said):
            raise ServingError(f"--weights {weights}: {_NO_NUMBERS}")
        if said != (first[slots[0]], then[slots[0]]):
            raise ServingError(
                f"--devices {len(slots)}: device {device} answers otherwise than device 0, counted from 0; it is of "
                "another kind, or fails. Serve from fewer, or show JAX the others alone"
            )


def readings(
    resolve_seconds: float, report: LoadReport, *, compile_seconds: float, devices: int
) -> tuple[Reading, ...]:
    """What a start took, for the metrics."""
    seconds = {"resolve": resolve_seconds, **{phase.value: taken for phase, taken in report.seconds.items()}}
    return (
        *(
            Reading(
                name="spotrail_weights_load_seconds",
                help="What loading took, by phase",
                labels={"phase": phase},
                value=taken,
            )
            for phase, taken in seconds.items()
        ),
        Reading(name="spotrail_weights_bytes", help="Of tensors that were read", value=report.bytes_read),
        Reading(name="spotrail_compile_seconds", help="What compiling took", value=compile_seconds),
        Reading(name="spotrail_devices", help="Devices that answer", value=devices),
    )


def _load_progress(progress: Progress) -> str:
    return f"{progress.phase.value}: {progress.done / 1e9:.2f} of {progress.total / 1e9:.2f} GB"


def _resolved(settings: Settings, say: Callable[[str], None]) -> LocalModel:
    try:
        local = resolve(
            settings.weights,
            SourceKind(settings.source),
            cache=settings.weights_cache,
            progress=Told(say),
            verify=settings.verify,
        )
    except CloudError as error:
        raise AssemblyError(str(error), Event.CLOUD_FAILED) from None
    for warning in local.warnings:
        say(f"warning: {warning}")
    say(f"weights: {local.folder} ({local.kind.value}, {_size(local.bytes)}, found in {local.seconds:.1f} s)")
    return local


def _compiled(
    loaded: LoadedModel, devices: Sequence[jax.Device], settings: Settings, say: Callable[[str], None]
) -> tuple[Engine | ReplicatedEngine, float]:
    engine = _engine(loaded, devices, settings)
    weights = sum(leaf.nbytes for leaf in jax.tree.leaves(loaded.model))
    states = (settings.slots + 1) * engine.limits.state_bytes
    each = f" on each of {len(devices)} devices" if len(devices) > 1 else ""
    say(
        f"memory: weights {_size(weights)}, states {_size(states)} ({settings.slots} slots of "
        f"{_size(engine.limits.state_bytes)}, and one that is never answered from){each}, kept states up to "
        f"{_size(settings.cache_memory)} of the host"
    )
    began = time.perf_counter()
    engine.compile()
    seconds = time.perf_counter() - began
    say(f"compiled {engine.compilations} programs in {seconds:.1f} s")
    return engine, seconds


def _engine(loaded: LoadedModel, devices: Sequence[jax.Device], settings: Settings) -> Engine | ReplicatedEngine:
    # A single device is the first, on which the model is.
    build = Engine if len(devices) == 1 else partial(ReplicatedEngine, devices=devices)
    return build(
        loaded.model,
        slots=settings.slots,
        context=settings.context,
        grid=settings.grid,
        weights_digest=loaded.fingerprint,
    )


def _served(loaded: LoadedModel, local: LocalModel, settings: Settings, *, slots: int) -> ServedModel:
    # With another number of slots on a device the last bits of a logit may be others, and so may the token of a seed.
    # How many devices there are changes no bit.
    said = f"{loaded.fingerprint} {version()} {settings.slots} {settings.grid}"
    identity = hashlib.sha256(said.encode()).hexdigest()
    return ServedModel(
        name=settings.served_name,
        tokenizer=loaded.tokenizer,
        context=settings.context,
        vocab_size=loaded.config.vocab_size,
        created=int((local.folder / "config.json").stat().st_mtime),
        fingerprint=f"fp_{identity[:16]}",
        most_answers=min(MOST_ANSWERS, slots + settings.queue),
    )


def _size(count: int) -> str:
    """Bytes, in the unit in which they are read."""
    unit, name = next(
        (unit, name) for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")) if count >= unit or unit == KIB
    )
    return f"{count / unit:.1f} {name}"


def _keep_programs(folder: Path) -> None:
    """Let JAX find compiled programs of earlier starts, and keep those of this one, however fast they were."""
    try:
        folder = folder.expanduser()
        folder.mkdir(parents=True, exist_ok=True)
    except RuntimeError:
        raise ServingError(f"--compile-cache {folder}: this user has no home; name a folder without ~") from None
    except OSError as error:
        raise ServingError(f"--compile-cache {folder}: {error.strerror or error}") from None
    if not os.access(folder, os.W_OK):
        raise ServingError(f"--compile-cache {folder}: may not be written to")
    jax.config.update("jax_compilation_cache_dir", str(folder))  # type: ignore[no-untyped-call]
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)  # type: ignore[no-untyped-call]


@contextmanager
def _fits(otherwise: str) -> Iterator[None]:
    """Say so where a device has not enough memory, and what to do then."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if _EXHAUSTED not in str(error):
            raise
        raise ServingError(f"{otherwise}. {_WHOLE}. {str(error).splitlines()[0][:300]}") from None


@final
class _Spaced(Generic[ProgressT]):
    """Says how far something is, every few seconds."""

    def __init__(self, say: Callable[[str], None], text: Callable[[ProgressT], str]) -> None:
        self._say: Final = say
        self._text: Final = text
        self._last = time.monotonic()

    def __call__(self, progress: ProgressT) -> None:
        now = time.monotonic()
        if now - self._last >= EVERY:
            self._last = now
            self._say(self._text(progress))
