"""From a folder to a model on its devices, and what that took."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import final

import jax
import numpy as np
from jax.sharding import Mesh
from jax.typing import DTypeLike

from inference.errors import ServingError
from inference.weights.manifest import MANIFEST, verify_files
from inference.weights.matching import match
from inference.weights.model_folder import ModelFolder, read_model_folder
from inference.weights.placement import Placer
from inference.weights.plan import Target
from inference.weights.progress import Listener, LoadReport, Phase, Progress
from inference.weights.reading import Reader
from inference.weights.reading_style import ReadingStyle
from inference.weights.watchdog import Patience
from training.model.config import ModelConfig
from training.model.language_model import LanguageModel
from training.model.paths import dotted
from training.model.tokenizer import Tokenizer


@final
@dataclass(frozen=True, kw_only=True)
class LoadedModel:
    """A model that can be served."""

    model: LanguageModel
    """Unrolled: every layer is an array of its own. On a CPU the arrays are the memory that was read to."""
    config: ModelConfig
    """As config.json has it."""
    tokenizer: Tokenizer
    fingerprint: str
    """sha256 in hex of the weights, the tokenizer and the dtypes in which they are served: what one model has computed
    may be used by another of the same fingerprint."""
    report: LoadReport
    warnings: tuple[str, ...]
    """What is odd and does no harm."""


def load_model(
    folder: Path,
    style: ReadingStyle,
    *,
    dtype: DTypeLike | None = None,
    mesh: Mesh | None = None,
    verify: bool = False,
    finite: bool = False,
    progress: Listener | None = None,
    patience: Patience | None = None,
) -> LoadedModel:
    """The model in `folder`, in which this process reads what its devices need, on `mesh` or on its first device.

    `dtype` float32 or bfloat16 is what parameters are served in, but for norms and decays, which are fp32; without it
    they stay as they are stored. `verify` compares the sha256 of every file with MANIFEST.json first; `finite` refuses
    infinities and not-a-numbers. Raises ServingError, and for everything that config, headers, index or manifest can
    say before any memory is taken for tensors; whatever `progress` raises, which ends a load.
    """
    clock = _Clock(progress)
    with clock.phase(Phase.HEADERS):
        found = read_model_folder(folder, workers=style.workers)
        matched = match(found, dtype=None if dtype is None else np.dtype(dtype), mesh=mesh)
    if verify:
        _verify(found, style, clock)
    placer = Placer(matched.shardings)
    reader = Reader(matched.targets, style, finite=finite, patience=patience)
    size = sum(target.size for target in matched.targets)
    with clock.phase(Phase.READ, size):
        reader.run(placer.place, lambda done: clock.tell(min(done, size)))
    with clock.phase(Phase.ASSEMBLE):
        model = jax.tree_util.tree_map_with_path(lambda path, _: placer.arrays[dotted(path)], matched.skeleton)
    return LoadedModel(
        model=model,
        config=found.config,
        tokenizer=found.tokenizer,
        fingerprint=_fingerprint(found.identity, matched.targets),
        report=LoadReport(
            bytes_read=reader.bytes_read,
            seconds=MappingProxyType(clock.seconds),
            placing_seconds=placer.seconds,
            retries=reader.retries,
        ),
        warnings=found.warnings,
    )


def _verify(found: ModelFolder, style: ReadingStyle, clock: _Clock) -> None:
    if found.manifest is None:
        raise ServingError(
            f"{found.path}: has no {MANIFEST}, so that there is nothing to verify it against. Load it without "
            "verifying, or export it with `python -m training export`, which writes one"
        )
    with clock.phase(Phase.VERIFY, sum(entry.size for entry in found.manifest.files.values())):
        verify_files(found.path, found.manifest, workers=style.workers, read=clock.add)


def _fingerprint(identity: str, targets: tuple[Target, ...]) -> str:
    served = "\n".join(sorted(f"{target.name} {target.dtype.name}" for target in targets))
    return hashlib.sha256(f"spotrail.weights/1\n{identity}\n{served}".encode()).hexdigest()


@final
class _Clock:
    """Times the phases, and tells how far they are."""

    def __init__(self, listener: Listener | None) -> None:
        self._listener = listener
        self._phase, self._began, self._done, self._total = Phase.HEADERS, 0.0, 0, 0
        self.seconds: dict[Phase, float] = {}

    @contextmanager
    def phase(self, phase: Phase, total: int = 0) -> Iterator[None]:
        """What is done inside is of this phase."""
        self._phase, self._began, self._done, self._total = phase, time.perf_counter(), 0, total
        self.tell(0)
        yield
        self.seconds[phase] = time.perf_counter() - self._began
        self.tell(total)

    def add(self, count: int) -> None:
        """Bytes more are through."""
        self.tell(self._done + count)

    def tell(self, done: int) -> None:
        """So many bytes are through."""
        self._done = done
        if self._listener is not None:
            seconds = time.perf_counter() - self._began
            self._listener(Progress(phase=self._phase, done=done, total=self._total, seconds=seconds))
