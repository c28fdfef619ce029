"""What a run starts from: its newest valid checkpoint where there is one, and whether that is a resume at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

from training.assembly import Assembly, fresh_state
from training.checkpoint.discovery import Found, find_newest_valid
from training.checkpoint.errors import ResumeRefusedError
from training.checkpoint.restoring import restore
from training.checkpoint.store import AbstractStore
from training.config import RunConfig
from training.fingerprint import Fingerprint, Judgement, Verdict, compare
from training.train_step import TrainState


@final
@dataclass(frozen=True, kw_only=True)
class Start:
    """The state that an attempt begins with."""

    state: TrainState
    step: int
    """Updates that it has seen."""
    words: str
    """What there is to say of it, in the line that introduces a run."""
    loss: float = math.nan
    """Of its last step; NaN before the first."""
    lineage: tuple[str, ...] = ()
    """The resumes of this run so far that were not BITWISE; checkpoints carry them on."""
    notes: tuple[str, ...] = ()
    """Reasons and warnings, one line each."""


def start(
    config: RunConfig,
    assembly: Assembly,
    store: AbstractStore,
    now: Fingerprint,
    *,
    fresh: bool,
    allow_changes: bool,
) -> Start:
    """The state of the newest valid checkpoint of the run, or a fresh one.

    Raises ResumeRefusedError where the checkpoints belong to another run, unless `allow_changes` (the arrays must match
    all the same), or where all are damaged; StoreError where they cannot be read.
    """
    found = find_newest_valid(store, config.name, start_over=fresh)
    if found is None:
        return Start(state=fresh_state(config, assembly), step=0, words="from the start")
    verdict = _judged(found, now, allow_changes=allow_changes)
    state, meta = restore(found, assembly.shapes, assembly.shardings)
    loss = meta.get("loss")
    before = tuple(map(str, meta.get("lineage", ())))
    called = _CALLED[verdict.judgement]
    lineage = before if verdict.judgement is Judgement.BITWISE else (*before, f"{called} at step {found.step}")
    notes = (
        *(f"stepped over: {why}" for why in found.skipped),
        *verdict.reasons,
        *(f"not the bits of a straight run: {each}" for each in before),
    )
    return Start(
        state=state,
        step=found.step,
        words=f"resume: {called} from step {found.step}",
        loss=math.nan if loss is None else float(loss),
        lineage=lineage,
        notes=notes,
    )


_CALLED: Final = {Judgement.BITWISE: "BITWISE", Judgement.NUMERIC: "NUMERIC", Judgement.REFUSED: "CHANGED"}
"""What a resume is called; one that would be refused is done only where it is asked for."""


def _judged(found: Found, now: Fingerprint, *, allow_changes: bool) -> Verdict:
    saved = found.manifest.fingerprint
    if saved is None:
        return Verdict(judgement=Judgement.NUMERIC, reasons=(f"{found.url} does not say what it was made with",))
    verdict = compare(Fingerprint.from_json(saved), now)
    if verdict.judgement is Judgement.REFUSED and not allow_changes:
        raise ResumeRefusedError(
            f"{found.url} is of another run, and going on from it would not be a resume:\n  "
            + "\n  ".join(verdict.reasons)
            + "\nGive the run another name or folder, start it at step 0 (--fresh; the checkpoints are kept), or go on "
            "with the change on purpose (--allow-changes)."
        )
    return verdict
