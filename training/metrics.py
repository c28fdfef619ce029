"""What a run writes down as it goes: one JSON line a step, and the same for TensorBoard."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from training.errors import MachineError
from training.json_lines import JsonLines

if TYPE_CHECKING:
    from tensorboardX import SummaryWriter


@final
class MetricsLog:
    """Appends to `metrics.jsonl`; a line is on its way to the disk when `write` returns."""

    def __init__(self, path: Path, *, tensorboard: Path | None = None, resumed_at: int = 0) -> None:
        """`tensorboard` is a folder for event files; what they have beyond `resumed_at` is hidden there."""
        self._file = JsonLines(path)
        self._board_folder = tensorboard
        self._board = None if tensorboard is None else _board(tensorboard, resumed_at)

    def write(self, step: int, values: Mapping[str, float | int | None]) -> None:
        """The line of one step. What is not finite is null there, since JSON has no word for it."""
        told = {name: _finite(value) for name, value in values.items()}
        self._file.append({"step": step, **told})
        if self._board is not None:
            for name, value in told.items():
                if value is not None:
                    self._board.add_scalar(name, value, step)

    def text(self, step: int, sample: str) -> None:
        """A sample of text, for TensorBoard alone."""
        if self._board is not None:
            self._board.add_text("sample", f"```\n{sample}\n```", step)

    def finish(self, final: Mapping[str, Any]) -> None:
        """The last line of a finished run."""
        self._file.append({"final": {name: _finite(value) for name, value in final.items()}})

    def close(self) -> None:
        """Let go of the files. Raises MachineError where the disk does not take what TensorBoard has held back."""
        self._file.close()
        try:
            if self._board is not None:
                self._board.close()
        except OSError as error:
            raise MachineError(f"{self._board_folder}: cannot be written: {error.strerror or error}") from None


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _board(folder: Path, resumed_at: int) -> SummaryWriter:
    # A second of import that a run without TensorBoard need not wait for.
    from tensorboardX import SummaryWriter

    return SummaryWriter(str(folder), purge_step=resumed_at + 1, max_queue=100)
