"""Exports: what is in the folder is what was trained, and the folder is whole or not there."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import jinja2
import numpy as np
import pytest
from click.testing import CliRunner
from safetensors.numpy import load_file

from training.__main__ import run as main
from training.checkpoint.checkpointer import Checkpointer
from training.checkpoint.documents import DamagedError
from training.checkpoint.inspection import State, listing, verify
from training.checkpoint.store import open_store
from training.checkpoint.tokenizer_file import TokenizerFile
from training.checkpoint.verification import read_manifest
from training.commands.export import command
from training.errors import TrainingError
from training.exit_codes import ExitCode
from training.export import Serving, export_checkpoint
from training.mixers.linear import LinearConfig
from training.mixers.ssd import SsdConfig
from training.model.config import ModelConfig
from training.model.export_names import from_tensors
from training.model.language_model import LanguageModel
from training.model.tokenizer import Tokenizer, parse_tokenizer, train_tokenizer
from training.state_digest import sha256_of
from training.train_step import TrainState

CONFIG = ModelConfig(
    vocab_size=300,
    d_model=16,
    n_layers=4,
    d_feed_forward=24,
    mixers=(LinearConfig(n_heads=2), SsdConfig(d_head=8, d_state=4)),
)
FILES = ["chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(["to be or not to be, that is the question"] * 3, 300)


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return LanguageModel.init(CONFIG, jax.random.key(3))


@pytest.fixture(scope="module")
def checkpoints(model: LanguageModel, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints of steps 1 and 2, the second of the model, the first of one of ones."""
    root = tmp_path_factory.mktemp("run") / "checkpoints"
    file = root.parent / "tokenizer.json"
    file.write_bytes(tokenizer.to_json())
    store = open_store(root)
    serving = Serving.published(store, CONFIG, file)
    ones = jax.tree.map(jnp.ones_like, model)
    with Checkpointer(root, run="r") as checkpointer:
        for step, at in ((1, ones), (2, model)):
            state = TrainState(at, {"moment": ones}, jnp.int32(step))  # type: ignore[arg-type]
            checkpointer.save(step, state, {"serving": serving.to_json()})
            checkpointer.wait()
    return root


def read(folder: Path) -> LanguageModel:
    config = ModelConfig.from_json((folder / "config.json").read_text())
    return from_tensors(config, load_file(folder / "model.safetensors"))


