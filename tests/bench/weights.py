"""Loading a model beside the library of the format: `python -m tests.bench.weights [--bytes N] [--rounds N]`.

A model with BF16 weights of at least `--bytes` is written once, all its pages are dropped from the cache of the system
before every load (`--warm` leaves them there), and two ways of getting it onto the CPU device take turns, each in a
process of its own that has imported everything and used JAX before the clock starts:

- spotrail: `load_model`, from the folder to the model, read in the style of a disk;
- safetensors: `safetensors.numpy.load_file` and `jax.device_put`, from the file to the arrays (`ml_dtypes` imported
  first, without which it does not read BF16).

Seconds of processors are those of all threads of the process, user and system: other processes bend them less. Peak
memory is what the process holds at most above what it held at the start (VmHWM, reset through clear_refs). Both
end with the same bits: a checksum of all arrays, taken behind the clock, is compared. What is written is deleted.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FIELDS = ("seconds", "processors", "peak")
FASTER, LEANER = 1.8, 1.15
"""Times the speed of the library, and of the size of the file in memory, that are asked for."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=float, default=1.5e9, help="of weights at least (default: 1.5e9)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary folder)")
    parser.add_argument("--warm", action="store_true", help="leave the file in the cache of the system")
    parser.add_argument("--load", choices=("spotrail", "safetensors"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        print(json.dumps(measured(options)))
        return
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="weights-bench-") as folder:
        size = write_model(Path(folder) / "model", int(options.bytes))
        report(options, Path(folder) / "model", size)


def report(options: argparse.Namespace, folder: Path, size: int) -> None:
    """Both ways in turns."""
    state = "warm" if options.warm else "cold"
    print(f"{size / 1e9:.3f} GB of BF16, {state}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    print(f"{'':12}  seconds   GB/s  processors   peak memory above start (of the file)", flush=True)
    found: dict[str, list[Mapping[str, Any]]] = {"spotrail": [], "safetensors": []}
    for number in range(options.rounds):
        for name in list(found)[:: 1 if number % 2 else -1]:
            if not options.warm:
                drop_pages(folder)
            result = loaded(name, folder)
            found[name].append(result)
            print(row(name, result, size), flush=True)
    (checksum,) = {result["checksum"] for results in found.values() for result in results}
    medians = {
        name: {field: statistics.median(each[field] for each in results) for field in FIELDS}
        for name, results in found.items()
    }
    print(f"medians of {options.rounds} rounds; both have checksum {checksum:08x}")
    for name in found:
        print(row(name, medians[name], size))
    ratio = medians["safetensors"]["seconds"] / medians["spotrail"]["seconds"]
    share = medians["spotrail"]["peak"] / size
    print(f"{ratio:.2f} times as fast: {verdict(ratio >= FASTER)} {FASTER}")
    print(f"peak of {share:.3f} times the file: {verdict(share <= LEANER)} {LEANER}")


def row(name: str, result: Mapping[str, Any], size: int) -> str:
    """Of the table."""
    seconds, processors, peak = (result[field] for field in FIELDS)
    rates = f"{seconds:8.2f} {size / 1e9 / seconds:6.2f} {processors:11.2f}"
    return f"{name:12} {rates} {peak / 1e9:8.3f} GB ({peak / size:.3f})"


def verdict(met: bool) -> str:
    """Whether a bar is met."""
    return "meets" if met else "MISSES"


def loaded(name: str, folder: Path) -> Any:
    """What a process of its own measures."""
    command = [sys.executable, "-m", "tests.bench.weights", "--load", name, "--folder", str(folder)]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """One load, in this process."""
    import jax
    import ml_dtypes  # noqa: F401 (numpy knows BF16 by it)
    import numpy as np
    from safetensors.numpy import load_file

    from inference.weights.loading import load_model
    from inference.weights.sources.resolving import disk_style
    from training.model.paths import dotted

    jax.device_put(np.ones(1 << 20)).block_until_ready()
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    began, busy = time.perf_counter(), time.process_time()
    if options.load == "spotrail":
        loaded = load_model(options.folder, disk_style())
        arrays = {dotted(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(loaded.model)}
    else:
        tensors = load_file(options.folder / "model.safetensors")
        arrays = {name: jax.device_put(tensor) for name, tensor in tensors.items()}
        for array in arrays.values():
            array.block_until_ready()
    seconds, processors = time.perf_counter() - began, time.process_time() - busy
    peak = memory("VmHWM") - before
    checksum = 0
    for name in sorted(arrays):
        checksum = zlib.crc32(np.asarray(arrays[name]).reshape(-1).view(np.uint8).data, checksum)
    return {"seconds": seconds, "processors": processors, "peak": peak, "checksum": checksum}


def memory(field: str) -> int:
    """Bytes, as the kernel counts them."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


def drop_pages(folder: Path) -> None:
    """Take every file of the folder out of the cache of the system."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def write_model(folder: Path, least: int) -> int:
    """A model whose weights take `least` bytes or a layer more; how many."""
    import ml_dtypes
    import numpy as np

    from training.mixers.linear import LinearConfig
    from training.model.config import ModelConfig
    from training.model.export_names import tensor_shapes
    from training.model.tokenizer import train_tokenizer

    def config_of(layers: int) -> ModelConfig:
        return ModelConfig(
            vocab_size=16384, d_model=1536, n_layers=layers, d_feed_forward=4096, mixers=(LinearConfig(n_heads=12),)
        )

    def bytes_of(layers: int) -> int:
        return sum(2 * math.prod(each.shape) for each in tensor_shapes(config_of(layers)).values())

    one, two = bytes_of(1), bytes_of(2)
    config = config_of(max(1, 1 + math.ceil((least - one) / (two - one))))
    folder.mkdir()
    (folder / "config.json").write_text(config.to_json())
    (folder / "tokenizer.json").write_bytes(train_tokenizer(["bench"], 300).to_json())
    block = np.random.default_rng(0).normal(size=1 << 23).astype(np.float32)
    header, end = {}, 0
    shapes = tensor_shapes(config)
    kinds = {name: "F32" if "norm" in name or "decay" in name else "BF16" for name in shapes}
    for name, each in shapes.items():
        size = math.prod(each.shape) * (4 if kinds[name] == "F32" else 2)
        header[name] = {"dtype": kinds[name], "shape": each.shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for number, (name, each) in enumerate(shapes.items()):
            numbers = np.resize(np.roll(block, number), math.prod(each.shape))
            file.write(numbers.astype(np.float32 if kinds[name] == "F32" else ml_dtypes.bfloat16).tobytes())
        file.flush()
        os.fsync(file.fileno())
    return end


if __name__ == "__main__":
    main()
