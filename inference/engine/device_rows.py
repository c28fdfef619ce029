"""What an engine has on the device: weights, the pool of rows, and the programs over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, Final, final

import jax
import numpy as np
from jaxtyping import Array

from inference.engine.compiled_programs import CompiledPrograms
from inference.engine.programs import HEAD, Pool, Programs
from inference.engine.sampling import Chosen
from inference.engine.sampling_table import SamplingTable
from training.model.decoding import init_state
from training.model.language_model import LanguageModel

ONCE: Final = ("decode", "clear", "mark", "restore", "fetch")
"""Programs that are compiled once; `prefill` and `score` are compiled once a bucket."""
GIVEN_AWAY: Final[Mapping[str, int | None]] = {
    "fresh_pool": None,
    "decode": 1,
    "prefill": 1,
    "score": None,
    "clear": 0,
    "mark": 0,
    "restore": 0,
    "fetch": None,
}
"""Which argument of a program is the pool that it writes where it lies."""


@final
class DeviceRows:
    """One row a slot, and row 0, which is nobody's."""

    def __init__(
        self,
        model: LanguageModel,
        *,
        rows: int,
        context: int,
        buckets: Sequence[int],
        compiler_options: Mapping[str, bool | str] | None,
        device: jax.Device | None,
        like: DeviceRows | None,
    ) -> None:
        """An empty pool on the device of the model, which is `device` where it is not the first.

        `like` has the same arguments, but for the device: what is traced for it serves here.
        """
        leaves, structure = jax.tree.flatten(model)
        state = jax.eval_shape(lambda: init_state(model, 1, context=context))
        self.weights: tuple[Array, ...] = tuple(leaves)
        self.table = SamplingTable(rows, vocab_size=model.config.vocab_size, device=device)
        self._where = device
        self.buckets = tuple(buckets)
        self._programs = Programs(
            model=structure,
            state=jax.tree.structure(state),
            rows=rows,
            vocab_size=model.config.vocab_size,
            context=context,
        )
        self._traced: Mapping[str, Callable[..., Any]] = (
            {name: getattr(self._programs, name) for name in GIVEN_AWAY} if like is None else like._traced
        )
        self._compiled = CompiledPrograms(compiler_options, device)
        self._meant: tuple[tuple[int, ...], Array | None] = ((), None)
        self.renew()
        self.row_shapes = tuple(
            jax.ShapeDtypeStruct(each.shape[1:], each.dtype)  # type: ignore[no-untyped-call]
            for each in self.pool.state
        )
        """Of the state of one sequence."""

    @property
    def compilations(self) -> int:
        """Programs that were compiled so far."""
        return self._compiled.count

    def trace(self) -> None:
        """Make every program ready to be compiled."""
        for name, bucket in self._needed():
            self._lower(name, bucket)

    def compile(self) -> None:
        """Compile every program."""
        for name, bucket in self._needed():
            self._program(name, bucket)

    def renew(self) -> None:
        """Make the pool anew: every row is empty."""
        self.pool: Pool = self._program("fresh_pool")(self.weights)

    def decode(self, numbers: tuple[int, ...]) -> Chosen:
        """One token more of these rows."""
        program = self._program("decode")
        self.pool, chosen = program(self.weights, self.pool, self.table.on_device(), self._mask(numbers))
        return chosen  # type: ignore[no-any-return]

    def prefill(self, order: np.ndarray) -> Chosen:
        """A piece of a prompt; see `Order`."""
        program = self._program("prefill", len(order) - HEAD)
        self.pool, chosen = program(self.weights, self.pool, self.table.on_device(), order)
        return chosen  # type: ignore[no-any-return]

    def score(self, order: np.ndarray, before: Any) -> tuple[tuple[Array, ...], Array]:
        """The log-probabilities of a piece, and the logits behind it."""
        scored, boundary = self._program("score", len(order) - HEAD)(self.weights, self.pool.state, order, before)
        return scored, boundary

    def clear(self, row: int) -> None:
        """Empty a row."""
        self.pool = self._program("clear")(self.pool, np.int32(row), self.weights)

    def mark(self, row: int, bias: np.ndarray, seen: np.ndarray) -> None:
        """Set what the choice of tokens knows of a row."""
        self.pool = self._program("mark")(self.pool, np.int32(row), bias, seen)

    def restore(self, row: int, arrays: tuple[np.ndarray, ...]) -> None:
        """Set the state of a row."""
        self.pool = self._program("restore")(self.pool, np.int32(row), arrays)

    def fetch(self, row: int) -> tuple[np.ndarray, ...]:
        """The state of a row on the host."""
        arrays: tuple[np.ndarray, ...] = jax.device_get(self._program("fetch")(self.pool, np.int32(row)))
        return arrays

    def _mask(self, numbers: tuple[int, ...]) -> Array:
        """The rows that are meant; what was sent before, where they are the same."""
        known, mask = self._meant
        if mask is None or known != numbers:
            mask = jax.device_put(self._rows(numbers), self._where)
            self._meant = (numbers, mask)
        return mask

    def _rows(self, numbers: tuple[int, ...]) -> np.ndarray:
        rows = np.zeros(self._programs.rows, bool)
        rows[list(numbers)] = True
        return rows

    def _program(self, name: str, bucket: int = 0) -> Callable[..., Any]:
        known = self._compiled.known(name, bucket)
        if known is None:
            self._lower(name, bucket)
            known = self._compiled.compile(name, bucket)
        return known

    def _lower(self, name: str, bucket: int) -> None:
        if self._compiled.known(name, bucket) is None:
            examples = self._examples(name, bucket)
            self._compiled.lower(name, bucket, self._traced[name], examples, gives=GIVEN_AWAY[name])

    def _needed(self) -> Sequence[tuple[str, int]]:
        return (*((name, 0) for name in ONCE), *product(("prefill", "score"), self.buckets))

    def _examples(self, name: str, bucket: int) -> tuple[Any, ...]:
        """Arguments with the shapes of every call."""
        if name == "fresh_pool":
            return (self.weights,)
        vocabulary, row, order = self._programs.vocab_size, np.int32(0), np.zeros(HEAD + bucket, np.int32)
        examples: dict[str, tuple[Any, ...]] = {
            "decode": (self.weights, self.pool, self.table.on_device(), self._rows(())),
            "prefill": (self.weights, self.pool, self.table.on_device(), order),
            "score": (self.weights, self.pool.state, order, np.zeros(vocabulary, np.float32)),
            "clear": (self.pool, row, self.weights),
            "mark": (self.pool, row, np.zeros(vocabulary, np.float32), np.zeros(vocabulary, np.int32)),
            "restore": (self.pool, row, self.row_shapes),
            "fetch": (self.pool, row),
        }
        return examples[name]
