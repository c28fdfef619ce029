"""What the scheduler asks of an engine. Three stand behind it: the one on a device, one on several devices that is made
of such, and one whose tokens are sums.

An engine has `slots` rows of state, each of one fixed size. It is driven by one thread. A slot goes

    free -> admit -> prefill ... prefill(last) -> decode ... decode -> release -> free

and anything else raises SlotError. What the other slots do never changes the bits that a slot gives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from inference.engine.sampling_parameters import SamplingParameters


class SlotError(RuntimeError):
    """A slot was asked for what it cannot do now: a bug of who asked."""


@final
@dataclass(frozen=True, kw_only=True)
class Limits:
    """The sizes of an engine."""

    slots: int
    """Answers that it works on at once."""
    grid: int
    """Tokens between two places where a prompt is split, and where a state may be kept: 0, grid, 2 grid, ..."""
    context: int
    """The most tokens of prompt and answer together."""
    vocab_size: int
    """Tokens that there are: 0 to vocab_size - 1."""
    state_bytes: int
    """Bytes of the state of one sequence, whatever its length."""
    devices: int = 1
    """That work side by side: each has as many of the slots, 1, 2, ... the first. What is done on one costs the others
    nothing."""

    def __post_init__(self) -> None:
        if not 1 <= self.devices <= self.slots or self.slots % self.devices:
            raise ValueError(f"devices: {self.slots} slots are not the same number on each of {self.devices}")

    def device_of(self, slot: int) -> int:
        """The device that a slot stands on, counted from 0."""
        return (slot - 1) * self.devices // self.slots

    def by_turns(self, free: Iterable[int]) -> tuple[int, ...]:
        """These slots, each the first of the device that has the most of them left."""
        of_device: list[list[int]] = [[] for _ in range(self.devices)]
        for slot in sorted(free):
            of_device[self.device_of(slot)].append(slot)
        return tuple(slot for _, slot in sorted((at - len(of), slot) for of in of_device for at, slot in enumerate(of)))


@final
@dataclass(frozen=True, kw_only=True)
class Choice:
    """A token that was chosen."""

    token: int
    """Its id."""
    logprob: float | None = None
    """Of it under the model, natural logarithm, after bias and penalties and before temperature; None: not asked."""
    top: tuple[tuple[int, float], ...] = ()
    """The likeliest tokens with theirs, falling, as many as were asked for."""


@final
@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """All that a model knows of the first `position` tokens of a sequence, in host memory."""

    position: int
    """Tokens that were read: a multiple of the grid."""
    arrays: Any
    """The arrays of one row of state, as the engine has them; never written to."""
    nbytes: int
    """What it takes."""
    digest: str
    """Of position and arrays: `restore` refuses a snapshot that has changed."""


class AbstractEngine(ABC):
    """Slots of state, and what turns tokens into tokens."""

    @property
    @abstractmethod
    def limits(self) -> Limits:
        """Its sizes."""

    @abstractmethod
    def admit(self, slot: int, parameters: SamplingParameters, *, prompt: Sequence[int], start: Snapshot | None) -> int:
        """Take a free slot for an answer to `prompt`, at the empty state or that of `start`; the position it is at.

        Raises SlotError where the slot is not free; ValueError where the snapshot is damaged, or is not shorter than
        the prompt: the last token is always read, since its logits are needed.
        """

    @abstractmethod
    def begin_prefill(self, slot: int, *, scored: bool = False) -> None:
        """Begin what the next `prefill` of the slot waits for, so that other devices can be given work meanwhile.

        Until then the slot can only be prefilled, with the same `scored`, or released.
        """

    @abstractmethod
    def prefill(self, slot: int, *, scored: bool = False) -> Prefilled:
        """Read the next piece of the prompt: from the position to the next place on the grid, or the end.

        `scored` gives the log-probabilities of the tokens of the piece too. After the last piece the slot has chosen
        its first token.
        """

    @abstractmethod
    def decode(self, slots: Iterable[int]) -> Mapping[int, Choice]:
        """Read the token that each of `slots` has chosen, and choose the next, all at once."""

    @abstractmethod
    def snapshot(self, slot: int) -> Snapshot:
        """The state of a slot whose position is on the grid and which has not begun to answer."""

    @abstractmethod
    def release(self, slot: int) -> None:
        """Give a slot back, at any point; its state is emptied."""

    @abstractmethod
    def free_slots(self) -> Sequence[int]:
        """Those that can be admitted to: by turns of the device that has the most of them, each in order."""


@final
@dataclass(frozen=True, kw_only=True)
class Prefilled:
    """What the reading of a piece gave."""

    position: int
    """Tokens that are read now."""
    choice: Choice | None
    """The first token of the answer, where the prompt is at its end."""
    scores: tuple[Choice, ...] = ()
    """Where asked: for each token of the piece, it with its log-probability given all before it, and the likeliest
    there. The first token of a prompt has none, so that its piece gives one less."""
