"""Safetensors files made by hand, and all tensors of files as the reader reads them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from inference.weights.file_access import ReadAt
from inference.weights.plan import Target, make_target
from inference.weights.reading import Reader
from inference.weights.reading_style import ReadingStyle
from inference.weights.safetensors import SafetensorsFile
from inference.weights.sharded_index import Placed
from inference.weights.watchdog import Patience


def made(header: Any, data: bytes = b"", *, padding: str = "") -> bytes:
    """A file with this header, text or what is to be JSON, and this data."""
    text = header if isinstance(header, bytes) else (json.dumps(header, separators=(",", ":")) + padding).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype: str, shape: Sequence[int], begin: int, end: int) -> dict[str, Any]:
    """Of a tensor in a header."""
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def whole_targets(file: SafetensorsFile) -> list[Target]:
    """Every tensor of `file`, whole, for one device."""
    targets = []
    for name, tensor in file.header.tensors.items():
        assert tensor.dtype.numpy is not None
        box = tuple((0, size) for size in tensor.shape)
        placed = Placed(file=file, tensor=tensor)
        targets.append(make_target(name, placed, tensor.shape, tensor.dtype.numpy, {"device": box}))
    return targets


def read_all(
    files: Sequence[SafetensorsFile],
    style: ReadingStyle,
    *,
    patience: Patience | None = None,
    read_at: ReadAt = os.preadv,
) -> dict[str, NDArray[Any]]:
    """All tensors of files by their name."""
    found: dict[str, NDArray[Any]] = {}
    targets = [target for file in files for target in whole_targets(file)]
    reader = Reader(targets, style, patience=patience, read_at=read_at)
    reader.run(lambda target, boxes: found.update({target.name: boxes[0]}), lambda _: None)
    return found


def write_index(folder: Path, weight_map: Mapping[str, Any], **metadata: Any) -> None:
    """The index of a sharded model."""
    content = {"metadata": metadata, "weight_map": dict(weight_map)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(content))
