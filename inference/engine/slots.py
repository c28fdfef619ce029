"""Which slot is doing what: the one place that says what a slot may be asked for."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from inference.engine.abstract_engine import Choice, SlotError
from inference.engine.sampling_parameters import SamplingParameters


@final
class FaultySlotsError(RuntimeError):
    """The logits of some slots are no numbers: NaN, or an infinity. The other slots of the call have their tokens.

    Such a slot can only be released. Its token was not chosen, and nothing of it is in any other row.
    """

    def __init__(self, slots: Sequence[int], choices: Mapping[int, Choice]) -> None:
        """Of one call."""
        self.slots = tuple(slots)
        """Those that failed."""
        self.choices = dict(choices)
        """Of all others of the call."""
        named = ", ".join(map(str, self.slots))
        super().__init__(
            f"slot {named}: the logits are no numbers; the weights, or what was read, make NaN or infinity"
        )


@final
class Phase(enum.Enum):
    """Where a slot is on its way from free to free."""

    FREE = "free"
    """It can be admitted to."""
    READING = "reading its prompt"
    """There are pieces left."""
    ANSWERING = "answering"
    """It has chosen a token that it has not read."""
    FAULTY = "failed"
    """It can only be released."""


@final
@dataclass(frozen=True, kw_only=True)
class Begun:
    """A piece of a prompt that the device reads."""

    piece: range
    """Its places."""
    chosen: Any
    """What the device will have chosen."""
    scored: Any
    """Log-probabilities, the likeliest and theirs, where they are asked for."""


@final
@dataclass(kw_only=True)
class Slot:
    """What the host knows of a slot."""

    number: int
    row: int
    """Where it stands on its device."""
    phase: Phase = Phase.FREE
    position: int = 0
    """Tokens that were read."""
    prompt: Any = ()
    """The token ids as an array of int32."""
    parameters: SamplingParameters = field(default_factory=lambda: SamplingParameters(temperature=0))
    scored: bool | None = None
    """Whether the pieces so far were scored; None before the first."""
    boundary: Any = None
    """Logits behind the last piece that was scored, on the device."""
    begun: Begun | None = None
    """The piece that the device reads, where it is not waited for yet."""

    def need(self, doing: str, *phases: Phase) -> None:
        """Raises SlotError where the slot is in none of `phases`."""
        if self.phase not in phases:
            allowed = " or ".join(phase.value for phase in phases)
            raise SlotError(
                f"slot {self.number}: {doing} is for a slot that is {allowed}; this one is {self.phase.value}"
            )

    def need_rest(self, doing: str) -> None:
        """Raises SlotError where the device reads a piece that is not waited for yet."""
        if self.begun is not None:
            raise SlotError(f"slot {self.number}: {doing} comes behind the prefill that was begun")

    def begin(self, prompt: Any, parameters: SamplingParameters, *, position: int) -> None:
        """Reading, from the position on."""
        self.phase, self.prompt, self.parameters, self.position = Phase.READING, prompt, parameters, position

    def decide_scoring(self, scored: bool) -> None:
        """Raises SlotError where the next piece is scored and the one before was not, or the other way round."""
        if scored and self.scored is None and self.position > 0:
            raise SlotError(
                f"slot {self.number}: a prompt is scored from its first token on; this one starts at a snapshot"
            )
        if self.scored not in (None, scored):
            raise SlotError(f"slot {self.number}: the pieces of a prompt are all scored, or none")
        self.scored = scored

    def piece(self, grid: int) -> range:
        """The places of the prompt that are read next: to the next place on the grid, or the end."""
        return range(self.position, min(len(self.prompt), (self.position // grid + 1) * grid))

    def empty(self) -> None:
        """Free, with nothing left of what was."""
        self.__dict__.update(Slot(number=self.number, row=self.row).__dict__)


@final
class Slots:
    """The `count` slots from `first` on, in rows 1, 2, ... of a device; row 0 is nobody's."""

    def __init__(self, count: int, *, first: int = 1) -> None:
        """All free."""
        self._all = tuple(Slot(number=first + row - 1, row=row) for row in range(1, count + 1))

    def __getitem__(self, number: int) -> Slot:
        first, last = self._all[0].number, self._all[-1].number
        if not first <= number <= last:
            raise SlotError(f"slot {number}: there are slots {first} to {last}")
        return self._all[number - first]

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._all)

    def free(self) -> tuple[int, ...]:
        """Those that can be admitted to, in order."""
        return tuple(slot.number for slot in self._all if slot.phase is Phase.FREE)

    def to_decode(self, numbers: Sequence[int], *, context: int) -> dict[int, Slot]:
        """The slots of one decode. Raises SlotError before anything is done where one of them cannot."""
        if len(set(numbers)) != len(numbers):
            raise SlotError(f"slots {list(numbers)}: one of them is named twice")
        found = {number: self[number] for number in numbers}
        for slot in found.values():
            if slot.phase is not Phase.ANSWERING:
                slot.need("decode", Phase.ANSWERING)
            if slot.position + 2 > context:
                raise SlotError(f"slot {slot.number}: its {slot.position + 1} tokens fill the context of {context}")
        return found
