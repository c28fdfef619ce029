"""The engine: slots of state on a device, two programs over them, and what of it may be kept on the host.

What else is in the batch never changes an answer, bit for bit. Decoding always runs every row of the pool, and the rows
that are not meant keep their bits. A prompt is read one slot at a time, in pieces that end at multiples of the grid of
its own positions, padded to one of a few lengths: how it is cut depends on positions alone, never on the load or on
what was cached. A state that is put back on the grid therefore goes on as if the prompt had been read here.

A decode sends the device the rows that are meant, where they are not those of the last one, and takes a token a row
from it. All else stays there: states, chosen tokens, sampling parameters, counts of tokens.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, final

import jax
import numpy as np
from jax.typing import DTypeLike

from inference.engine.abstract_engine import AbstractEngine, Choice, Limits, Prefilled, SlotError, Snapshot
from inference.engine.compiled_programs import LEAST_BUCKET, bucket_of, buckets
from inference.engine.device_rows import DeviceRows
from inference.engine.programs import HEAD, Pool
from inference.engine.sampling import Chosen
from inference.engine.sampling_parameters import SamplingParameters
from inference.engine.slots import FaultySlotsError, Phase, Slot, Slots
from inference.engine.snapshots import check, digest, seal
from training.model.language_model import LanguageModel, unrolled
from training.model.precision import cast_for_compute

LONGEST: Final = 2**31 - 2**16
"""Positions are int32, and the last piece of a prompt may be padded beyond its end."""


@final
class Engine(AbstractEngine):
    """An engine over a language model, on the device of its arrays. One thread drives it.

    Where the logits of a row are no numbers, `prefill` and `decode` raise FaultySlotsError, which names the slots and
    has the choices of the others. Where a program itself fails, what was on the device may be lost: the pool is made
    anew, every slot that was not free can only be released, and the error goes on.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        slots: int,
        context: int,
        grid: int = 256,
        dtype: DTypeLike | None = None,
        weights_digest: str | None = None,
        compiler_options: Mapping[str, bool | str] | None = None,
    ) -> None:
        """`dtype` is what is computed in; None for that of the model. `weights_digest` is what the loader knows of it.

        A model whose pattern is repeated is unrolled, which copies it. Raises ValueError for sizes that make no engine.
        """
        _check_sizes(slots, context, grid)
        model = model if model.config.repeats == 1 else unrolled(model)
        model = model if dtype is None else cast_for_compute(model, dtype)
        self._device = DeviceRows(
            model,
            rows=slots + 1,
            context=context,
            buckets=buckets(grid=grid, context=context),
            compiler_options=compiler_options,
        )
        self._limits = Limits(
            slots=slots,
            grid=grid,
            context=context,
            vocab_size=model.config.vocab_size,
            state_bytes=sum(each.size * each.dtype.itemsize for each in self._device.row_shapes),
        )
        self._weights_digest = weights_digest
        self._slots = Slots(slots)

    @property
    def limits(self) -> Limits:
        """See AbstractEngine."""
        return self._limits

    @property
    def compilations(self) -> int:
        """Programs that were compiled so far; `compile` leaves none for later."""
        return self._device.compilations

    @property
    def pool(self) -> Pool:
        """What is on the device now. The next call takes the arrays away: look, and do not keep."""
        return self._device.pool

    @property
    def slots(self) -> Slots:
        """What the host knows of each slot."""
        return self._slots

    @cached_property
    def fingerprint(self) -> str:
        """Of all that makes a state: weights, dtypes, grid, context, and what compiles for which device.

        States are the same bits only where this is the same.
        """
        of_weights = self._weights_digest or digest(0, [np.asarray(array) for array in self._device.weights])
        said = {
            "weights": of_weights,
            "dtypes": sorted({array.dtype.name for array in self._device.weights}),
            "state": [(each.shape, each.dtype.name) for each in self._device.row_shapes],
            "grid": self._limits.grid,
            "compiler": (jax.__version__, jax.default_backend()),
        }
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    def compile(self) -> None:
        """Compile every program that answers need, so that none is compiled while somebody waits for it."""
        self._device.compile()

    def admit(self, slot: int, parameters: SamplingParameters, *, prompt: Sequence[int], start: Snapshot | None) -> int:
        """See AbstractEngine. Raises ValueError too for a prompt or a bias that does not fit the model."""
        taken = self._slots[slot]
        taken.need("admit", Phase.FREE)
        tokens = self._checked(prompt, parameters)
        if start is not None:
            check(start, shapes=self._device.row_shapes, grid=self._limits.grid, prompt=len(tokens))
        with self._losing_all():
            self._device.clear(slot)
            if start is not None:
                self._device.restore(slot, start.arrays)
            if _is_marked(parameters):
                self._device.mark(slot, *_marks(tokens, parameters, self._limits.vocab_size))
        self._device.table.put(slot, parameters)
        taken.begin(tokens, parameters, position=0 if start is None else start.position)
        return taken.position

    def prefill(self, slot: int, *, scored: bool = False) -> Prefilled:
        """See AbstractEngine. Raises FaultySlotsError; SlotError where only some pieces of a prompt are scored.

        Log-probabilities of a prompt are those of the model alone, without bias and penalties.
        """
        read = self._slots[slot]
        read.need("prefill", Phase.READING)
        read.decide_scoring(scored)
        piece = read.piece(self._limits.grid)
        order = self._order(read, piece)
        with self._losing_all():
            scores = self._scores(read, piece, order) if scored else ()
            chosen = self._device.prefill(order)
            tokens = np.asarray(chosen.token).tolist()
        read.position = piece.stop
        if tokens[0] < 0:
            read.phase = Phase.FAULTY
            raise FaultySlotsError([slot], {})
        if piece.stop < len(read.prompt):
            return Prefilled(position=piece.stop, choice=None, scores=scores)
        read.phase, read.boundary = Phase.ANSWERING, None
        return Prefilled(position=piece.stop, choice=_choices(chosen, tokens, {0: read})[slot], scores=scores)

    def decode(self, slots: Iterable[int]) -> Mapping[int, Choice]:
        """See AbstractEngine. Raises FaultySlotsError; SlotError where the context of a slot is full."""
        numbers = tuple(slots)
        if not numbers:
            return {}
        read = self._slots.to_decode(numbers, context=self._limits.context)
        with self._losing_all():
            chosen = self._device.decode(numbers)
            tokens = np.asarray(chosen.token).tolist()
        sound = {}
        for number, slot in read.items():
            slot.position += 1
            if tokens[number] < 0:
                slot.phase = Phase.FAULTY
            else:
                sound[number] = slot
        choices = _choices(chosen, tokens, sound)
        if len(sound) < len(read):
            raise FaultySlotsError([number for number in numbers if number not in sound], choices)
        return choices

    def snapshot(self, slot: int) -> Snapshot:
        """See AbstractEngine."""
        kept = self._slots[slot]
        kept.need("snapshot", Phase.READING, Phase.ANSWERING)
        if kept.position % self._limits.grid or kept.position > len(kept.prompt):
            raise SlotError(
                f"slot {slot}: is at {kept.position} of a prompt of {len(kept.prompt)} tokens; a state is kept at "
                f"multiples of {self._limits.grid}, before anything is answered"
            )
        with self._losing_all():
            arrays = self._device.fetch(slot)
        return seal(kept.position, arrays)

    def release(self, slot: int) -> None:
        """See AbstractEngine."""
        given = self._slots[slot]
        given.need("release", Phase.READING, Phase.ANSWERING, Phase.FAULTY)
        with self._losing_all():
            self._device.clear(slot)
        self._device.table.clear(slot)
        given.empty()

    def free_slots(self) -> Sequence[int]:
        """See AbstractEngine."""
        return self._slots.free()

    def _checked(self, prompt: Sequence[int], parameters: SamplingParameters) -> np.ndarray:
        """The prompt as an array."""
        tokens, vocabulary = np.array(prompt, np.int64), self._limits.vocab_size
        if not 1 <= len(tokens) <= self._limits.context:
            raise ValueError(f"prompt: is {len(tokens)} tokens; it is 1 to {self._limits.context}, the context")
        for name, ids in (("prompt", tokens), ("logit_bias", np.array(list(parameters.logit_bias), np.int64))):
            if len(ids) and not 0 <= ids.min() <= ids.max() < vocabulary:
                wrong = ids[(ids < 0) | (ids >= vocabulary)][0]
                raise ValueError(f"{name}: token {wrong} is none of this model, whose tokens are 0 to {vocabulary - 1}")
        return tokens.astype(np.int32)

    def _order(self, slot: Slot, piece: range) -> np.ndarray:
        """What `prefill` and `score` are told, with the tokens of the piece."""
        order = np.zeros(HEAD + bucket_of(len(piece), self._device.buckets), np.int32)
        order[:HEAD] = slot.number, len(piece), piece.stop == len(slot.prompt)
        order[HEAD : HEAD + len(piece)] = slot.prompt[piece.start : piece.stop]
        return order

    def _scores(self, slot: Slot, piece: range, order: np.ndarray) -> tuple[Choice, ...]:
        """The tokens of a piece with their log-probabilities."""
        before = np.zeros(self._limits.vocab_size, np.float32) if slot.boundary is None else slot.boundary
        (logprobs, top, top_logprobs), slot.boundary = self._device.score(order, before)
        several = slot.parameters.logprobs or 0
        return tuple(
            _scored(int(slot.prompt[place]), logprobs[at], top[at], top_logprobs[at], several)
            for at, place in enumerate(piece)
            if place > 0
        )

    @contextlib.contextmanager
    def _losing_all(self) -> Iterator[None]:
        """Where a program fails, the pool may be given away and not come back: all that was in it is gone."""
        try:
            yield
        except Exception:
            self._device.renew()
            for slot in self._slots:
                if slot.phase is not Phase.FREE:
                    slot.phase = Phase.FAULTY
            raise


