"""Configuration: what is built of plain data, and how every mistake in it is named."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from training.config_loading import build, override, plain
from training.errors import TrainingError
from training.yaml_file import parse, read


class Kind(enum.Enum):
    COSINE = "cosine"
    CONSTANT = "constant"


@dataclass(frozen=True, kw_only=True)
class Adam:
    type: str = "adamw"
    learning_rate: float = 2e-3
    betas: tuple[float, float] = (0.9, 0.95)


@dataclass(frozen=True, kw_only=True)
class Kron:
    type: str = "kron"
    learning_rate: float = 4e-3
    block: int = 256
    schedule: Kind = Kind.COSINE

    def __post_init__(self) -> None:
        if self.block < 1:
            raise TrainingError(f"block is {self.block}; it counts rows, from 1")


@dataclass(frozen=True, kw_only=True)
class Run:
    steps: int
    name: str = "run"
    root: Path | None = None
    tensorboard: bool = True
    optim: Adam | Kron = Adam()
    layers: tuple[Kron, ...] = ()


def test_defaults_stand_in_for_what_is_left_out() -> None:
    assert build(Run, {"steps": 3}, "f") == Run(steps=3)


def test_data_and_configuration_are_each_other() -> None:
    config = Run(steps=7, root=Path("/x"), optim=Kron(schedule=Kind.CONSTANT), layers=(Kron(), Kron(block=8)))
    assert build(Run, plain(config), "f") == config


def test_numbers_as_people_write_them() -> None:
    data = parse("{steps: 5, optim: {type: kron, learning_rate: 1e-3}}", "f")
    assert build(Run, data, "f").optim == Kron(learning_rate=0.001)
    assert build(Run, {"steps": 5, "optim": {"type": "adamw", "learning_rate": 1}}, "f").optim.learning_rate == 1.0


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({}, "f: steps is missing; it has no default"),
    ({"steps": 1, "stpes": 2}, "f: stpes is no field of a run; did you mean steps?"),
    ({"steps": 1, "zz": 2}, "f: zz is no field of a run; there are steps, name, root, tensorboard, optim, layers"),
    ({"steps": 1, "optim": {"type": "adamw", "learning_rat": 2}}, "optim.learning_rat is no field of optim; did you"),
    ({"steps": 1, "optim": {"type": "kro"}}, "optim.type is 'kro', not one of adamw, kron; did you mean kron?"),
    ({"steps": 1, "optim": {"learning_rate": 1}}, "optim.type is empty, not one of adamw, kron"),
    (
        {"steps": 1, "optim": {"type": "adamw", "learning_rate": 10**400}},
        "learning_rate is a whole number of 401 digits",
    ),
    ({"steps": 1, "optim": 3}, "optim.type is 3, not one of adamw, kron"),
    ({"steps": True}, "steps is true, not a whole number"),
    ({"steps": 1.5}, "steps is 1.5, not a whole number"),
    ({"steps": 1, "tensorboard": 1}, "tensorboard is 1, not true or false"),
    ({"steps": 1, "name": None}, "name is empty, not text"),
    ({"steps": 1, "layers": {}}, "layers is {}, not a list"),
    ({"steps": 1, "layers": [{"block": 0}]}, "layers.0.block is 0; it counts rows, from 1"),
    ({"steps": 1, "layers": [{"schedule": "cosin"}]}, "layers.0.schedule is 'cosin', not one of cosine, constant; did"),
    ({"steps": 1, "optim": {"type": "adamw", "betas": [1]}}, "optim.betas has 1 entries, not 2"),
    ({"steps": 1, "optim": {"type": "adamw", "learning_rate": "fast"}}, "learning_rate is 'fast', not a number"),
]


@pytest.mark.parametrize(("data", "message"), MISTAKES)
def test_a_mistake_is_named_by_its_path(data: dict[str, Any], message: str) -> None:
    with pytest.raises(TrainingError, match=re.escape(message)):
        build(Run, data, "f")


def test_all_mistakes_come_at_once() -> None:
    with pytest.raises(TrainingError) as caught:
        build(Run, {"name": 3, "optim": {"type": "kron", "block": "x"}}, "f")
    assert str(caught.value).split("\n") == [
        "f: steps is missing; it has no default",
        "f: name is 3, not text",
        "f: optim.block is 'x', not a whole number",
    ]


def test_overrides_reach_any_field() -> None:
    data: dict[str, Any] = {"steps": 1, "layers": [{"type": "kron"}]}
    for assignment in ("steps=500", "optim.learning_rate=1e-2", "layers.0.block=16", "root=/tmp/x"):
        override(data, assignment)
    assert data == {"steps": 500, "layers": [{"type": "kron", "block": 16}], "optim": {"learning_rate": 0.01}} | {
        "root": "/tmp/x"
    }


def test_another_type_starts_its_entry_afresh() -> None:
    data: dict[str, Any] = {"optim": {"type": "kron", "block": 16, "learning_rate": 1.0}}
    override(data, "optim.type=kron")
    assert data["optim"]["block"] == 16
    override(data, "optim.type=adamw")
    override(data, "optim.learning_rate=0.1")
    assert data == {"optim": {"type": "adamw", "learning_rate": 0.1}}


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("steps", "--set steps: write FIELD.FIELD=VALUE"),
        ("=3", "write FIELD.FIELD=VALUE"),
        ("a..b=3", "write FIELD.FIELD=VALUE"),
        ("steps.more=3", "steps is 1, which has no fields"),
        ("layers.7.block=3", "'7' is no place in a list of 1"),
        ("layers.x=3", "'x' is no place in a list of 1"),
        ("name=[", "--set name=[: not YAML"),
    ],
)
def test_an_override_that_leads_nowhere_is_refused(assignment: str, message: str) -> None:
    with pytest.raises(TrainingError, match=re.escape(message)):
        override({"steps": 1, "layers": [{}]}, assignment)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"steps: 1\nsteps: 2\n", "'steps' stands twice, on lines 1 and 2"),
        (b"a: [", "not YAML"),
        (b"? [a]\n: 1\n", "a key on line 1 is no word"),
        (b"- 1\n", "holds a list, and a configuration is a mapping"),
        (b"", "holds nothing, and"),
        (b"a: \xff", "not UTF-8 at byte 3"),
        (b"a: !!python/object:os.system x", "not YAML"),
        (b"[" * 30_000, "nested too deeply"),
        (b"a: " + b"x" * (1 << 20), "at most 1,048,576"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path, body: bytes, message: str) -> None:
    path = tmp_path / "run.yaml"
    path.write_bytes(body)
    with pytest.raises(TrainingError, match=re.escape(message)):
        read(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"none\.yaml: No such file or directory; name a YAML file with --config"):
        read(tmp_path / "none.yaml")
