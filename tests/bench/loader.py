"""How fast batches are read, beside grain: `python -m tests.bench.loader --peer PYTHON`.

PYTHON is one that has grain, in an environment of its own:

    uv venv /tmp/grain && uv pip install --python /tmp/grain/bin/python grain numpy

Both read the same prepared files, three sources mixed 6:3:1 and packed best-fit, and give the same arrays: tokens and
segments, int32, (batch, sequence + 1). A measurement is one pass over as many rows as there are, in a process of its
own; the two take turns. What each does for it:

- ours: mixture, a permutation for every epoch, and the crc32c of every block that is touched for the first time. In
  the first pass that is nearly every block once: the checksums are in its time in full; later epochs have none left.
- grain: `MapDataset.source(rows).shuffle().repeat()` of each source, `mix`, `batch`, `to_iter_dataset`, with 0, 4 and
  16 threads (16 is its default). It gets rows that are packed already, and checks no bytes.

Seek: all files open, from another step to the first batch at step 1e9; for grain a new iterator, `set_state`, `next`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from training.model.tokenizer import Tokenizer

ROOT = Path(__file__).parents[2]
SHARES = (0.6, 0.3, 0.1)
FAR = 10**9
THREADS = (0, 4, 16)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", metavar="PYTHON", help="a Python that has grain; without, only ours is measured")
    parser.add_argument("--tokens", type=int, default=40_000_000, help="of all sources (default 40,000,000)")
    parser.add_argument("--batch", type=int, default=32, help="rows (default 32)")
    parser.add_argument("--sequence", type=int, default=1024, help="tokens that a row predicts (default 1024)")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each (default 5)")
    parser.add_argument("--measure", nargs=2, metavar=("WHO", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        who, folder = options.measure
        measure = measure_ours if who == "ours" else measure_grain
        print(json.dumps(measure(Path(folder), options.batch)))
    else:
        report(options)


def report(options: argparse.Namespace) -> None:
    """Both in turns, and their medians."""
    pythons = {"ours": sys.executable, **({"grain": options.peer} if options.peer else {})}
    found: dict[str, list[dict[str, float]]] = {who: [] for who in pythons}
    with tempfile.TemporaryDirectory() as folder:
        for number, share in enumerate(SHARES):
            write_source(Path(folder, str(number)), int(share * options.tokens), options.sequence, seed=number)
        for _ in range(options.rounds):
            for who, python in pythons.items():
                command = [python, __file__, "--measure", who, folder, "--batch", str(options.batch)]
                done = subprocess.run(
                    command, check=True, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)}
                )
                found[who].append(json.loads(done.stdout.splitlines()[-1]))
    print(f"batches of {options.batch} x {options.sequence + 1}, {options.tokens:,} tokens, median of {options.rounds}")
    medians = {
        who: {key: statistics.median(one[key] for one in each) for key in each[0]} for who, each in found.items()
    }
    for who, median in medians.items():
        for key, value in median.items():
            shown = f"{value * 1e3:8.2f} ms" if "seek" in key else f"{value / 1e6:8.1f} M tokens/s"
            print(f"  {who:6} {key:18} {shown}")
    if "grain" in medians:
        compare(medians["ours"], medians["grain"])
    tokenizer_runs()


def compare(ours: dict[str, float], peer: dict[str, float]) -> None:
    """Print the ratios that count."""
    best = max(value for key, value in peer.items() if "seek" not in key)
    print(f"  tokens/s, every byte checked: {ours['first epoch'] / best:.1f} times grain at its best (bar 2)")
    default, least = (ours["seek"] / peer[f"seek, {threads} threads"] for threads in (THREADS[-1], 0))
    print(f"  seek: {default:.4f} of the time of grain's default (bar 0.1), {least:.2f} of that without threads")


def write_source(folder: Path, tokens: int, sequence: int, *, seed: int) -> None:
    """A prepared folder of random tokens, in documents of lognormal length."""
    import hashlib

    from training.data.manifest import MANIFEST, TOKENIZER, Manifest, SplitEntry
    from training.data.packing import best_fit
    from training.data.shards import write_shards

    random = np.random.default_rng(seed)
    lengths = np.maximum(1, random.lognormal(6, 1, tokens // 660)).astype(np.int64)
    stream = random.integers(0, 32_000, int(lengths.sum()), dtype=np.uint16)
    packing = best_fit(lengths, sequence + 1)
    folder.mkdir()
    (folder / TOKENIZER).write_bytes(b"{}")
    shards = write_shards(folder, "train", stream, packing, width=sequence + 1, padding=0)
    nothing = SplitEntry(documents=0, tokens=0, rows=0, shards=())
    manifest = Manifest(
        sequence_length=sequence,
        packing="best-fit",
        dtype="<u2",
        vocab_size=32_000,
        tokenizer_sha256=hashlib.sha256(b"{}").hexdigest(),
        recipe="",
        train=SplitEntry(documents=len(lengths), tokens=len(stream), rows=packing.rows, shards=shards),
        validation=nothing,
        sources=(),
    )
    (folder / MANIFEST).write_bytes(manifest.to_json())


def measure_ours(folder: Path, batch_size: int) -> dict[str, float]:
    """Tokens a second, and seconds to seek in files that are open and not checked yet."""
    from training.data.batches import BatchSource
    from training.data.config import DataConfig, SourceConfig

    places = [SourceConfig(path=str(folder / str(i)), weight=share) for i, share in enumerate(SHARES)]
    config = DataConfig(sources=tuple(places))
    source = BatchSource(config, 0, batch_size)
    steps = rows_of(folder) // batch_size
    rates = []
    for _ in range(2):  # the first pass checks, the second has nothing left to check
        began = time.perf_counter()
        for step in range(steps):
            batch = source.batch(step)
        rates.append(steps * batch.tokens.size / (time.perf_counter() - began))
    source = BatchSource(config, 0, batch_size)
    seek = median_seconds(lambda step: source.batch(step))
    return {"first epoch": rates[0], "later epochs": rates[1], "seek": seek}


def median_seconds(seek: Callable[[int], object]) -> float:
    """Of five ways to steps about 1e9."""
    seconds = []
    for step in range(FAR, FAR + 500_000, 100_000):
        began = time.perf_counter()
        seek(step)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def measure_grain(folder: Path, batch_size: int) -> dict[str, float]:
    """Tokens a second with each number of threads, and seconds to seek."""
    import grain

    def pipeline(threads: int) -> Any:
        parts = [
            grain.MapDataset.source(Rows(folder / str(number))).shuffle(seed=number).repeat()
            for number in range(len(SHARES))
        ]
        mixed = grain.MapDataset.mix(parts, weights=list(SHARES)).batch(batch_size)
        # The buffer that each number of threads has by default: 500 batches, or none.
        return mixed.to_iter_dataset(grain.ReadOptions(num_threads=threads, prefetch_buffer_size=500 if threads else 0))

    def first_at(step: int) -> object:
        iterator = iter(opened)
        iterator.set_state({**iterator.get_state(), "next_index": step})
        return next(iterator)

    found = {}
    steps = rows_of(folder) // batch_size
    for threads in THREADS:
        opened = pipeline(threads)
        iterator = iter(opened)
        began = time.perf_counter()
        for _ in range(steps):
            batch = next(iterator)
        found[f"{threads} threads"] = steps * batch["tokens"].size / (time.perf_counter() - began)
        found[f"seek, {threads} threads"] = median_seconds(first_at)
    return found


class Rows:
    """What grain reads from: the rows of a prepared folder, mapped, without looking at a checksum."""

    def __init__(self, folder: Path) -> None:
        self.tokens, self.begins, self.lengths = [], [], []
        for index in read_indices(folder):
            rows, width = index["rows"], index["width"]
            self.tokens.append(np.memmap(folder / f"{index['name']}.tokens", index["dtype"], "r", shape=(rows, width)))
            words = np.fromfile(folder / f"{index['name']}.segments", "<u4")
            self.begins.append(words[: rows + 1].tolist())
            self.lengths.append(words[rows + 1 :])
        self.numbers = np.append(np.arange(1, 1 << 16, dtype=np.int32), np.int32(0))

    def __len__(self) -> int:
        return sum(map(len, self.tokens))

    def __getitem__(self, row: int) -> dict[str, Any]:
        shard = 0
        while row >= len(self.tokens[shard]):
            row -= len(self.tokens[shard])
            shard += 1
        lengths = self.lengths[shard][self.begins[shard][row] : self.begins[shard][row + 1]]
        numbers = self.numbers[np.arange(len(lengths))]
        numbers[-1] = 0
        return {"tokens": self.tokens[shard][row].astype(np.int32), "segments": np.repeat(numbers, lengths)}


def read_indices(folder: Path) -> Iterator[dict[str, Any]]:
    """The indices of the training shards of a prepared folder."""
    for path in sorted(folder.glob("train-*.json")):
        yield {"name": path.stem, **json.loads(path.read_bytes())}


def rows_of(folder: Path) -> int:
    """Rows of all sources."""
    return sum(index["rows"] for source in sorted(folder.iterdir()) for index in read_indices(source))


def tokenizer_runs() -> None:
    """How the time of the tokenizer grows with a run of equal characters."""
    from pydoc_data.topics import topics

    from training.model.tokenizer import train_tokenizer

    tokenizer = train_tokenizer(topics.values(), 2048)
    for character in "^a ":
        least = [
            min(encoding_seconds(tokenizer, character * length) for _ in range(3)) for length in (100_000, 1_000_000)
        ]
        said = f"{least[1]:.2f} CPU s, {least[1] / least[0]:.1f} times that of 100,000 (bar 20)"
        print(f"  tokenizer, {character!r} x 1,000,000: {said}")


def encoding_seconds(tokenizer: Tokenizer, text: str) -> float:
    """CPU seconds: other work on the machine is not in them."""
    began = time.process_time()
    tokenizer.encode(text)
    return time.process_time() - began


if __name__ == "__main__":
    main()
