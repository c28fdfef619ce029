"""The files of weights of a folder: `model.safetensors`, or those that `model.safetensors.index.json` names.

The index is what says in which file a tensor is. Its files stand in the folder itself; they may be links, as in the
cache of the Hugging Face hub, and it is the file behind the link that counts.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, final

from inference.errors import ServingError
from inference.weights.header import StoredTensor
from inference.weights.regular_file import content_of
from inference.weights.safetensors import SafetensorsFile, read_safetensors
from inference.weights.strict_json import parse_json

SINGLE: Final = "model.safetensors"
INDEX: Final = "model.safetensors.index.json"
LARGEST_INDEX: Final = 100_000_000
"""Bytes of an index: as much as of a header."""


@final
@dataclass(frozen=True, kw_only=True)
class Placed:
    """A tensor and the file that has it."""

    file: SafetensorsFile
    tensor: StoredTensor


@final
@dataclass(frozen=True, kw_only=True)
class WeightFiles:
    """All tensors of a model, checked as far as headers and index go; of the tensors themselves nothing is read yet."""

    files: tuple[SafetensorsFile, ...]
    """In the order of their names."""
    tensors: Mapping[str, Placed]
    """By name."""
    index: bytes | None
    """The index as it stands there, where there is one."""
    warnings: tuple[str, ...] = ()
    """What is odd and does no harm."""


def read_weight_files(folder: Path, *, workers: int = 8) -> WeightFiles:
    """The weights of `folder`; headers are read by `workers` threads. Raises ServingError for what is not whole."""
    path = folder / INDEX
    if not path.exists() and not path.is_symlink():
        file = read_safetensors(_single(folder))
        tensors = {name: Placed(file=file, tensor=tensor) for name, tensor in file.header.tensors.items()}
        return WeightFiles(files=(file,), tensors=MappingProxyType(tensors), index=None)
    content = _content(path)
    weight_map, total_size = parse_index(content, str(path))
    names = sorted(set(weight_map.values()))
    if (folder / SINGLE).exists() and SINGLE not in names:
        raise ServingError(
            f"{folder}: has {SINGLE} and {INDEX}, which names other files; which are meant cannot be known. Remove one"
        )
    with ThreadPoolExecutor(max(1, min(workers, len(names)))) as pool:
        files = dict(zip(names, pool.map(read_safetensors, [folder / name for name in names]), strict=True))
    return _joined(path, content, weight_map, total_size, files)


def parse_index(content: bytes, where: str) -> tuple[Mapping[str, str], int | None]:
    """Which file has each tensor, and the bytes of all, where the index says them.

    Raises ServingError that begins with `where` for anything else, and for a file that is not in the folder.
    """
    try:
        index = parse_json(content)
    except ValueError as error:
        raise ServingError(f"{where}: is no index of weights: {error}. Fetch the model again") from None
    weight_map = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise ServingError(f"{where}: has no weight_map, an object that names the file of each tensor")
    for tensor, name in weight_map.items():
        if not isinstance(name, str) or not is_plain_name(name) or not name.endswith(".safetensors"):
            raise ServingError(
                f"{where}: the file of {tensor!r} is {name!r}; it must be the name of a .safetensors file in the same "
                "folder, with no path before it"
            )
    metadata = index.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    return weight_map, total if type(total) is int else None


def is_plain_name(name: str) -> bool:
    """Whether `name` is that of a file in a folder, wherever it is joined to it."""
    return name not in ("", ".", "..") and not any(each in name for each in "/\\\0")


def _single(folder: Path) -> Path:
    path = folder / SINGLE
    if path.exists() or path.is_symlink():
        return path
    if not folder.is_dir():
        raise ServingError(f"{folder}: is no folder; a model is a folder with config.json and {SINGLE}")
    others = sorted(each.name for each in folder.glob("*.safetensors*"))
    there = f"there are {', '.join(others[:5])}" if others else "no other file of weights is there"
    raise ServingError(f"{folder}: has neither {SINGLE} nor {INDEX}; {there}")


def _content(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGEST_INDEX:
            raise ServingError(f"{path}: is of {path.stat().st_size} bytes, and no index is over {LARGEST_INDEX}")
        return content_of(path)
    except OSError as error:
        raise ServingError(f"{path}: cannot be read: {error.strerror or error}") from None


def _joined(
    path: Path,
    content: bytes,
    weight_map: Mapping[str, str],
    total_size: int | None,
    files: Mapping[str, SafetensorsFile],
) -> WeightFiles:
    wrong = _differences(weight_map, files)
    if wrong:
        raise ServingError(
            f"{path}: the index and the files do not agree; they are not of one model, or one is damaged:\n  "
            + "\n  ".join(wrong)
        )
    tensors = {
        name: Placed(file=files[file], tensor=files[file].header.tensors[name]) for name, file in weight_map.items()
    }
    return WeightFiles(
        files=tuple(files.values()),
        tensors=MappingProxyType(tensors),
        index=content,
        warnings=_oddities(path, weight_map, total_size, tensors, files),
    )


def _differences(weight_map: Mapping[str, str], files: Mapping[str, SafetensorsFile]) -> list[str]:
    holders: dict[str, list[str]] = {}
    for name, file in files.items():
        for tensor in file.header.tensors:
            holders.setdefault(tensor, []).append(name)
    wrong = []
    for tensor, name in weight_map.items():
        found = holders.get(tensor, [])
        if name not in found:
            hint = f"{found[0]} has it" if found else f"no file has it{_close(tensor, files[name])}"
            wrong.append(f"{tensor!r} is not in {name}, which the index says; {hint}")
        elif len(found) > 1:
            wrong.append(f"{tensor!r} is in {' and in '.join(found)}")
    return wrong


def _close(tensor: str, file: SafetensorsFile) -> str:
    close = difflib.get_close_matches(tensor, file.header.tensors, n=1, cutoff=0.8)
    return f", the closest is {close[0]!r}" if close else ""


def _oddities(
    path: Path,
    weight_map: Mapping[str, str],
    total_size: int | None,
    tensors: Mapping[str, Placed],
    files: Mapping[str, SafetensorsFile],
) -> tuple[str, ...]:
    found = []
    unlisted = [
        f"{tensor!r} of {name}"
        for name, file in files.items()
        for tensor in file.header.tensors
        if tensor not in weight_map
    ]
    stored = sum(tensor.nbytes for file in files.values() for tensor in file.header.tensors.values())
    listed = sum(placed.tensor.nbytes for placed in tensors.values())
    if unlisted:
        more = f" and {len(unlisted) - 5} more" if len(unlisted) > 5 else ""
        found.append(f"{path}: not listed, and ignored: {', '.join(unlisted[:5])}{more}")
    if total_size is not None and total_size not in (stored, listed):
        found.append(f"{path}: total_size is {total_size}, and the tensors take {listed} bytes; the tensors count")
    return tuple(found)
