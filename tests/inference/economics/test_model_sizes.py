"""A file of sizes: what it may say, and how a mistake in it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference.economics.model_sizes import Sizes, read_sizes
from policies.errors import InputError

GOOD = {"d_model": "2048", "n_layers": "24", "parameters": "1.3B", "mixers": "[{type: delta, n_heads: 16}]"}


def read(tmp_path: Path, text: str, name: str = "model.yaml") -> Sizes:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_sizes(path)


def of(**changes: str | None) -> str:
    fields = {**GOOD, **changes}
    return "".join(f"{name}: {value}\n" for name, value in fields.items() if value is not None)


def test_what_is_given_and_what_follows(tmp_path: Path) -> None:
    found = read(tmp_path, of(name="mine"))
    assert (found.name, found.parameters, found.active_parameters) == ("mine", 1_300_000_000, 1_300_000_000)
    assert (found.weights_bytes, found.cache_bytes, found.heads) == (2, 2, (16, 128))
    assert [layer.title for layer in found.layers] == ["delta"] * 24


def test_parameters_follow_from_the_sizes(tmp_path: Path) -> None:
    mixers = "[{type: softmax, n_heads: 8, n_kv_heads: 2}]"
    text = of(parameters=None, d_model="512", n_layers="2", mixers=mixers, d_feed_forward="1024", vocab_size="1000")
    # A layer: q and o 2 x 512 x 512, k and v 2 x 512 x 128, feed-forward 3 x 512 x 1024, two norms; beside the layers
    # the embedding and the last norm.
    layer = 2 * 512 * 512 + 2 * 512 * 128 + 3 * 512 * 1024 + 2 * 512
    assert read(tmp_path, text).parameters == 2 * layer + 1000 * 512 + 512
    untied = read(tmp_path, f"{text}tie_embeddings: false\n")
    assert untied.parameters - untied.active_parameters == 512_000


def test_a_pattern_is_repeated_over_the_depth(tmp_path: Path) -> None:
    found = read(tmp_path, of(n_layers="8", mixers="[{type: ssd}, {type: ssd}, {type: ssd}, {type: mla, n_heads: 16}]"))
    assert [layer.title for layer in found.layers] == ["ssd", "ssd", "ssd", "MLA 512+64"] * 2


def test_json_with_the_same_fields_is_read_alike(tmp_path: Path) -> None:
    text = '{"d_model": 2048, "n_layers": 24, "parameters": 1300000000,\n "mixers": [{"type": "delta", "n_heads": 16}]}'
    assert read(tmp_path, text, "model.json").layers == read(tmp_path, of()).layers


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (of(d_modle="1"), r"d_modle \(line 5\): there is no such field\. Did you mean d_model\?"),
        (of(d_model=None), r"d_model: is missing; it is a whole number"),
        (of(d_model="big"), r"d_model \(line 1\): is 'big'; it is a whole number"),
        (of(d_model="0"), r"d_model \(line 1\): is 0; it is from 1 to"),
        (of(d_model="-2048"), r"d_model \(line 1\): is '-2048'; it is a whole number"),
        (of(d_model="2048.5"), r"is '2048.5'; it is a whole number"),
        (of(d_model="[2048]"), r"d_model \(line 1\): is a list or a mapping"),
        (of(d_model="99999999"), r"is 99,999,999; it is from 1 to 1,048,576"),
        (of(n_layers="1000000"), r"n_layers .*: is 1,000,000; it is from 1 to 10,000"),
        (of(n_layers="25", mixers="[{type: ssd}, {type: ssd}]"), r"n_layers .*is 25, no multiple of the 2 mixers"),
        (of(mixers=None), r"mixers: is missing; it is a list of mixers"),
        (of(mixers="[]"), r"mixers .*is no list with something in it"),
        (of(mixers="[ssd]"), r"mixers .*\[0\] is no mapping"),
        (of(mixers="[{n_heads: 4}]"), r"mixers\[0\]\.type: is missing; it is one of based, delta"),
        (of(mixers="[{type: sdd}]"), r"mixers\[0\]\.type .*is 'sdd'.* Did you mean ssd\?"),
        (
            of(mixers="[{type: ssd, d_stat: 4}]"),
            r"mixers\[0\]\.d_stat .*there is no such field\. Did you mean d_state\?",
        ),
        (of(mixers="[{type: softmax}]"), r"mixers\[0\]\.n_heads: is missing"),
        (of(mixers="[{type: softmax, n_heads: 12}]"), r"n_heads .*is 12, and 2048 channels are no multiple of it"),
        (of(mixers="[{type: softmax, n_heads: 16, n_kv_heads: 5}]"), r"n_kv_heads .*n_heads 16 is no multiple of it"),
        (of(mixers="[{type: ssd, n_groups: 7}]"), r"n_groups .*is 7, and the 64 heads are no multiple of it"),
        (of(parameters=None), r"parameters: is missing, and so is d_feed_forward"),
        (of(parameters=None, d_feed_forward="8"), r"parameters: is missing, and so is vocab_size"),
        (of(active_parameters="2B"), r"active_parameters .*is 2,000,000,000, more than the 1,300,000,000"),
        (of(weights_dtype="fp16"), r"weights_dtype .*is 'fp16'; it is one of float32, bfloat16, int8"),
        (of(tie_embeddings="perhaps"), r"tie_embeddings .*is 'perhaps'; it is true or false"),
        (of(schema="spotrail.model/2"), r"schema .*is 'spotrail.model/2'; it is one of spotrail.model/1"),
        ("model: {d_model: 4}\ndata: {}\n", r"is the config of a training run.* name the folder of an export"),
        (of() + "d_model: 1024\n", r"d_model stands twice, on lines 1 and 5"),
        ("- 1\n", r"holds no mapping; sizes of a model are fields"),
        ("", r"holds no mapping"),
        ("{", r"neither YAML nor JSON"),
        ("? [a]\n: 1\n", r"the key on line 1 is no word"),
        ("[" * 600, r"nested too deeply|neither YAML nor JSON"),
    ],
)
def test_mistakes_are_named(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path))


def test_aliases_make_no_large_file_of_a_small_one(tmp_path: Path) -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(InputError, match=r"has more than 20,000 values"):
        read(tmp_path, "\n".join(lines))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", r"byte 0 is not UTF-8"),
        (b"a: \x00", r"neither YAML nor JSON"),
        (b"#" * 2**21, r"more than 1,048,576 bytes"),
    ],
)
def test_files_of_another_kind(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_sizes(path)


def test_a_folder_without_a_config(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config.json: No such file or directory; name a config.json or a YAML file"):
        read_sizes(tmp_path)
