"""An export: the weights of a checkpoint with all that is needed to serve them, `spotrail.model/1`.

`config.json`, `model.safetensors`, `tokenizer.json`, `chat_template.jinja`, and `MANIFEST.json` with path, size and
sha256 of each, by whose own digest a model volume is named. An export is made beside its place and moved there whole:
what is half-made never looks like a model.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, final

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save_file

from training.checkpoint import tokenizer_file
from training.checkpoint.discovery import Found, find_newest_valid, find_one
from training.checkpoint.inspection import meant_instead, runs_in
from training.checkpoint.names import parsed
from training.checkpoint.restoring import restore
from training.checkpoint.store import AbstractStore, open_store
from training.checkpoint.tokenizer_file import TokenizerFile
from training.durable import sync, sync_folder
from training.errors import TrainingError, unwritable
from training.model.chat import CHAT_TEMPLATE
from training.model.config import ModelConfig
from training.model.export_names import to_tensors
from training.model.language_model import LanguageModel

SCHEMA: Final = "spotrail.model/1"
MANIFEST: Final = "MANIFEST.json"
_NUMBER: Final = re.compile(r"\(os error (\d+)\)")
MODEL: Final = ".model"
"""Where the parameters are in the state of a run, as a checkpoint names its arrays."""


@final
@dataclass(frozen=True, kw_only=True)
class Exported:
    """What was written."""

    folder: Path
    manifest_sha256: str
    """By which a model volume names the version."""
    files: Mapping[str, int]
    """Bytes of each."""
    checkpoint: str | None = None
    """Where the weights are from; None where they are of no checkpoint."""
    skipped: tuple[str, ...] = ()
    """Why a newer one was not taken, one line each."""


@final
@dataclass(frozen=True, kw_only=True)
class Serving:
    """What a checkpoint says of its model, so that it can be exported without the files of its run."""

    model: ModelConfig
    tokenizer: str
    """Key of the tokenizer beside the checkpoints."""
    tokenizer_sha256: str | None = None
    """Of its bytes; None: no more of them is known than the key says."""

    @classmethod
    def published(cls, store: AbstractStore, model: ModelConfig, tokenizer: Path) -> Serving:
        """Of a run whose tokenizer is put beside its checkpoints, unless it is there. Raises StoreError."""
        file = tokenizer_file.publish(store, tokenizer.read_bytes())
        return cls(model=model, tokenizer=file.key, tokenizer_sha256=file.sha256)

    def to_json(self) -> dict[str, Any]:
        """For the checkpoint."""
        said = {"model": json.loads(self.model.to_json()), "tokenizer": self.tokenizer}
        return said if self.tokenizer_sha256 is None else {**said, "tokenizer_sha256": self.tokenizer_sha256}

    @classmethod
    def from_json(cls, said: Any, where: str) -> Serving:
        """The opposite of `to_json`. Raises TrainingError where `where` does not say it."""
        if not isinstance(said, dict) or set(said) - {"tokenizer_sha256"} != {"model", "tokenizer"}:
            raise TrainingError(f"{where}: does not say which model it is of; it was not made by `python -m training`")
        digest = said.get("tokenizer_sha256")
        return cls(
            model=ModelConfig.from_json(json.dumps(said["model"]), where=where),
            tokenizer=str(said["tokenizer"]),
            tokenizer_sha256=None if digest is None else str(digest),
        )


def export_checkpoint(checkpoint: str, out: Path, *, run: str | None = None) -> Exported:
    """Write the model of a checkpoint, or of the newest valid one in a folder or bucket of them, into `out`.

    `run`: whose newest one is taken, where several have checkpoints there. What a run has set aside when it was
    started over is only exported when it is named itself.

    Raises TrainingError where there is none, it is damaged, the run is not told, or `out` exists; StoreError.
    """
    _refuse_existing(out)
    above, _, last = checkpoint.rstrip("/").rpartition("/")
    root, prefix = (above or ".", last) if parsed(last) else (checkpoint, None)
    with contextlib.closing(open_store(root)) as store:
        return _export(_found(store, prefix, run), out)


def _found(store: AbstractStore, prefix: str | None, run: str | None) -> Found:
    """The checkpoint in the folder `prefix` of a root, or the newest of the run, which may be the only one."""
    found = None
    if prefix is not None:
        found = find_one(store, prefix)
    elif runs := runs_in(store):
        found = find_newest_valid(store, _chosen(store, runs, run), quarantine=False)
    if found is None:
        place = store.url if prefix is None else f"{store.url}/{prefix}"
        hint = (meant_instead(store) if prefix is None else "") or "; name a folder of checkpoints, or one of them"
        raise TrainingError(f"{place}: no checkpoint is there{hint}")
    if run not in (None, found.manifest.run):
        raise TrainingError(f"{found.url} is of run {found.manifest.run}, not of {run}")
    return found


def _chosen(store: AbstractStore, runs: Sequence[str], run: str | None) -> str:
    named = ", ".join(runs)
    if run is None:
        if len(runs) == 1:
            return runs[0]
        raise TrainingError(f"{store.url} has checkpoints of several runs; name one of them with --run: {named}")
    if run in runs:
        return run
    close = difflib.get_close_matches(run, runs, 1)
    hint = f"did you mean {close[0]}?" if close else f"there are those of {named}"
    raise TrainingError(f"{store.url} has no checkpoint of run {run!r}; {hint}")


def _export(found: Found, out: Path) -> Exported:
    serving = Serving.from_json(found.meta.get("serving"), found.url)
    shapes = jax.eval_shape(lambda key: LanguageModel.init(serving.model, key), jax.random.key(0))
    tokenizer = TokenizerFile(key=serving.tokenizer, sha256=serving.tokenizer_sha256).read(found.store)
    exported = write_export(restore(found, shapes, at=MODEL)[0], tokenizer, out)
    return replace(exported, checkpoint=found.url, skipped=found.skipped)


def write_export(model: LanguageModel, tokenizer: bytes, out: Path) -> Exported:
    """Write `model` and the tokenizer that it was trained with into the new folder `out`.

    Raises TrainingError where the folder exists, or nothing can be written there.
    """
    _refuse_existing(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        making = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise unwritable(str(out), error, "name a folder that can be written") from None
    try:
        exported = _write(model, tokenizer, making)
        _open_to_all(making)
        sync_folder(making)
        making.rename(out)
        sync(out.parent)
    except OSError as error:
        raise unwritable(f"{out}: nothing was exported", error, "name a folder that can be written") from None
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return Exported(folder=out, manifest_sha256=exported.manifest_sha256, files=exported.files)


def _refuse_existing(out: Path) -> None:
    if out.exists():
        raise TrainingError(f"{out}: exists; an export is written once and never over another: name a new folder")


def _write(model: LanguageModel, tokenizer: bytes, folder: Path) -> Exported:
    (folder / "config.json").write_text(model.config.to_json(), encoding="utf-8")
    tensors = {name: np.ascontiguousarray(jax.device_get(array)) for name, array in to_tensors(model).items()}
    # One entry: the library writes several in another order each time, and the version is named by the digest.
    with _said_by_the_system():
        save_file(tensors, folder / "model.safetensors", metadata={"format": SCHEMA})
    (folder / "tokenizer.json").write_bytes(tokenizer)
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE, encoding="utf-8")
    files = [_entry(path) for path in sorted(folder.iterdir())]
    body = json.dumps({"schema": SCHEMA, "files": files}, indent=1).encode() + b"\n"
    (folder / MANIFEST).write_bytes(body)
    sizes = {str(each["path"]): int(each["bytes"]) for each in files}
    return Exported(folder=folder, manifest_sha256=hashlib.sha256(body).hexdigest(), files=sizes)


@contextlib.contextmanager
def _said_by_the_system() -> Iterator[None]:
    """What the library says of a disk, as the OSError that it was. Raises OSError."""
    try:
        yield
    except SafetensorError as error:
        if (number := _NUMBER.search(str(error))) is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from None


def _open_to_all(folder: Path) -> None:
    """Let the server read it, whatever its user is: temporary folders and the library keep theirs to themselves."""
    folder.chmod(0o755)
    for path in folder.iterdir():
        path.chmod(0o644)


def _entry(path: Path) -> dict[str, str | int]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"path": path.name, "bytes": path.stat().st_size, "sha256": digest}
