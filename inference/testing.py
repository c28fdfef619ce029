"""An engine without a model: its tokens are sums that a reader computes by hand, for the tests of all that drives one.

The state of a sequence is one number. It begins at 0, and to read token `t` makes `1001 s + t + 1` of `s`, modulo the
prime 2^31 - 1. So it depends on every token before, on their order and their number, and on nothing else: a state that
was put back wrongly, a slot mixed up with another, a token lost or read twice shows in the tokens that follow.

    prompt 5, 2, 7      0 -> 6 -> 6009 -> 6015017      next: that modulo the vocabulary; of 256 tokens it is 41

The likeliest next token is the state modulo the vocabulary, under `logit_bias`; it is taken at temperature 0. At any
other temperature the token is `seed + draw` places behind it. The token `d` places behind the state has the
probability 2^-(d+1), so that the log-probability is -(d+1) ln 2. Penalties and top-k, top-p and min-p do nothing.
"""

from __future__ import annotations

import enum
import hashlib
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, final

from inference.engine.abstract_engine import AbstractEngine, Choice, Limits, Prefilled, SlotError, Snapshot
from inference.engine.sampling_parameters import SamplingParameters
from inference.engine.slots import FaultySlotsError

_PRIME: Final = 2**31 - 1
_FACTOR: Final = 1001  # over the usual vocabularies of tests, so that texts which differ little differ in their state


def summed(tokens: Iterable[int], state: int = 0) -> int:
    """The state behind `tokens`, from `state`."""
    for token in tokens:
        state = (_FACTOR * state + token + 1) % _PRIME
    return state


def answer(prompt: Sequence[int], count: int, parameters: SamplingParameters, *, vocab_size: int = 256) -> list[int]:
    """The first `count` tokens that the engine answers to `prompt`."""
    state, chosen = summed(prompt), []
    for _ in range(count):
        chosen.append(_chosen(state, parameters, vocab_size))
        state = summed(chosen[-1:], state)
    return chosen


@final
class Call(enum.Enum):
    """What an engine is asked."""

    ADMIT = "admit"
    BEGIN_PREFILL = "begin prefill"
    PREFILL = "prefill"
    DECODE = "decode"
    SNAPSHOT = "snapshot"
    RELEASE = "release"


class EngineFaultError(RuntimeError):
    """A fault that a test has asked for."""


@final
@dataclass(frozen=True, kw_only=True)
class Fault:
    """A call that goes wrong: it raises EngineFaultError before it does anything, or gives no numbers for one slot."""

    call: Call
    """Of this kind,"""
    slot: int | None = None
    """which is about this slot, or any;"""
    turn: int | None = None
    """the how manyth of its kind, from 1, or every one;"""
    no_numbers: bool = False
    """of `prefill` or `decode`, all is done, and the logits of `slot` are no numbers: it raises FaultySlotsError."""


@final
@dataclass(slots=True)
class _Row:
    """An answer in a slot."""

    parameters: SamplingParameters
    prompt: tuple[int, ...]
    position: int
    state: int
    token: int | None = None
    """Chosen and not read; None until the prompt is read."""
    faulty: bool = False
    """Whether its logits were no numbers, and it can only be released."""
    begun: bool = False
    """Whether a piece is begun that was not waited for."""


