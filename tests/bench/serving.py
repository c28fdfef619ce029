"""What serving costs around the model: `python -m tests.bench.serving [--peer-python PYTHON] [--only NAME ...]`.

Servers are started as a user starts them, on an export with random weights, and are asked over loopback:

- streams   tokens/s of 32 streams at once, from a server of 32 slots and from one of a single slot
- server    tokens/s of the server with 32 streams beside those of the engine alone, the same answers
- prefix    time to the first token behind a prefix of 4,096 tokens that is kept, and behind one that is not
- peer      tokens/s of `generate` of transformers at batch 32, a Mamba-2 of about the same size; `--peer-python` is the
            interpreter of an environment with torch and transformers

What is compared takes turns; medians are printed, with their ratio. Peer and server run on all cores of the machine,
and the client on the same cores.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from pydoc_data.topics import topics
from typing import Final

import httpx
import jax
import numpy as np

from inference.engine.engine import Engine
from inference.engine.sampling_parameters import SamplingParameters
from training.export import write_export
from training.mixers.ssd import SsdConfig
from training.model.config import ModelConfig
from training.model.language_model import LanguageModel
from training.model.tokenizer import train_tokenizer

ROOT: Final = Path(__file__).parent.parent.parent
PEER: Final = ROOT / "tests" / "bench" / "peers" / "mamba2_generate.py"
STREAMS: Final = 32
GRID: Final = 256
PROMPT: Final = 16
"""Tokens of a short prompt."""
PREFIX: Final = 4096
SIZE: Final = {"hidden": 512, "layers": 8, "vocabulary": 4096}
"""About 27 million parameters."""
WHAT: Final = ("streams", "server", "prefix", "peer")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--rounds", type=int, default=3, help="of each (default 3)")
    parser.add_argument("--tokens", type=int, default=128, help="of an answer (default 128)")
    parser.add_argument("--only", nargs="*", choices=WHAT, default=WHAT, help="what to measure (default all)")
    parser.add_argument("--peer-python", help="the interpreter of an environment with torch and transformers")
    options = parser.parse_args()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; jax {jax.__version__}", flush=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as servers:
        export = Path(folder) / "export"
        model = write_model(export)
        print(f"{sum(leaf.size for leaf in jax.tree.leaves(model)):,} parameters", flush=True)
        compiled = Path(folder) / "compiled"
        wide = servers.enter_context(server(export, STREAMS, compiled))
        if "streams" in options.only:
            with server(export, 1, compiled) as narrow:
                one = [lambda: streamed(narrow, 4, options.tokens)]
                all_of_them = [lambda: streamed(wide, STREAMS, options.tokens)]
                compare(f"{STREAMS} streams", all_of_them[0], "a server with one slot", one[0], options.rounds)
        if "server" in options.only:
            bare = bare_engine(model)
            compare(
                f"server, {STREAMS} streams",
                lambda: streamed(wide, STREAMS, options.tokens),
                "the engine alone",
                lambda: decoded(bare, options.tokens),
                options.rounds,
            )
        if "prefix" in options.only:
            prefix(wide, options.rounds)
        if "peer" in options.only and options.peer_python:
            with peer(options.peer_python, options.tokens) as ask:
                compare(
                    f"{STREAMS} streams",
                    lambda: streamed(wide, STREAMS, options.tokens),
                    "transformers, batch 32",
                    ask,
                    options.rounds,
                )
    print(f"load {os.getloadavg()[0]:.1f}")


def write_model(folder: Path) -> LanguageModel:
    """An export with random weights."""
    tokenizer = train_tokenizer(topics.values(), SIZE["vocabulary"])
    assert tokenizer.vocab_size == SIZE["vocabulary"]
    config = ModelConfig(
        vocab_size=SIZE["vocabulary"],
        d_model=SIZE["hidden"],
        n_layers=SIZE["layers"],
        mixers=(SsdConfig(d_state=64),),
        d_feed_forward=4 * SIZE["hidden"] // 3,
    )
    model = LanguageModel.init(config, jax.random.key(0))
    write_export(model, tokenizer.to_json(), folder)
    return model


@contextlib.contextmanager
def server(export: Path, slots: int, compiled: Path) -> Iterator[str]:
    """The address of a server that is ready."""
    order = [sys.executable, "-m", "inference", "--weights", str(export), "--port", "0", "--slots", str(slots)]
    order += ["--context", "16384", "--grid", str(GRID), "--compile-cache", str(compiled), "--model-name", "bench"]
    with subprocess.Popen(order, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            address = next(word for line in process.stderr for word in line.split() if word.startswith("http://"))
            wait_until_ready(address, process)
            yield address
        finally:
            process.terminate()
            process.communicate(timeout=60)


def wait_until_ready(address: str, process: subprocess.Popen[str]) -> None:
    """Until requests are answered."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{address}/readyz").status_code == 200:
                return
        time.sleep(0.1)
    raise SystemExit(f"tests.bench.serving: the server did not become ready: {process.poll()}")


