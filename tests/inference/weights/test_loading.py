"""A whole model, from its export to its devices."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from inference.errors import ServingError
from inference.weights import buffers
from inference.weights.loading import LoadedModel, load_model
from inference.weights.progress import Phase, Progress
from inference.weights.reading_style import ReadingStyle
from training.model.export_names import to_tensors
from training.model.language_model import LanguageModel, unrolled
from training.model.tokenizer import Tokenizer
from training.sharding import make_mesh, parameter_specs


@pytest.fixture(scope="module")
def loaded(export: Path, small_style: ReadingStyle) -> LoadedModel:
    return load_model(export, small_style, verify=True, finite=True)


@pytest.fixture
def copied(export: Path, tmp_path: Path) -> Path:
    """An export to spoil, without the manifest, which would tell at once."""
    shutil.copytree(export, tmp_path / "model")
    (tmp_path / "model" / "MANIFEST.json").unlink()
    return tmp_path / "model"


def saved(folder: Path, changed: Mapping[str, Any]) -> None:
    """The tensors of `folder` with some of them put in place of others; None takes one away."""
    tensors = load_file(folder / "model.safetensors") | dict(changed)
    save_file({name: each for name, each in tensors.items() if each is not None}, folder / "model.safetensors")


def test_a_loaded_model_is_the_exported_one_bit_for_bit(
    loaded: LoadedModel, model: LanguageModel, tokenizer: Tokenizer
) -> None:
    assert eqx.tree_equal(loaded.model, unrolled(model))
    assert loaded.config == model.config
    assert loaded.tokenizer.digest == tokenizer.digest
    assert loaded.warnings == ()


def test_its_arrays_are_the_memory_that_was_read_to(
    export: Path, small_style: ReadingStyle, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    finished = buffers.Buffers.finished

    def noted(self: buffers.Buffers, *, finite: bool) -> list[Any]:
        arrays = finished(self, finite=finite)
        made.extend(array.ctypes.data for array in arrays)
        return arrays

    monkeypatch.setattr(buffers.Buffers, "finished", noted)
    leaves = jax.tree.leaves(load_model(export, small_style).model)
    assert sorted(made) == sorted(leaf.unsafe_buffer_pointer() for leaf in leaves)
    assert all(pointer % 64 == 0 for pointer in made)


def test_to_unroll_it_again_copies_nothing(loaded: LoadedModel) -> None:
    pairs = zip(jax.tree.leaves(loaded.model), jax.tree.leaves(unrolled(loaded.model)), strict=True)
    assert all(one.unsafe_buffer_pointer() == other.unsafe_buffer_pointer() for one, other in pairs)


def test_on_a_mesh_every_device_has_its_part(
    export: Path, small_style: ReadingStyle, loaded: LoadedModel, model: LanguageModel
) -> None:
    mesh = make_mesh(data=2, fsdp=2, tensor=2)
    found = load_model(export, small_style, mesh=mesh).model
    specs = parameter_specs(unrolled(model), mesh)
    leaves = zip(jax.tree.leaves(found), jax.tree.leaves(loaded.model), jax.tree.leaves(specs), strict=True)
    for ours, whole, spec in leaves:
        assert ours.sharding.spec == spec
        np.testing.assert_array_equal(ours, whole)
        for shard in ours.addressable_shards:
            np.testing.assert_array_equal(shard.data, np.asarray(whole)[shard.index])


def test_a_mesh_that_does_not_divide_the_model_is_refused(export: Path, small_style: ReadingStyle) -> None:
    with pytest.raises(ServingError, match=r"feed_forward.*24 is no multiple of\n?.*5"):
        load_model(export, small_style, mesh=make_mesh(tensor=5, devices=jax.devices()[:5]))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float32])
def test_a_dtype_that_is_asked_for_spares_norms_and_decays(
    export: Path, small_style: ReadingStyle, model: LanguageModel, dtype: Any
) -> None:
    found = to_tensors(load_model(export, small_style, dtype=dtype).model)
    for name, tensor in to_tensors(unrolled(model)).items():
        stays = "norm" in name or name.rpartition(".")[2] in ("a_log", "dt_bias", "d_skip")
        expected = tensor if stays else tensor.astype(dtype)
        assert found[name].dtype == expected.dtype, name
        np.testing.assert_array_equal(found[name], expected)


def test_what_is_stored_as_bf16_stays_so_but_for_norms(copied: Path, small_style: ReadingStyle) -> None:
    stored = {name: each.astype(ml_dtypes.bfloat16) for name, each in load_file(copied / "model.safetensors").items()}
    saved(copied, stored)
    found = to_tensors(load_model(copied, small_style).model)
    assert found["embedding.weight"].dtype == jnp.bfloat16
    assert found["final_norm.weight"].dtype == jnp.float32
    for name, tensor in stored.items():
        np.testing.assert_array_equal(np.asarray(found[name], np.float32), tensor.astype(np.float32))


def test_weights_may_be_shared_out_over_files(copied: Path, small_style: ReadingStyle, loaded: LoadedModel) -> None:
    tensors = load_file(copied / "model.safetensors")
    (copied / "model.safetensors").unlink()
    files = [f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)]
    for number, file in enumerate(files):
        save_file({name: tensors[name] for name in sorted(tensors)[number::3]}, copied / file)
    weight_map = {name: files[number % 3] for number, name in enumerate(sorted(tensors))}
    (copied / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    found = load_model(copied, small_style)
    assert eqx.tree_equal(found.model, loaded.model)


def test_everything_that_differs_from_the_config_is_listed(
    copied: Path, small_style: ReadingStyle, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {
        "final_norm.weight": None,
        "final_norm.wieght": np.ones(16, np.float32),
        "embedding.weight": np.ones((16, 304), np.float32),
        "blocks.0.mixer.q_proj.weight": np.ones((16, 16), np.int8),
        "blocks.2.mixer.q_proj.weight": np.ones((16, 16), np.float16),
    }
    saved(copied, changes)
    monkeypatch.setattr("inference.weights.loading.Reader", None)  # refused before anything is read
    with pytest.raises(ServingError) as caught:
        load_model(copied, small_style)
    message = str(caught.value)
    assert message.startswith(f"{copied}: the tensors of model.safetensors are not those of config.json")
    assert sorted(message.splitlines()[1:]) == [
        "  blocks.0.mixer.q_proj.weight is stored as I8, and parameters are F32, BF16, F16 or F64",
        "  blocks.2.mixer.q_proj.weight is stored as F16, and a model is served in float32 or bfloat16 (in float16 the "
        "sums of a state overflow): ask for one of them",
        "  embedding.weight is (16, 304), and the config makes it (304, 16)",
        "  final_norm.weight is missing",
        "  final_norm.wieght is no array of this model; did its writer mean final_norm.weight?",
    ]


def test_float16_is_served_when_a_dtype_is_asked_for(copied: Path, small_style: ReadingStyle) -> None:
    halves = {name: each.astype(np.float16) for name, each in load_file(copied / "model.safetensors").items()}
    saved(copied, halves)
    found = to_tensors(load_model(copied, small_style, dtype="float32").model)
    for name, tensor in halves.items():
        np.testing.assert_array_equal(found[name], tensor.astype(np.float32))


def test_no_model_is_served_in_float16(export: Path, small_style: ReadingStyle) -> None:
    with pytest.raises(ServingError, match="dtype: float16 is none that a model is served in: float32 or bfloat16"):
        load_model(export, small_style, dtype=jnp.float16)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused_when_asked(
    copied: Path, small_style: ReadingStyle, number: float
) -> None:
    weight = load_file(copied / "model.safetensors")["embedding.weight"].copy()
    weight[303, 15] = number
    saved(copied, {"embedding.weight": weight})
    with pytest.raises(ServingError, match=r"embedding.weight has numbers that are not finite"):
        load_model(copied, small_style, finite=True)
    load_model(copied, small_style)


def test_a_billion_layers_are_refused_before_they_are_thought_of(copied: Path, small_style: ReadingStyle) -> None:
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps(config | {"n_layers": 10**9}))
    with pytest.raises(ServingError, match=r"config.json speaks of 1000000000 layers, and the files have"):
        load_model(copied, small_style)


def test_a_spoilt_byte_is_found_by_the_manifest(export: Path, small_style: ReadingStyle, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(export, folder)
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "model.safetensors").write_bytes(content)
    load_model(folder, small_style)
    with pytest.raises(
        ServingError, match=r"MANIFEST.json: the folder is not.*\n  model.safetensors has sha256 \w{64}"
    ):
        load_model(folder, small_style, verify=True)


def test_without_a_manifest_nothing_can_be_verified(copied: Path, small_style: ReadingStyle) -> None:
    with pytest.raises(ServingError, match=f"{re.escape(str(copied))}: has no MANIFEST.json, so that there is nothing"):
        load_model(copied, small_style, verify=True)


def test_the_fingerprint_is_of_the_weights_and_the_dtype(
    export: Path, copied: Path, small_style: ReadingStyle, loaded: LoadedModel, tmp_path: Path
) -> None:
    shutil.copytree(export, tmp_path / "other")
    assert load_model(tmp_path / "other", small_style).fingerprint == loaded.fingerprint
    assert load_model(export, small_style, dtype="bfloat16").fingerprint != loaded.fingerprint
    without = load_model(copied, small_style).fingerprint
    assert without == load_model(copied, small_style).fingerprint != loaded.fingerprint
    saved(copied, {"final_norm.weight": np.full(16, 2, np.float32)})
    assert load_model(copied, small_style).fingerprint != without


def test_progress_and_report_are_of_what_was_read(export: Path, small_style: ReadingStyle) -> None:
    heard: list[Progress] = []
    report = load_model(export, small_style, verify=True, progress=heard.append).report
    size = sum(each.nbytes for each in load_file(export / "model.safetensors").values())
    assert report.bytes_read == size
    assert list(report.seconds) == [Phase.HEADERS, Phase.VERIFY, Phase.READ, Phase.ASSEMBLE]
    assert report.retries == 0
    assert report.gigabytes_per_second == pytest.approx(size / 1e9 / report.seconds[Phase.READ])
    assert re.fullmatch(
        r"0\.000 GB in \d+\.\d\d s \(\d+\.\d\d GB/s of reading\): headers .* s, verify .* s, read .* s, assemble .* s, "
        r"of it placing .* s",
        report.to_text(),
    )
    assert [each.phase for each in heard] == sorted((each.phase for each in heard), key=list(Phase).index)
    ends = {each.phase: (each.done, each.total) for each in heard}
    assert ends[Phase.READ] == (size, size)
    everything = sum(path.stat().st_size for path in export.iterdir() if path.name != "MANIFEST.json")
    assert ends[Phase.VERIFY] == (everything, everything)


def test_what_the_listener_raises_ends_the_load(export: Path, small_style: ReadingStyle) -> None:
    def enough(progress: Progress) -> None:
        if progress.phase is Phase.READ:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_model(export, small_style, progress=enough)
