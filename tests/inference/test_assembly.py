"""What a start says of devices: of more than there are, of one that is wrong, of a model that is larger than one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax
import pytest

from inference import assembly
from inference.assembly import assemble, devices_of, self_test
from inference.engine.abstract_engine import Choice
from inference.errors import ServingError
from inference.settings import Settings
from inference.testing import Call, Fault, SummingEngine


class TestDevices:
    @pytest.mark.parametrize(
        ("here", "wanted", "says"),
        [
            (8, 9, "--devices 9: 8 are here (cpu); ask for no more, or for all"),
            (1, 2, "--devices 2: one is here (cpu); ask for no more, or for all"),
        ],
    )
    def test_more_than_there_are(self, here: int, wanted: int, says: str) -> None:
        with pytest.raises(ServingError) as refused:
            devices_of(wanted, jax.devices()[:here])
        assert str(refused.value) == says

    def test_it_is_said_before_the_weights_are_looked_for(self) -> None:
        with pytest.raises(ServingError, match=r"--devices 9: 8 are here"):
            assemble(Settings(weights="no-such-export", devices=9), lambda _: None, lambda _: None)

    @pytest.mark.parametrize(("wanted", "count"), [(None, 8), (1, 1), (3, 3), (8, 8)])
    def test_the_first_of_them_or_all(self, wanted: int | None, count: int) -> None:
        assert devices_of(wanted, jax.devices()) == tuple(jax.devices()[:count])

    def test_each_makes_two_tokens(self) -> None:
        engine = SummingEngine(slots=6, devices=3)
        self_test(engine, "model")
        assert engine.calls == {Call.ADMIT: 3, Call.PREFILL: 3, Call.DECODE: 1, Call.RELEASE: 3}
        assert len(engine.free_slots()) == 6

    @pytest.mark.parametrize("call", [Call.PREFILL, Call.DECODE])
    def test_no_number_on_any_is_refused(self, call: Call) -> None:
        engine = SummingEngine(slots=6, devices=3, faults=[Fault(call=call, slot=5, no_numbers=True)])
        with pytest.raises(ServingError, match="--weights model: the model answers with NaN or infinities"):
            self_test(engine, "model")
        assert len(engine.free_slots()) == 6

    def test_one_that_answers_otherwise_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = SummingEngine(slots=6, devices=3)
        decode = engine.decode

        def off_by_a_bit(slots: Iterable[int]) -> dict[int, Choice]:
            choices = dict(decode(slots))
            assert choices[5].logprob is not None
            return {**choices, 5: replace(choices[5], logprob=math.nextafter(choices[5].logprob, 0))}

        monkeypatch.setattr(engine, "decode", off_by_a_bit)
        with pytest.raises(ServingError, match="--devices 3: device 2 answers otherwise than device 0, counted from 0"):
            self_test(engine, "model")


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("load_model", r"--weights x: the model does not fit the memory of a device; take --dtype bfloat16\. "),
        ("_compiled", r"--slots 8 --context 32768: does not fit .* take fewer slots, or --dtype bfloat16\. "),
    ],
)
def test_what_is_larger_than_a_device_is_not_served(part: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime is the one that knows: what is raised here is what it raises."""

    def full(*_: object, **__: object) -> None:
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 99 bytes.\nmore")

    loaded = SimpleNamespace(warnings=(), report=SimpleNamespace(to_text=lambda: "all"))
    monkeypatch.setattr(assembly, "_resolved", lambda *_: SimpleNamespace(folder=Path("x"), style=None))
    monkeypatch.setattr(assembly, "load_model", lambda *_, **__: loaded)
    monkeypatch.setattr(assembly, part, full)
    said = f"{says}Every device holds the whole model, and none is served sharded over several yet. RESOURCE_EXHAUSTED"
    with pytest.raises(ServingError, match=said):
        assemble(Settings(weights="x"), lambda _: None, lambda _: None)
