"""A folder with a model in it, read as far as it can be refused: everything but the tensors."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from inference.errors import ServingError
from inference.weights.manifest import Manifest, check_listed, read_manifest
from inference.weights.regular_file import content_of
from inference.weights.sharded_index import INDEX, WeightFiles, read_weight_files
from training.errors import TrainingError
from training.model.chat import CHAT_TEMPLATE
from training.model.config import ModelConfig
from training.model.tokenizer import Tokenizer, parse_tokenizer

CONFIG: Final = "config.json"
TOKENIZER: Final = "tokenizer.json"
TEMPLATE: Final = "chat_template.jinja"


@final
@dataclass(frozen=True, kw_only=True)
class ModelFolder:
    """What a folder says of its model."""

    path: Path
    config: ModelConfig
    tokenizer: Tokenizer
    weights: WeightFiles
    manifest: Manifest | None
    """None: the folder has none, and nothing to be verified against."""
    identity: str
    """sha256 in hex. With a manifest: of it, so of every byte, where the folder is verified. Without: of config,
    tokenizer, headers, and the size and time of every file of weights; a copy is then another model."""
    warnings: tuple[str, ...]
    """What is odd and does no harm."""


def read_model_folder(folder: Path, *, workers: int = 8) -> ModelFolder:
    """The model in `folder`; headers are read by `workers` threads.

    Raises ServingError where a file is missing, cannot be what it should be, or is not of the size of the manifest.
    """
    config_text = _content(folder, CONFIG)
    tokenizer_text = _content(folder, TOKENIZER)
    manifest = read_manifest(folder)
    try:
        config = ModelConfig.from_json(_decoded(config_text, folder / CONFIG), where=str(folder / CONFIG))
        tokenizer = parse_tokenizer(tokenizer_text, str(folder / TOKENIZER))
    except TrainingError as error:
        raise ServingError(str(error)) from None
    if tokenizer.vocab_size > config.vocab_size:
        raise ServingError(
            f"{folder / TOKENIZER}: has {tokenizer.vocab_size} tokens, and the model knows {config.vocab_size} "
            f"({CONFIG}): it is not the tokenizer that the model was trained with"
        )
    weights = read_weight_files(folder, workers=workers)
    if manifest is not None:
        index = [] if weights.index is None else [INDEX]
        check_listed(manifest, folder, [CONFIG, TOKENIZER, *index, *(file.path.name for file in weights.files)])
    return ModelFolder(
        path=folder,
        config=config,
        tokenizer=tokenizer,
        weights=weights,
        manifest=manifest,
        identity=manifest.sha256 if manifest else _identity(config_text, tokenizer_text, weights),
        warnings=(*weights.warnings, *_template_warnings(folder)),
    )


def _content(folder: Path, name: str) -> bytes:
    path = folder / name
    try:
        return content_of(path)
    except FileNotFoundError:
        what = f"has no {name}" if folder.is_dir() else "is no folder"
        raise ServingError(
            f"{folder}: {what}; a model is a folder as `python -m training export` makes it, with {CONFIG}, "
            f"{TOKENIZER} and model.safetensors"
        ) from None
    except OSError as error:
        raise ServingError(f"{path}: cannot be read: {error.strerror or error}") from None


def _decoded(content: bytes, path: Path) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ServingError(f"{path}: is no UTF-8 at byte {error.start}") from None


def _template_warnings(folder: Path) -> list[str]:
    path = folder / TEMPLATE
    try:
        known = content_of(path) == CHAT_TEMPLATE.encode()
    except FileNotFoundError:
        return []
    except OSError as error:
        return [f"{path}: cannot be read ({error.strerror or error}); turns are composed by the known template"]
    return (
        [] if known else [f"{path}: is not the known template; it is not used, and turns are composed by the known one"]
    )


def _identity(config: bytes, tokenizer: bytes, weights: WeightFiles) -> str:
    digest = hashlib.sha256()
    marks = [f"{file.path.name} {file.stamp.size} {file.stamp.mtime_ns}".encode() for file in weights.files]
    for part in (config, tokenizer, weights.index or b"", *(file.header_bytes for file in weights.files), *marks):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()
