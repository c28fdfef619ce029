"""`spotrail wall` as a command: options, formats, exit codes, and how mistakes are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import scripts.wall
from inference.economics import model_sizes
from tests.scripts.conftest import Command

MODEL = "parameters: 1.3B\nd_model: 2048\nn_layers: 24\nmixers: [{type: delta, n_heads: 16}]\n"
AS_OF = ("--as-of", "2026-11-29")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.yaml"
    path.write_text(MODEL, encoding="utf-8")
    return path


def document(spotrail: Command, *arguments: str) -> dict[str, Any]:
    return spotrail("wall", *arguments, "--format", "json", *AS_OF).document


def test_the_table_is_on_standard_output(spotrail: Command, model: Path) -> None:
    ran = spotrail("wall", "--config", str(model), *AS_OF)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("spotrail wall model")
    assert "linear attention wins nothing" in ran.stdout
    assert "the price is stale or undated" in ran.stdout


def test_options_reach_the_answer(spotrail: Command, model: Path) -> None:
    found = document(
        spotrail,
        *("--config", str(model), "--contexts", "4k,1m", "--batch", "8", "--shape", "v6e-8", "--capacity", "on-demand"),
        *("--kv-heads", "8", "--hbm", "31.25", "--measured", "9000@64@4k", "--measured", "500", "--zone", "us-east5-b"),
    )
    assert found["machine"]["memory_bytes"] == "250000000000"
    assert (found["machine"]["zone"], found["prices"]["on_demand"], found["prices"]["spot"]) == (
        "us-east5-b",
        "2.70",
        "1.27575",
    )
    assert [each["context"] for each in found["variants"][0]["contexts"]] == ["4096", "1048576"]
    assert [(each["batch"], each["context"]) for each in found["measured"]] == [("64", "4096"), ("8", "4096")]
    assert next(each for each in found["variants"] if each["key"] == "gqa")["title"] == "softmax GQA-8"
    assert [each["source"] for each in found["assumptions"] if each["option"] == "--hbm"] == ["given"]


def test_an_export_is_its_folder(spotrail: Command, tmp_path: Path) -> None:
    mixers = [{"type": "ssd", "expand": 2, "d_head": 64, "d_state": 128, "n_groups": 1, "taps": 4}]
    config = {"schema": "spotrail.model/1", "vocab_size": 512, "d_model": 128, "n_layers": 2, "mixers": mixers}
    more = {"d_feed_forward": 384, "norm_eps": 1e-06, "z_loss": 0.0001, "checkpoint_policy": "none"}
    (tmp_path / "config.json").write_text(json.dumps({**config, **more}), encoding="utf-8")
    found = document(spotrail, "--config", str(tmp_path))
    # Two layers: 4 heads x 128 x 64 in fp32, and the tails of 256 + 2 x 128 channels, 3 tokens of bf16
    assert found["variants"][0]["state_bytes"] == str(2 * (4 * 128 * 64 * 4 + 3 * 512 * 2))


def test_dtypes_that_a_config_does_not_say(spotrail: Command, model: Path) -> None:
    assert (tuple(model_sizes.WEIGHTS), tuple(model_sizes.CACHES)) == (scripts.wall.WEIGHTS, scripts.wall.CACHES)
    found = document(spotrail, "--config", str(model), "--weights-dtype", "float32", "--cache-dtype", "int8")
    assert found["model"]["weights_bytes"] == "5200000000"
    held = {each["key"]: (each["state_bytes"], each["token_bytes"]) for each in found["variants"]}
    # The tails of the convolutions are as wide as the weights; keys and values 24 x 2 x 4 x 128 bytes.
    assert (held["model"], held["gqa"]) == ((str(24 * (16 * 128 * 128 * 4 + 9 * 2048 * 4)), "0"), ("0", "24576"))


def test_a_page_goes_into_a_file(spotrail: Command, model: Path, tmp_path: Path) -> None:
    ran = spotrail("wall", "--config", str(model), "--format", "html", "--output", str(tmp_path / "wall.html"), *AS_OF)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert (tmp_path / "wall.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_missing_price_is_exit_4(spotrail: Command, model: Path) -> None:
    ran = spotrail("wall", "--config", str(model), "--zone", "us-central1-ai1a", *AS_OF)
    assert (ran.returncode, ran.stderr) == (4, "")
    assert "no dollars: no spot price for tpu.v6e.chip in us-central1-ai1a" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--contexts", "4x"), "'4x' is no number of tokens"),
        (("--contexts", ""), "'' is no number of tokens"),
        (("--contexts", ",".join(map(str, range(1, 14)))), "13 are more than 12"),
        (("--batch", "0"), "'0' is no count, a whole number of at least 1; write 64,"),
        (("--batch", "64k,-1"), "'-1' is no count"),
        (("--shape", "v6e-2"), 'accelerator type "v6e-2" is not a v6e shape'),
        (("--zone", "us-central1-a"), "v6e is not listed in us-central1-a"),
        (("--capacity", "reserved"), "'reserved' is not one of 'spot', 'on-demand'"),
        (("--measured", "fast"), "Invalid value for --measured: 'fast' is no number"),
        (("--measured", "-5"), "'-5': it is above 0"),
        (("--measured", "1@2@3@4"), "has more than a rate, a batch and a context"),
        (("--measured", "1@x"), "'x' is no count"),
        (("--usable", "1.5"), "'1.5': it is above 0 to 1"),
        (("--hbm", "nan"), "'nan' is no number"),
        (("--hbm", "1e-30"), "'1e-30' is no number"),
        (("--kv-heads", "3"), "--kv-heads 3: 16 heads of queries are no multiple of it"),
        (("--format", "svg"), "'svg' is not one of 'table', 'json', 'html'"),
        (("--prices", "no.csv"), "'no.csv' does not exist"),
    ],
)
def test_mistakes_are_exit_2(arguments: tuple[str, ...], message: str, spotrail: Command, model: Path) -> None:
    ran = spotrail("wall", "--config", str(model), *arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert message in " ".join(ran.stderr.split())


def test_a_wrong_model_is_exit_2(spotrail: Command, tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(MODEL.replace("d_model", "d_modell"), encoding="utf-8")
    ran = spotrail("wall", "--config", str(path))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "d_modell (line 2): there is no such field. Did you mean d_model?" in ran.stderr