def streamed(address: str, streams: int, tokens: int) -> float:
    """Tokens/s of all streams together, from the first request to the last event."""
    return asyncio.run(_streamed(address, streams, tokens))


async def _streamed(address: str, streams: int, tokens: int) -> float:
    limits = httpx.Limits(max_connections=streams)
    async with httpx.AsyncClient(base_url=address, timeout=600, limits=limits) as client:
        began = time.perf_counter()
        counts = await asyncio.gather(*(_one_stream(client, number, tokens) for number in range(streams)))
        return sum(counts) / (time.perf_counter() - began)


async def _one_stream(client: httpx.AsyncClient, number: int, tokens: int) -> int:
    body = completion(short_prompt(number), tokens) | {"stream": True, "stream_options": {"include_usage": True}}
    last = b""
    async with client.stream("POST", "/v1/completions", json=body) as answer:
        answer.raise_for_status()
        async for part in answer.aiter_raw():
            last = (last + part)[-2000:]
    events = [line for line in last.splitlines() if line.startswith(b"data: {")]
    return int(json.loads(events[-1][6:])["usage"]["completion_tokens"])


def completion(prompt: Sequence[int], tokens: int) -> dict[str, object]:
    """The body of a request for exactly so many tokens."""
    return {"model": "bench", "prompt": list(prompt), "max_tokens": tokens, "temperature": 1, "seed": 1} | {
        "ignore_eos": True
    }


def short_prompt(number: int) -> list[int]:
    """Another one for every number."""
    return np.random.default_rng(number).integers(300, SIZE["vocabulary"], PROMPT).tolist()


def bare_engine(model: LanguageModel) -> Engine:
    """The engine that a server drives, without one."""
    engine = Engine(model, slots=STREAMS, context=16_384, grid=GRID)
    engine.compile()
    return engine


def decoded(engine: Engine, tokens: int) -> float:
    """Tokens/s of the same answers, from the first admission to the last token."""
    began = time.perf_counter()
    slots = list(engine.free_slots())
    for slot in slots:
        engine.admit(slot, SamplingParameters(seed=1), prompt=short_prompt(slot - 1), start=None)
        engine.prefill(slot)
    for _ in range(tokens - 1):
        engine.decode(slots)
    for slot in slots:
        engine.release(slot)
    return len(slots) * tokens / (time.perf_counter() - began)


def prefix(address: str, rounds: int) -> None:
    """Print the time to the first token with and without a kept prefix."""
    draw = np.random.default_rng(0)
    cold, warm = [], []
    for _ in range(rounds + 1):
        shared = draw.integers(300, SIZE["vocabulary"], PREFIX).tolist()
        for times in (cold, warm):
            times.append(first_token(address, [*shared, *draw.integers(300, SIZE["vocabulary"], 32).tolist()]))
    without, kept = statistics.median(cold[1:]), statistics.median(warm[1:])
    print(
        f"\nfirst token behind {PREFIX:,} + 32 tokens: {1e3 * without:.1f} ms; behind a kept prefix {1e3 * kept:.1f} ms"
    )
    print(f"  ratio {without / kept:.1f}")


def first_token(address: str, prompt: Sequence[int]) -> float:
    """Seconds from the request to the first event that has text, or the end."""
    began = time.perf_counter()
    with httpx.stream("POST", f"{address}/v1/completions", json=completion(prompt, 2) | {"stream": True}) as answer:
        answer.raise_for_status()
        parts = answer.iter_raw()
        next(part for part in parts if part.startswith(b"data:"))
        seconds = time.perf_counter() - began
        for _ in parts:
            pass
    return seconds


@contextlib.contextmanager
def peer(python: str, tokens: int) -> Iterator[Callable[[], float]]:
    """A function that has the peer generate, and gives its tokens/s."""
    order = [python, str(PEER), "--batch", str(STREAMS), "--prompt", str(PROMPT), "--tokens", str(tokens)]
    for name, size in SIZE.items():
        order += [f"--{name}", str(size)]
    with subprocess.Popen(order, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        send, receive = process.stdin, process.stdout
        print(f"peer: {receive.readline().strip()}", flush=True)

        def ask() -> float:
            print("generate", file=send, flush=True)
            return float(receive.readline())

        yield ask
        process.communicate()


def compare(one: str, ask_one: Callable[[], float], other: str, ask_other: Callable[[], float], rounds: int) -> None:
    """Print the tokens/s of two that take turns; one round first that does not count."""
    rates: Mapping[str, list[float]] = {one: [], other: []}
    for number in range(rounds + 1):
        for name, ask in ((one, ask_one), (other, ask_other)):
            rate = ask()
            if number:
                rates[name].append(rate)
    medians = {name: statistics.median(each) for name, each in rates.items()}
    print()
    for name, each in rates.items():
        print(f"  {name:28} {medians[name]:9.1f} tokens/s  ({', '.join(f'{rate:.1f}' for rate in sorted(each))})")
    print(f"  ratio {medians[one] / medians[other]:.2f}", flush=True)


if __name__ == "__main__":
    main()