def _check_sizes(slots: int, context: int, grid: int) -> None:
    if slots < 1:
        raise ValueError(f"slots: {slots} answer nobody; there is at least 1")
    if not 1 <= context <= LONGEST:
        raise ValueError(f"context: is {context}; it is 1 to {LONGEST}, since positions are int32")
    if grid < LEAST_BUCKET or grid % LEAST_BUCKET:
        raise ValueError(f"grid: is {grid}; it is a multiple of {LEAST_BUCKET}")


def _is_marked(parameters: SamplingParameters) -> bool:
    return bool(parameters.logit_bias) or parameters.repetition_penalty != 1


def _marks(prompt: np.ndarray, parameters: SamplingParameters, vocab_size: int) -> tuple[np.ndarray, np.ndarray]:
    """The row of the bias, and that of the tokens that were seen."""
    bias, seen = np.zeros(vocab_size, np.float32), np.zeros(vocab_size, np.int32)
    bias[list(parameters.logit_bias)] = list(parameters.logit_bias.values())
    seen[prompt] = 1
    return bias, seen


def _choices(chosen: Chosen, tokens: Sequence[int], rows: Mapping[int, Slot]) -> dict[int, Choice]:
    """The choice of each slot, which stands in its row. What no row asked for stays on the device."""
    if all(slot.parameters.logprobs is None for slot in rows.values()):
        return {slot.number: Choice(token=tokens[row]) for row, slot in rows.items()}
    logprobs, top, top_logprobs = jax.device_get(chosen[1:])
    return {
        slot.number: Choice(token=tokens[row])
        if slot.parameters.logprobs is None
        else _scored(tokens[row], logprobs[row], top[row], top_logprobs[row], slot.parameters.logprobs)
        for row, slot in rows.items()
    }


def _scored(token: int, logprob: Any, top: np.ndarray, top_logprobs: np.ndarray, several: int) -> Choice:
    likeliest = zip(top[:several].tolist(), top_logprobs[:several].tolist(), strict=True)
    return Choice(token=token, logprob=float(logprob), top=tuple(likeliest))