def test_the_newest_checkpoint_is_exported_to_the_bit(
    checkpoints: Path, model: LanguageModel, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    exported = export_checkpoint(str(checkpoints), tmp_path / "out")
    assert sha256_of(read(tmp_path / "out")) == sha256_of(model)
    assert parse_tokenizer((tmp_path / "out" / "tokenizer.json").read_bytes(), "t").digest == tokenizer.digest
    assert sorted(exported.files) == FILES


def test_the_manifest_holds_every_byte(checkpoints: Path, tmp_path: Path) -> None:
    exported = export_checkpoint(str(checkpoints), tmp_path / "out")
    body = (tmp_path / "out" / "MANIFEST.json").read_bytes()
    assert hashlib.sha256(body).hexdigest() == exported.manifest_sha256
    told = json.loads(body)
    assert told["schema"] == "spotrail.model/1"
    assert [each["path"] for each in told["files"]] == FILES
    for each in told["files"]:
        content = (tmp_path / "out" / each["path"]).read_bytes()
        assert (each["bytes"], each["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())


def test_the_same_checkpoint_is_the_same_version_in_every_export(checkpoints: Path, tmp_path: Path) -> None:
    named = {export_checkpoint(str(checkpoints), tmp_path / str(n)).manifest_sha256 for n in range(8)}
    assert len(named) == 1


def test_one_checkpoint_can_be_named(checkpoints: Path, tmp_path: Path) -> None:
    export_checkpoint(f"{checkpoints}/00000001-1", tmp_path / "out")
    assert all(np.all(leaf == 1) for leaf in jax.tree.leaves(read(tmp_path / "out")))


def flipped(content: bytes) -> bytes:
    return content[:9] + bytes([content[9] ^ 1]) + content[10:]


@pytest.fixture
def copied(checkpoints: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(checkpoints, tmp_path / "copied"))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda file: file.unlink(), r"tokenizer-[0-9a-f]{16}\.json is missing; its run writes it anew"),
        (lambda file: file.write_bytes(flipped(file.read_bytes())), r"json is damaged: its sha256 is another; its run"),
    ],
    ids=["missing", "damaged"],
)
def test_a_tokenizer_that_is_not_what_it_was_is_found_and_mended(
    copied: Path,
    tmp_path: Path,
    tokenizer: Tokenizer,
    damage: Callable[[Path], object],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (file,) = copied.glob("tokenizer-*.json")
    damage(file)
    assert main(["export", str(copied), str(tmp_path / "out")]) == ExitCode.BAD_INPUT
    assert re.search(said, capsys.readouterr().err)
    assert not (tmp_path / "out").exists()
    assert [entry.state for entry in listing(copied)] == [State.COMPLETE] * 2, "their own bytes are whole"
    for entry in verify(copied):
        assert entry.state is State.DAMAGED
        assert re.search(said, "\n".join(entry.problems))
    (tmp_path / "tokenizer.json").write_bytes(tokenizer.to_json())
    assert Serving.published(open_store(copied), CONFIG, tmp_path / "tokenizer.json").tokenizer == file.name
    assert [entry.problems for entry in verify(copied)] == [(), ()]
    export_checkpoint(str(copied), tmp_path / "out")


def test_a_whole_tokenizer_is_not_written_again(copied: Path, tokenizer: Tokenizer, tmp_path: Path) -> None:
    (file,) = copied.glob("tokenizer-*.json")
    before = file.stat()
    (tmp_path / "tokenizer.json").write_bytes(tokenizer.to_json())
    serving = Serving.published(open_store(copied), CONFIG, tmp_path / "tokenizer.json")
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert serving.to_json()["tokenizer_sha256"] == hashlib.sha256(tokenizer.to_json()).hexdigest()
    assert Serving.from_json(serving.to_json(), "here") == serving


def test_every_digit_of_the_digest_counts(copied: Path, tokenizer: Tokenizer) -> None:
    """A key is a part of the digest: one that only begins alike is another tokenizer."""
    (file,) = copied.glob("tokenizer-*.json")
    digest = hashlib.sha256(tokenizer.to_json()).hexdigest()
    last = "0" if digest[-1] != "0" else "1"
    for right in (digest, None):
        assert TokenizerFile(key=file.name, sha256=right).read(open_store(copied)) == tokenizer.to_json()
    with pytest.raises(DamagedError, match="its sha256 is another"):
        TokenizerFile(key=file.name, sha256=digest[:-1] + last).read(open_store(copied))


@pytest.mark.parametrize(
    ("key", "digest"),
    [
        ("../tokenizer.json", None),
        ("tokenizer-0123456789abcdef.json", "0123456789abcdef"),
        ("tokenizer-0123456789abcdef.json", "f" * 64),
    ],
)
def test_what_no_run_calls_a_tokenizer_is_not_read(key: str, digest: str | None) -> None:
    with pytest.raises(DamagedError, match=r"the tokenizer is called .*; no run writes that"):
        TokenizerFile(key=key, sha256=digest)


@pytest.fixture
def shared(checkpoints: Path, model: LanguageModel, tmp_path: Path) -> Path:
    """Run r, at step 2, was started over and is at step 1, with a model of twos; run s is at step 3, with threes."""
    root = tmp_path / "shared"
    shutil.copytree(checkpoints, root)
    said = read_manifest(open_store(root), "00000002-1").meta
    for run, step, value in (("r", 1, 2), ("s", 3, 3)):
        with Checkpointer(root, run=run, start_over=True) as checkpointer:
            filled = jax.tree.map(lambda leaf, value=value: jnp.full_like(leaf, value), model)
            checkpointer.save(step, TrainState(filled, {"moment": filled}, jnp.int32(step)), said)  # type: ignore[arg-type]
    return root


@pytest.mark.parametrize(("run", "value"), [("r", 2), ("s", 3)])
def test_of_several_runs_one_is_named_and_what_it_set_aside_is_not_taken(
    shared: Path, tmp_path: Path, run: str, value: int
) -> None:
    export_checkpoint(str(shared), tmp_path / "out", run=run)
    assert all(np.all(leaf == value) for leaf in jax.tree.leaves(read(tmp_path / "out")))


def test_the_only_run_is_taken_from_where_it_was_started_over(shared: Path, tmp_path: Path) -> None:
    shutil.rmtree(next(shared.glob("00000003-*")))
    export_checkpoint(str(shared), tmp_path / "out")
    assert all(np.all(leaf == 2) for leaf in jax.tree.leaves(read(tmp_path / "out")))


@pytest.mark.parametrize(
    ("name", "run", "said"),
    [
        ("", None, r"shared has checkpoints of several runs; name one of them with --run: r, s$"),
        ("", "ss", r"shared has no checkpoint of run 'ss'; did you mean s\?"),
        ("", "other", r"shared has no checkpoint of run 'other'; there are those of r, s$"),
        ("00000002-1", "s", r"00000002-1 is of run r, not of s$"),
    ],
)
def test_a_run_that_is_not_told_is_refused(
    shared: Path, tmp_path: Path, name: str, run: str | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["export", str(shared / name), str(tmp_path / "out"), *(["--run", run] if run else [])]
    assert main(arguments) == ExitCode.BAD_INPUT
    assert re.search(said, capsys.readouterr().err, re.MULTILINE)
    assert not (tmp_path / "out").exists()


def test_turns_are_written_between_the_reserved_tokens(checkpoints: Path, tmp_path: Path) -> None:
    export_checkpoint(str(checkpoints), tmp_path / "out")
    template = jinja2.Template((tmp_path / "out" / "chat_template.jinja").read_text())
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "To be?"}]
    text = template.render(messages=messages, add_generation_prompt=True)
    assert text == "<|system|>Be brief.<|end_of_turn|><|user|>To be?<|end_of_turn|><|assistant|>"


