"""What a resume is called before it begins."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import pytest

from training.fingerprint import Fingerprint, Judgement, code_digest, compare, fingerprint, flattened

CONFIG: dict[str, Any] = {
    "name": "demo",
    "steps": 100,
    "seed": 0,
    "optim": {"type": "kron", "learning_rate": 0.01},
    "model": {"mixers": [{"type": "based"}], "d_model": 64},
    "batch": {"size": 16, "accumulate": 1},
    "mesh": {"data": None, "fsdp": 1},
    "checkpoint": {"every": 10, "root": None, "keep": {"keep_last": 3}},
    "log": {"every": 10},
    "data": {"sources": [{"path": "data/here"}]},
    "cost_per_hour": None,
}


@pytest.fixture(scope="module")
def here() -> Fingerprint:
    return fingerprint(CONFIG, "a" * 64)


def changed(path: str, value: Any) -> dict[str, Any]:
    config = json.loads(json.dumps(CONFIG))
    *parents, last = path.split(".")
    at = config
    for name in parents:
        at = at[name]
    at[last] = value
    return dict(config)


def test_the_same_is_bitwise_also_after_a_manifest(here: Fingerprint) -> None:
    again = Fingerprint.from_json(json.loads(json.dumps(here.to_json())))
    verdict = compare(again, fingerprint(CONFIG, "a" * 64))
    assert verdict.judgement is Judgement.BITWISE
    assert str(verdict) == "BITWISE: the same code, configuration, data, devices and libraries"
    assert again.config_sha256 == here.config_sha256
    assert here.device_count == 8
    assert here.versions["jax"] == jax.__version__


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("name", "other"),
        ("checkpoint.root", "gs://b/c"),
        ("checkpoint.keep.keep_last", 9),
        ("log.every", 1),
        ("data.sources", [{"path": "data/there"}]),
        ("cost_per_hour", 8.5),
    ],
)
def test_what_no_number_depends_on_is_left_out(path: str, value: Any, here: Fingerprint) -> None:
    now = fingerprint(changed(path, value), "a" * 64)
    assert compare(here, now).judgement is Judgement.BITWISE
    assert now.config_sha256 == here.config_sha256


@pytest.mark.parametrize(("path", "value"), [("mesh.fsdp", 2), ("batch.accumulate", 4)])
def test_what_adds_up_in_another_order_is_numeric(path: str, value: Any, here: Fingerprint) -> None:
    verdict = compare(here, fingerprint(changed(path, value), "a" * 64))
    assert verdict.judgement is Judgement.NUMERIC
    assert verdict.reasons == (f"{path} was 1, and is {value}",)


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("steps", 200, "steps was 100, and is 200"),
        ("seed", 1, "seed was 0, and is 1"),
        ("optim.learning_rate", 0.02, "optim.learning_rate was 0.01, and is 0.02"),
        ("optim.type", "adamw", 'optim.type was "kron", and is "adamw"'),
        ("optim.momentum", 0.9, "optim.momentum was absent, and is 0.9"),
        ("model.mixers", [], 'model.mixers was [{"type": "based"}], and is []'),
        ("batch.size", 8, "batch.size was 16, and is 8"),
        ("logarithm", 2, "logarithm was absent, and is 2"),
    ],
)
def test_another_run_is_refused_by_the_field(path: str, value: Any, reason: str, here: Fingerprint) -> None:
    verdict = compare(here, fingerprint(changed(path, value), "a" * 64))
    assert (verdict.judgement, verdict.reasons) == (Judgement.REFUSED, (reason,))
    assert str(verdict) == f"REFUSED: {reason}"


def test_other_data_are_refused(here: Fingerprint) -> None:
    verdict = compare(here, fingerprint(CONFIG, "b" * 64))
    assert verdict.judgement is Judgement.REFUSED
    assert verdict.reasons == ("the data were aaaaaaaaaaaa, and are bbbbbbbbbbbb",)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"code": "0" * 64}, "the code of the training package was changed"),
        ({"device_kind": "TPU v6 lite"}, "the device was {device}, and is TPU v6 lite"),
        ({"device_count": 4}, "the number of devices was 8, and is 4"),
        ({"versions": {"jax": "0.11.0"}}, 'jax was "{jax}", and is "0.11.0"'),
        ({"settings": {"jax_enable_x64": "True"}}, 'jax_enable_x64 was "False", and is "True"'),
    ],
)
def test_other_arithmetic_is_numeric(change: dict[str, Any], reason: str, here: Fingerprint) -> None:
    for name in ("versions", "settings"):
        if name in change:
            change = {name: {**getattr(here, name), **change[name]}}
    verdict = compare(here, replace(here, **change))
    assert verdict.judgement is Judgement.NUMERIC
    assert verdict.reasons == (reason.format(jax=jax.__version__, device=here.device_kind),)


def test_a_refusal_names_the_rest_too(here: Fingerprint) -> None:
    verdict = compare(here, replace(here, data="c" * 64, device_count=1))
    assert verdict.judgement is Judgement.REFUSED
    assert len(verdict.reasons) == 2


def test_flags_of_the_number_of_devices_are_told_by_the_number(
    monkeypatch: pytest.MonkeyPatch, here: Fingerprint
) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
    assert fingerprint(CONFIG, "a" * 64).settings == here.settings
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    verdict = compare(here, fingerprint(CONFIG, "a" * 64))
    assert verdict.reasons == ('XLA_FLAGS was "", and is "--xla_cpu_enable_fast_math=true"',)


def test_the_digest_of_code_is_of_names_and_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/c.py").write_text("y = 2\n")
    first = code_digest(tmp_path)
    (tmp_path / "notes.md").write_text("not code")
    assert code_digest(tmp_path) == first
    (tmp_path / "b/c.py").rename(tmp_path / "b/d.py")
    assert code_digest(tmp_path) != first
    (tmp_path / "b/d.py").rename(tmp_path / "b/c.py")
    (tmp_path / "a.py").write_text("x = 2\n")
    assert code_digest(tmp_path) != first


def test_paths_of_a_configuration() -> None:
    assert flattened({"a": {"b": 1, "c": {}}, "d": [1, {"e": 2}]}) == {"a.b": 1, "a.c": {}, "d": [1, {"e": 2}]}


def test_a_processor_is_told_from_another() -> None:
    """XLA makes other programs for other instruction sets, and JAX calls all of them cpu."""
    kind = fingerprint(changed("seed", 0), "a" * 64).device_kind
    assert re.fullmatch(r"cpu .+ [0-9a-f]{8}", kind)


def test_a_thing_of_another_type_is_one_reason() -> None:
    kron = {"optim": {"type": "kron", "b1": 0.95, "rms_cap": 1.1}, "steps": 5}
    adamw = {"optim": {"type": "adamw", "b1": 0.9, "b2": 0.95}, "steps": 6}
    verdict = compare(fingerprint(kron, "d"), fingerprint(adamw, "d"))
    assert verdict.reasons == ('optim.type was "kron", and is "adamw"', "steps was 5, and is 6")
