"""`python -m tests.serving_demo`, behind `make serve-demo`: a model is exported, served, and asked by OpenAI's client.

It is that of `make train-demo`, where there is one; otherwise a smaller run of a minute makes one in runs/serve-demo.
The server is a process of its own, on a free port of this machine, and is told to stop at the end as Kubernetes would.
"""

from __future__ import annotations

import contextlib
import itertools
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import openai

TRAINED: Final = Path("runs/demo/checkpoints")
SMALL: Final = Path("runs/serve-demo")
STEPS: Final = 90
"""Of the smaller run: a minute on two cores."""
LONG: Final = 16_384
"""Tokens of the long prompt."""
LINE: Final = "ROMEO:\n"


def main() -> int:
    """0 where everything was answered and the server has ended well."""
    with tempfile.TemporaryDirectory() as folder:
        export = Path(folder) / "shakespeare"
        ran("export", str(checkpoints()), str(export))
        with served(export) as (address, process):
            client = openai.OpenAI(base_url=f"{address}/v1", api_key="none")
            print(f"\n{address} serves {', '.join(model.id for model in client.models.list())}\n", flush=True)
            speak(client)
            constant(client)
            process.send_signal(signal.SIGTERM)
            code = process.wait(60)
    print(f"\nSIGTERM: drained, exit code {code}. Serve your own: python -m inference --weights ./export --port 8000")
    return code


def checkpoints() -> Path:
    """A folder of checkpoints of a model that has learnt something."""
    if TRAINED.is_dir() and any(TRAINED.glob("*/MANIFEST.json")):
        return TRAINED
    print("make train-demo has not been run here: training for a minute ...", flush=True)
    small = ["--set", f"steps={STEPS}", "--set", "name=serve-demo", "--run-dir", str(SMALL)]
    ran("--config", "training/configs/demo.yaml", *small)
    return SMALL / "checkpoints"


def ran(*arguments: str) -> None:
    """One command of the trainer. Raises SystemExit with its exit code where it fails."""
    done = subprocess.run([sys.executable, "-m", "training", *arguments], check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


@contextlib.contextmanager
def served(export: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a server of the export, and its process, whose words are passed on."""
    order = [sys.executable, "-m", "inference", "--weights", str(export), "--port", "0", "--slots", "4"]
    with subprocess.Popen(order, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        words = process.stderr
        address = ""
        for line in words:
            print(line, end="", flush=True)
            address = next((word for word in line.split() if word.startswith("http://")), "")
            if address:
                break
        else:
            raise SystemExit(process.wait())
        passing_on = threading.Thread(target=lambda: [print(line, end="", flush=True) for line in words], daemon=True)
        passing_on.start()
        try:
            wait_until_ready(address)
            yield address, process
        finally:
            process.terminate()
            process.wait(60)
            passing_on.join(10)


def wait_until_ready(address: str) -> None:
    """Until the probe of a load balancer would send requests. Raises SystemExit where that takes too long."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/readyz"):
            return
        time.sleep(0.2)
    raise SystemExit("the server did not become ready")


def speak(client: openai.OpenAI) -> None:
    """Print what the model goes on with, as it comes."""
    print(LINE, end="", flush=True)
    answer = client.completions.create(
        model=only_model(client), prompt=LINE, max_tokens=80, temperature=0.8, seed=7, stream=True
    )
    for event in answer:
        print(event.choices[0].text, end="", flush=True)
    print("\n")


def constant(client: openai.OpenAI) -> None:
    """Print what a token costs behind a short and a long prompt, and what a kept state saves."""
    long = [token for _ in range(LONG // 16) for token in range(300, 316)]
    short_first, short_gap, _ = timed(client, long[:64])
    first, gap, _ = timed(client, long)
    again, _, cached = timed(client, long)
    print("                          first token      each further token")
    print(f"  behind 64 tokens        {1e3 * short_first:8.1f} ms {1e3 * short_gap:15.2f} ms")
    print(f"  behind {LONG:,} tokens    {1e3 * first:8.1f} ms {1e3 * gap:15.2f} ms")
    print(f"  the same once more      {1e3 * again:8.1f} ms   {cached:,} tokens came from a kept state")


def timed(client: openai.OpenAI, prompt: Sequence[int]) -> tuple[float, float, int]:
    """Seconds to the first token, the median between two further ones, and tokens of the prompt that were kept."""
    began = time.perf_counter()
    answer = client.completions.create(
        model=only_model(client),
        prompt=list(prompt),
        max_tokens=32,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
        extra_body={"ignore_eos": True},
    )
    arrivals, cached = [began], 0
    for event in answer:
        if event.choices:
            arrivals.append(time.perf_counter())
        elif event.usage and event.usage.prompt_tokens_details:
            cached = event.usage.prompt_tokens_details.cached_tokens or 0
    gaps = [later - earlier for earlier, later in itertools.pairwise(arrivals[1:])]
    return arrivals[1] - began, statistics.median(gaps), cached


def only_model(client: openai.OpenAI) -> str:
    """The name of what is served."""
    return next(iter(client.models.list())).id


if __name__ == "__main__":
    sys.exit(main())