def test_nothing_is_ever_written_over(checkpoints: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(TrainingError, match="out: exists; an export is written once"):
        export_checkpoint(str(checkpoints), tmp_path / "out")


@pytest.mark.parametrize("name", ["", "nowhere", "00000009-1"])
def test_a_checkpoint_that_is_not_there_is_said_to_be_so(checkpoints: Path, tmp_path: Path, name: str) -> None:
    place = tmp_path / "empty" if name != "00000009-1" else checkpoints
    told = "there is no folder .*/empty" if name != "00000009-1" else "is there; name a folder of checkpoints"
    with pytest.raises(TrainingError, match=told):
        export_checkpoint(f"{place}/{name}".rstrip("/"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@contextlib.contextmanager
def small_files(most: int) -> Iterator[None]:
    """A disk that takes no more than so many bytes of a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("most", [100, 10_000], ids=["in config.json", "in model.safetensors"])
def test_a_disk_that_takes_no_more_leaves_nothing_and_is_no_mistake(
    checkpoints: Path, tmp_path: Path, most: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with small_files(most):
        assert main(["export", str(checkpoints), str(tmp_path / "out")]) == ExitCode.BUG
    assert capsys.readouterr().err == f"error: {tmp_path}/out: nothing was exported: File too large\n"
    assert list(tmp_path.iterdir()) == []


def test_a_server_of_any_user_can_read_an_export(checkpoints: Path, tmp_path: Path) -> None:
    export_checkpoint(str(checkpoints), tmp_path / "out")
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "out").iterdir()} == {0o644}


def test_a_folder_beside_the_right_one_is_told_the_right_one(checkpoints: Path, tmp_path: Path) -> None:
    shutil.copytree(checkpoints, tmp_path / "run/checkpoints")
    meant = rf"run: no checkpoint is there; did you mean {tmp_path}/run/checkpoints\?$"
    with pytest.raises(TrainingError, match=meant):
        export_checkpoint(str(tmp_path / "run"), tmp_path / "out")


def test_a_newer_one_that_is_damaged_is_not_passed_over_in_silence(copied: Path, tmp_path: Path) -> None:
    first, newest = sorted(path.name for path in copied.glob("0*"))[-2:]
    (copied / newest / "PART-0.json").write_text("{}")
    ran = CliRunner().invoke(command, [str(copied), str(tmp_path / "out")])
    assert ran.stdout.startswith(f"{tmp_path}/out: the model of {copied}/{first}\n")
    assert ran.stderr.startswith(f"stepped over: {copied}/{newest}: ")
    told = json.loads(CliRunner().invoke(command, [str(copied), str(tmp_path / "b"), "--format", "json"]).stdout)
    assert told["checkpoint"] == f"{copied}/{first}"
    assert len(told["skipped"]) == 1


def test_the_command_says_what_names_the_volume(checkpoints: Path, tmp_path: Path) -> None:
    ran = CliRunner().invoke(command, [str(checkpoints), str(tmp_path / "out"), "--format", "json"])
    assert ran.exit_code == 0, ran.output
    body = (tmp_path / "out" / "MANIFEST.json").read_bytes()
    assert json.loads(ran.output)["manifest_sha256"] == hashlib.sha256(body).hexdigest()
