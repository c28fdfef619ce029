"""One engine over several devices: on each the whole model and as many slots.

A sequence stays where it was admitted. Every device runs the same programs over as many rows, so that it does not show
in an answer where it stood: its bits are those of an engine over one of the devices with as many slots. What is kept of
a state is in host memory, and goes on on any of them.

One thread drives all. It gives work to every device before it waits for the first, so that they work side by side.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import final

import jax
from jax.typing import DTypeLike

from inference.engine.abstract_engine import AbstractEngine, Choice, Limits, Prefilled, SlotError, Snapshot
from inference.engine.arguments import check_sizes, for_decoding
from inference.engine.engine import Engine
from inference.engine.sampling_parameters import SamplingParameters
from inference.engine.slots import FaultySlotsError
from training.model.language_model import LanguageModel


@final
class ReplicatedEngine(AbstractEngine):
    """Data parallelism over devices that do not speak to each other: slot 1 is the first of the first device.

    Where logits are no numbers it is as in `Engine`: the error of a decode names the slots of all devices. Where a
    program fails on one device, what was on the others is given up too: every slot that was not free can only be
    released, and the error goes on.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        devices: Sequence[jax.Device],
        slots: int,
        context: int,
        grid: int = 256,
        dtype: DTypeLike | None = None,
        weights_digest: str | None = None,
        compiler_options: Mapping[str, bool | str] | None = None,
    ) -> None:
        """`slots` on each of `devices`; the other arguments are those of `Engine`.

        The weights are copied to each device on which they are not yet. Raises ValueError for sizes that make no
        engine, and without devices.
        """
        check_sizes(slots, context, grid)
        if not devices or len(set(devices)) < len(devices):
            raise ValueError(f"devices: are {list(devices)}; there is at least one, and each of them once")
        model = for_decoding(model, dtype)

        def replica(place: int, like: Engine | None) -> Engine:
            return Engine(
                jax.device_put(model, devices[place]),
                slots=slots,
                context=context,
                grid=grid,
                weights_digest=weights_digest,
                compiler_options=compiler_options,
                device=devices[place],
                first_slot=1 + place * slots,
                like=like,
            )

        first = replica(0, None)
        with ThreadPoolExecutor(len(devices)) as threads:
            others = threads.map(lambda place: replica(place, first), range(1, len(devices)))
            self._replicas = (first, *others)
        self._limits = replace(self._replicas[0].limits, slots=slots * len(devices), devices=len(devices))

    @property
    def limits(self) -> Limits:
        """See AbstractEngine."""
        return self._limits

    @property
    def replicas(self) -> Sequence[Engine]:
        """The engine of each device. Look, and do not drive."""
        return self._replicas

    @property
    def compilations(self) -> int:
        """Programs that were compiled so far, on all devices; `compile` leaves none for later."""
        return sum(replica.compilations for replica in self._replicas)

    @property
    def fingerprint(self) -> str:
        """That of an engine over one of the devices: their states are the same bits."""
        return self._replicas[0].fingerprint

    def compile(self) -> None:
        """Compile every program that answers need: for all devices at once, since a compiled one is for its device.

        They are traced once. That is work of one thread, whatever the machine has.
        """
        self._replicas[0].trace()
        with ThreadPoolExecutor(len(self._replicas)) as threads:
            list(threads.map(Engine.compile, self._replicas))

    def admit(self, slot: int, parameters: SamplingParameters, *, prompt: Sequence[int], start: Snapshot | None) -> int:
        """See AbstractEngine."""
        with self._losing_all():
            return self._of(slot).admit(slot, parameters, prompt=prompt, start=start)

    def begin_prefill(self, slot: int, *, scored: bool = False) -> None:
        """See AbstractEngine."""
        with self._losing_all():
            self._of(slot).begin_prefill(slot, scored=scored)

    def prefill(self, slot: int, *, scored: bool = False) -> Prefilled:
        """See AbstractEngine."""
        with self._losing_all():
            return self._of(slot).prefill(slot, scored=scored)

    def decode(self, slots: Iterable[int]) -> Mapping[int, Choice]:
        """See AbstractEngine. Raises FaultySlotsError."""
        asked: dict[Engine, list[int]] = {}
        for slot in slots:
            asked.setdefault(self._of(slot), []).append(slot)
        read = {replica: replica.to_decode(numbers) for replica, numbers in asked.items()}  # all, before any is begun
        choices: dict[int, Choice] = {}
        faulty: list[int] = []
        with self._losing_all():
            begun = [(replica, replica.begin_decode(meant)) for replica, meant in read.items()]
            for _, chosen in begun:
                chosen.token.copy_to_host_async()  # so that the copies do not wait for each other either
            for replica, chosen in begun:
                try:
                    choices.update(replica.finish_decode(read[replica], chosen))
                except FaultySlotsError as error:
                    choices.update(error.choices)
                    faulty += error.slots
        if faulty:
            raise FaultySlotsError(faulty, choices)
        return choices

    def snapshot(self, slot: int) -> Snapshot:
        """See AbstractEngine."""
        with self._losing_all():
            return self._of(slot).snapshot(slot)

    def release(self, slot: int) -> None:
        """See AbstractEngine."""
        with self._losing_all():
            self._of(slot).release(slot)

    def free_slots(self) -> Sequence[int]:
        """See AbstractEngine."""
        return self._limits.by_turns(slot for replica in self._replicas for slot in replica.free_slots())

    def _of(self, slot: int) -> Engine:
        """The engine that a slot stands in."""
        if not 1 <= slot <= self._limits.slots:
            raise SlotError(f"slot {slot}: there are slots 1 to {self._limits.slots}")
        return self._replicas[self._limits.device_of(slot)]

    @contextlib.contextmanager
    def _losing_all(self) -> Iterator[None]:
        """Where a program fails on one device, whoever drives all knows no more what is on any."""
        try:
            yield
        except (SlotError, FaultySlotsError, ValueError):
            raise
        except Exception:
            for replica in self._replicas:
                replica.lose()
            raise
