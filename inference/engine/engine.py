"""The engine: slots of state on a device, two programs over them, and what of it may be kept on the host.

What else is in the batch never changes an answer, bit for bit. Decoding always runs every row of the pool, and the rows
that are not meant keep their bits. A prompt is read one slot at a time, in pieces that end at multiples of the grid of
its own positions, padded to one of a few lengths: how it is cut depends on positions alone, never on the load or on
what was cached. A state that is put back on the grid therefore goes on as if the prompt had been read here.

A decode sends the device the rows that are meant, where they are not those of the last one, and takes a token a row
from it. All else stays there: states, chosen tokens, sampling parameters, counts of tokens. What is begun runs while
the host goes on; what is finished was waited for.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import final

import jax
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array

from inference.engine.abstract_engine import AbstractEngine, Choice, Limits, Prefilled, SlotError, Snapshot
from inference.engine.arguments import check_sizes, for_decoding
from inference.engine.choices import choices_of, scores_of
from inference.engine.compiled_programs import bucket_of, buckets
from inference.engine.device_rows import DeviceRows
from inference.engine.programs import HEAD, Pool
from inference.engine.sampling import Chosen
from inference.engine.sampling_parameters import SamplingParameters
from inference.engine.sampling_table import is_marked, marks_of
from inference.engine.slots import Begun, FaultySlotsError, Phase, Slot, Slots
from inference.engine.snapshots import check, digest, seal
from training.model.language_model import LanguageModel


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
        device: jax.Device | None = None,
        first_slot: int = 1,
        like: Engine | None = None,
    ) -> None:
        """`dtype` is what is computed in; None for that of the model. `weights_digest` is what the loader knows of it.

        `device` is where the model is, if it is not the first that there is. The slots are called `first_slot`, and so
        on. `like` is an engine of the same model and sizes on another device: what was traced for it is not traced
        again. A model whose pattern is repeated is unrolled, which copies it. Raises ValueError for sizes that make no
        engine.
        """
        check_sizes(slots, context, grid)
        model = for_decoding(model, dtype)
        self._device: DeviceRows = DeviceRows(
            model,
            rows=slots + 1,
            context=context,
            buckets=buckets(grid=grid, context=context),
            compiler_options=compiler_options,
            device=device,
            like=None if like is None else like._device,
        )
        self._limits = Limits(
            slots=slots,
            grid=grid,
            context=context,
            vocab_size=model.config.vocab_size,
            state_bytes=sum(each.size * each.dtype.itemsize for each in self._device.row_shapes),
        )
        self._weights_digest = weights_digest
        self._slots = Slots(slots, first=first_slot)

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

    def trace(self) -> None:
        """Do that part of compiling which is the same for every device."""
        self._device.trace()

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
            self._device.clear(taken.row)
            if start is not None:
                self._device.restore(taken.row, start.arrays)
            if is_marked(parameters):
                self._device.mark(taken.row, *marks_of(tokens, parameters, vocab_size=self._limits.vocab_size))
        self._device.table.put(taken.row, parameters)
        taken.begin(tokens, parameters, position=0 if start is None else start.position)
        return taken.position

    def begin_prefill(self, slot: int, *, scored: bool = False) -> None:
        """See AbstractEngine. Raises SlotError where only some pieces of a prompt are scored."""
        read = self._slots[slot]
        read.need_rest("another")
        read.begun = self._begun(read, scored=scored)
        read.begun.chosen.token.copy_to_host_async()

    def prefill(self, slot: int, *, scored: bool = False) -> Prefilled:
        """See AbstractEngine. Raises FaultySlotsError; SlotError where only some pieces of a prompt are scored.

        Log-probabilities of a prompt are those of the model alone, without bias and penalties.
        """
        read = self._slots[slot]
        read.need("prefill", Phase.READING)
        read.decide_scoring(scored)
        begun, read.begun = read.begun or self._begun(read, scored=scored), None
        piece, chosen = begun.piece, begun.chosen
        with self._losing_all():
            scores = scores_of(read, piece, begun.scored) if scored else ()
            tokens = np.asarray(chosen.token).tolist()
        read.position = piece.stop
        if tokens[0] < 0:
            read.phase = Phase.FAULTY
            raise FaultySlotsError([slot], {})
        if piece.stop < len(read.prompt):
            return Prefilled(position=piece.stop, choice=None, scores=scores)
        read.phase, read.boundary = Phase.ANSWERING, None
        return Prefilled(position=piece.stop, choice=choices_of(chosen, tokens, [(0, read)])[slot], scores=scores)

    def decode(self, slots: Iterable[int]) -> Mapping[int, Choice]:
        """See AbstractEngine. Raises FaultySlotsError; SlotError where the context of a slot is full."""
        read = self.to_decode(tuple(slots))
        return self.finish_decode(read, self.begin_decode(read)) if read else {}

    def to_decode(self, numbers: Sequence[int]) -> Mapping[int, Slot]:
        """The slots of a decode. Raises SlotError where one of them cannot; nothing is done yet."""
        return self._slots.to_decode(numbers, context=self._limits.context)

    def begin_decode(self, read: Mapping[int, Slot]) -> Chosen:
        """Have the device choose the next tokens of these."""
        with self._losing_all():
            return self._device.decode(tuple(slot.row for slot in read.values()))

    def finish_decode(self, read: Mapping[int, Slot], chosen: Chosen) -> Mapping[int, Choice]:
        """What it chose, as `decode` has it. Raises FaultySlotsError."""
        with self._losing_all():
            tokens = np.asarray(chosen.token).tolist()
        sound = []
        for slot in read.values():
            slot.position += 1
            if tokens[slot.row] < 0:
                slot.phase = Phase.FAULTY
            else:
                sound.append((slot.row, slot))
        choices = choices_of(chosen, tokens, sound)
        if len(sound) < len(read):
            raise FaultySlotsError([number for number in read if number not in choices], choices)
        return choices

    def snapshot(self, slot: int) -> Snapshot:
        """See AbstractEngine."""
        kept = self._slots[slot]
        kept.need("snapshot", Phase.READING, Phase.ANSWERING)
        kept.need_rest("snapshot")
        if kept.position % self._limits.grid or kept.position > len(kept.prompt):
            raise SlotError(
                f"slot {slot}: is at {kept.position} of a prompt of {len(kept.prompt)} tokens; a state is kept at "
                f"multiples of {self._limits.grid}, before anything is answered"
            )
        with self._losing_all():
            arrays = self._device.fetch(kept.row)
        return seal(kept.position, arrays)

    def release(self, slot: int) -> None:
        """See AbstractEngine."""
        given = self._slots[slot]
        given.need("release", Phase.READING, Phase.ANSWERING, Phase.FAULTY)
        with self._losing_all():
            self._device.clear(given.row)
        self._device.table.clear(given.row)
        given.empty()

    def free_slots(self) -> Sequence[int]:
        """See AbstractEngine."""
        return self._slots.free()

    def lose(self) -> None:
        """Give up what is on the device: every slot that was not free can only be released."""
        for slot in self._slots:
            if slot.phase is not Phase.FREE:
                slot.phase, slot.begun = Phase.FAULTY, None
        self._device.renew()

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
        order[:HEAD] = slot.row, len(piece), piece.stop == len(slot.prompt)
        order[HEAD : HEAD + len(piece)] = slot.prompt[piece.start : piece.stop]
        return order

    def _begun(self, slot: Slot, *, scored: bool) -> Begun:
        """Have the device read the next piece of a prompt."""
        slot.need("prefill", Phase.READING)
        slot.decide_scoring(scored)
        piece = slot.piece(self._limits.grid)
        order = self._order(slot, piece)
        with self._losing_all():
            scores = self._score(slot, order) if scored else None
            chosen = self._device.prefill(order)
        return Begun(piece=piece, chosen=chosen, scored=scores)

    def _score(self, slot: Slot, order: np.ndarray) -> tuple[Array, ...]:
        """Begin to read a piece for the log-probabilities of its tokens."""
        before = np.zeros(self._limits.vocab_size, np.float32) if slot.boundary is None else slot.boundary
        scored, slot.boundary = self._device.score(order, before)
        return scored

    @contextlib.contextmanager
    def _losing_all(self) -> Iterator[None]:
        """Where a program fails, the pool may be given away and not come back: all that was in it is gone."""
        try:
            yield
        except Exception:
            self.lose()
            raise