@final
class SummingEngine(AbstractEngine):
    """Sums for tokens; see the top of the module.

    `delays` are seconds that each call of a kind takes. `watch` hears of every call before it is done, with its slots.
    Raises SlotError where two threads are in it at once.
    """

    def __init__(
        self,
        *,
        slots: int = 4,
        devices: int = 1,
        grid: int = 8,
        context: int = 4096,
        vocab_size: int = 256,
        state_bytes: int = 1024,
        possible: int | None = None,
        delays: Mapping[Call, float] | None = None,
        faults: Iterable[Fault] = (),
        watch: Callable[[Call, tuple[int, ...]], None] | None = None,
    ) -> None:
        """`devices` have the slots between them, and are one machine here.

        `possible`: a token so many places behind the state, or more, has the log-probability minus infinity.
        """
        self._limits = Limits(
            slots=slots,
            grid=grid,
            context=context,
            vocab_size=vocab_size,
            state_bytes=state_bytes,
            devices=devices,
        )
        self._rows: dict[int, _Row] = {}
        self._possible = vocab_size if possible is None else possible
        self._delays = dict(delays or {})
        self._watch = watch
        self._inside = threading.Lock()
        self.faults = list(faults)
        """Those to come: a test may add and take away."""
        self.calls: Counter[Call] = Counter()
        """How many of each kind were made."""
        self.read_tokens = 0
        """Tokens of prompts that were read, those that were restored left out."""

    @property
    def limits(self) -> Limits:
        return self._limits

    @property
    def fingerprint(self) -> str:
        """What kept states of this engine are good for: others of its sizes."""
        return f"sums-{self._limits.vocab_size}-{self._limits.grid}"

    def admit(self, slot: int, parameters: SamplingParameters, *, prompt: Sequence[int], start: Snapshot | None) -> int:
        with self._called(Call.ADMIT, slot):
            if not 1 <= slot <= self._limits.slots:
                raise SlotError(f"slot {slot}: there are 1 to {self._limits.slots}")
            if slot in self._rows:
                raise SlotError(f"slot {slot}: is taken")
            self._check_prompt(prompt)
            state = 0 if start is None else self._restored(start, len(prompt))
            position = 0 if start is None else start.position
            self._rows[slot] = _Row(parameters, tuple(prompt), position, state)
            return position

    def begin_prefill(self, slot: int, *, scored: bool = False) -> None:
        with self._called(Call.BEGIN_PREFILL, slot):
            row = self._row(slot, answering=False)
            self._rest(slot, row)
            row.begun = True

    def prefill(self, slot: int, *, scored: bool = False) -> Prefilled:
        with self._called(Call.PREFILL, slot):
            row = self._row(slot, answering=False)
            row.begun = False
            first = row.position
            end = min(len(row.prompt), (first // self._limits.grid + 1) * self._limits.grid)
            scores = []
            for position in range(first, end):
                token = row.prompt[position]
                if scored and position > 0:
                    scores.append(self._choice(token, row.state, row.parameters.logprobs or 0))
                row.state = summed((token,), row.state)
            row.position = end
            self.read_tokens += end - first
            self._fail(Call.PREFILL, {slot: row}, {})
            choice = self._choose(row) if end == len(row.prompt) else None
            return Prefilled(position=end, choice=choice, scores=tuple(scores))

    def decode(self, slots: Iterable[int]) -> Mapping[int, Choice]:
        asked = tuple(slots)
        with self._called(Call.DECODE, *asked):
            rows = {slot: self._row(slot, answering=True) for slot in asked}
            if len(rows) < len(asked):
                raise SlotError(f"slots {asked}: one is asked for twice")
            for slot, row in rows.items():
                if row.position + 2 > self._limits.context:
                    raise SlotError(f"slot {slot}: its context of {self._limits.context} tokens is full")
            choices = {slot: self._decode(row) for slot, row in rows.items()}
            self._fail(Call.DECODE, rows, choices)
            return choices

    def snapshot(self, slot: int) -> Snapshot:
        with self._called(Call.SNAPSHOT, slot):
            row = self._row(slot, answering=False)
            self._rest(slot, row)
            if row.position == 0 or row.position % self._limits.grid:
                raise SlotError(f"slot {slot}: position {row.position} is no place on a grid of {self._limits.grid}")
            return Snapshot(
                position=row.position,
                arrays=(row.state,),
                nbytes=self._limits.state_bytes,
                digest=_digest(row.position, row.state),
            )

    def release(self, slot: int) -> None:
        with self._called(Call.RELEASE, slot):
            if slot not in self._rows:
                raise SlotError(f"slot {slot}: is free")
            del self._rows[slot]

    def free_slots(self) -> Sequence[int]:
        return list(self._limits.by_turns(set(range(1, self._limits.slots + 1)) - set(self._rows)))

    @contextmanager
    def _called(self, call: Call, *slots: int) -> Iterator[None]:
        if not self._inside.acquire(blocking=False):
            raise SlotError(f"{call.value}: another thread is in the engine")
        try:
            self.calls[call] += 1
            if self._watch is not None:
                self._watch(call, slots)
            if call in self._delays:
                time.sleep(self._delays[call])
            if any(not fault.no_numbers for fault in self._due(call, slots)):
                raise EngineFaultError(f"{call.value} {self.calls[call]}, slots {slots}: a fault, as asked for")
            yield
        finally:
            self._inside.release()

    def _due(self, call: Call, slots: Iterable[int]) -> list[Fault]:
        count = self.calls[call]
        return [
            each
            for each in self.faults
            if each.call is call and each.slot in (None, *slots) and each.turn in (None, count)
        ]

    def _fail(self, call: Call, rows: Mapping[int, _Row], choices: Mapping[int, Choice]) -> None:
        """Raise where the logits of some of these are no numbers."""
        faults = self._due(call, rows)
        faulty = [slot for slot in rows if any(fault.slot in (None, slot) for fault in faults)]
        for slot in faulty:
            rows[slot].faulty = True
        if faulty:
            raise FaultySlotsError(faulty, {slot: choice for slot, choice in choices.items() if slot not in faulty})

    def _check_prompt(self, prompt: Sequence[int]) -> None:
        if not 0 < len(prompt) <= self._limits.context:
            raise ValueError(f"prompt: has {len(prompt)} tokens; it has 1 to {self._limits.context}")
        if not 0 <= min(prompt) <= max(prompt) < self._limits.vocab_size:
            raise ValueError(f"prompt: has a token outside of 0 to {self._limits.vocab_size - 1}")

    def _restored(self, start: Snapshot, length: int) -> int:
        (state,) = start.arrays
        if start.digest != _digest(start.position, state):
            raise ValueError("snapshot: position and state do not match its digest")
        if not 0 < start.position < length or start.position % self._limits.grid:
            raise ValueError(f"snapshot: position {start.position} is no place on the grid before token {length - 1}")
        return int(state)

    def _row(self, slot: int, *, answering: bool) -> _Row:
        row = self._rows.get(slot)
        if row is None:
            raise SlotError(f"slot {slot}: is free")
        if row.faulty:
            raise SlotError(f"slot {slot}: has failed, and can only be released")
        if (row.token is not None) != answering:
            raise SlotError(f"slot {slot}: {'its prompt is not read yet' if answering else 'it answers already'}")
        return row

    def _rest(self, slot: int, row: _Row) -> None:
        if row.begun:
            raise SlotError(f"slot {slot}: a piece of its prompt is begun, and not waited for")

    def _decode(self, row: _Row) -> Choice:
        assert row.token is not None
        row.state = summed((row.token,), row.state)
        row.position += 1
        return self._choose(row)

    def _choose(self, row: _Row) -> Choice:
        row.token = _chosen(row.state, row.parameters, self._limits.vocab_size)
        if row.parameters.logprobs is None:
            return Choice(token=row.token)
        return self._choice(row.token, row.state, row.parameters.logprobs)

    def _choice(self, token: int, state: int, top: int) -> Choice:
        vocab_size = self._limits.vocab_size

        def logprob(places: int) -> float:
            return -(places + 1) * math.log(2) if places < self._possible else -math.inf

        likeliest = tuple(((state + places) % vocab_size, logprob(places)) for places in range(min(top, vocab_size)))
        return Choice(token=token, logprob=logprob((token - state) % vocab_size), top=likeliest)


def _chosen(state: int, parameters: SamplingParameters, vocab_size: int) -> int:
    likeliest = state % vocab_size
    bias = parameters.logit_bias
    if bias:
        likeliest = max(
            range(vocab_size), key=lambda t: bias.get(t, 0.0) - ((t - state) % vocab_size + 1) * math.log(2)
        )
    return likeliest if parameters.greedy else (likeliest + parameters.seed + parameters.draw) % vocab_size


def _digest(position: int, state: int) -> str:
    return hashlib.sha256(f"{position} {state}".encode()).hexdigest()
