"""What a long context costs: `python -m tests.bench.long_context [--tokens N] [--peer-python PYTHON]`.

A prompt of a million tokens is really read by the engine, piece by piece. Then, of one engine and by one program:

- the time of a decode at the end of that prompt over that of one at 1,000 tokens, in turn; the bar is 1.05
- the bytes of a state, of an engine for 2,000 tokens and of one for a million
- the log-probabilities behind the prompt and behind 32 tokens of the answer, against a recurrence in numpy and fp64
  that goes token by token; the bar is 1e-3
- beside it, one token through torch's scaled_dot_product_attention over caches of both lengths, with as many layers and
  channels, in turn with ours; `--peer-python` is the interpreter of an environment with torch for a CPU

The model has fresh weights, but its heads forget within 10 to 10 million tokens, so that the beginning of the prompt
still counts at its end. Medians, with the least time beside each: what else runs makes times longer, never shorter.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from inference.engine.abstract_engine import Choice
from inference.engine.engine import Engine
from inference.engine.sampling_parameters import SamplingParameters
from tests.bench.peers.recurrence_fp64 import Oracle
from training.mixers.ssd import Ssd, SsdConfig
from training.model.config import ModelConfig
from training.model.language_model import LanguageModel

SHORT: Final = 1_000
ANSWER: Final = 32
"""Tokens that are compared behind the prompt."""
PEER: Final = Path(__file__).parent / "peers" / "attention_cache.py"
MIXER: Final = SsdConfig(d_head=32, d_state=32)
CONFIG: Final = ModelConfig(vocab_size=512, d_model=64, n_layers=2, d_feed_forward=172, mixers=(MIXER,))
ASKED: Final = SamplingParameters(temperature=0, logprobs=20)
FORGET_WITHIN: Final = (10.0, 1e7)
"""Tokens, of the first head and of the last."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=1_000_000, help="of the long prompt (default 1,000,000)")
    parser.add_argument("--runs", type=int, default=300, help="decodes at each length (default 300)")
    parser.add_argument("--no-oracle", action="store_true", help="leave out the recurrence in fp64")
    parser.add_argument("--peer-python", help="the interpreter of an environment with torch")
    options = parser.parse_args()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; jax {jax.__version__}")
    model = long_memory(LanguageModel.init(CONFIG, jax.random.key(0)))
    context = options.tokens + options.runs + 2 * ANSWER
    engine = Engine(model, slots=2, context=context, grid=256)
    engine.compile()
    prompt = np.random.default_rng(0).integers(0, CONFIG.vocab_size, options.tokens)
    heard = read(engine, prompt)
    engine.admit(2, ASKED, prompt=prompt[:SHORT].tolist(), start=None)
    while engine.prefill(2).choice is None:
        pass
    heard += [engine.decode([1])[1] for _ in range(ANSWER)]
    if not options.no_oracle:
        against_oracle(model, prompt, heard)
    compare_decodes(engine, options.tokens, options.runs, options.peer_python)
    short = Engine(model, slots=1, context=2 * SHORT)
    for each in (short, engine):
        held = sum(array.nbytes for array in each.pool.state) // (each.limits.slots + 1)
        print(f"state for a context of {each.limits.context:,}: {held:,} bytes a slot")
    print(f"load {os.getloadavg()[0]:.1f}")


def long_memory(model: LanguageModel) -> LanguageModel:
    """The model with heads that forget within few tokens and within very many, and with louder logits."""
    mixer = model.blocks[0].mixer
    assert isinstance(mixer, Ssd)
    steps = jax.nn.softplus(mixer.dt_bias)
    decays = 1 / jnp.geomspace(*FORGET_WITHIN, steps.shape[1])
    slow = eqx.tree_at(lambda each: each.a_log, mixer, jnp.log(decays / steps))
    changed: LanguageModel = eqx.tree_at(
        lambda each: (each.blocks[0].mixer, each.final_norm.weight), model, (slow, model.final_norm.weight * 3)
    )
    return changed


def read(engine: Engine, prompt: np.ndarray) -> list[Choice]:
    """Read the prompt into slot 1; the first token of the answer."""
    began = time.perf_counter()
    engine.admit(1, ASKED, prompt=prompt.tolist(), start=None)
    choice = None
    while choice is None:
        choice = engine.prefill(1).choice
    seconds = time.perf_counter() - began
    print(f"{len(prompt):,} tokens read in {seconds:.1f} s: {len(prompt) / seconds:,.0f} tokens/s")
    return [choice]


def against_oracle(model: LanguageModel, prompt: np.ndarray, heard: list[Choice]) -> None:
    """Print how far the log-probabilities are from those in fp64, at the end of the prompt and behind it."""
    began = time.perf_counter()
    oracle = Oracle(model)
    answered = np.array([choice.token for choice in heard[:-1]])
    logits = oracle.logits_behind(np.concatenate([prompt, answered]), last=len(heard))
    below = logits - logits.max(axis=-1, keepdims=True)
    wanted = below - np.log(np.sum(np.exp(below), axis=-1, keepdims=True))
    far = max(abs(value - wanted[at, token]) for at, choice in enumerate(heard) for token, value in choice.top)
    same = sum(choice.token == np.argmax(row) for choice, row in zip(heard, wanted, strict=True))
    print(
        f"against fp64, which took {time.perf_counter() - began:.0f} s: the 20 likeliest behind {len(heard)} places "
        f"from {len(prompt):,} on differ by {far:.1e} at most (bar 1e-3; logits spread by {logits.std():.1f}); "
        f"{same} of {len(heard)} choices are the same"
    )
    if not far <= 1e-3:
        sys.exit("tests.bench.long_context: the engine is not what fp64 says")


def compare_decodes(engine: Engine, tokens: int, runs: int, peer_python: str | None) -> None:
    """Print the times of one token more at both lengths, ours and those of the peer, all in turn."""
    calls: dict[str, Callable[[], float]] = {
        "ours, long": partial(timed, engine, 1),
        "ours, short": partial(timed, engine, 2),
    }
    if peer_python is None:
        show(in_turn(calls, runs), tokens, "ours")
        return
    d_head = MIXER.d_head
    command = [
        peer_python,
        str(PEER),
        f"--layers={CONFIG.n_layers}",
        f"--heads={CONFIG.d_model // d_head}",
        f"--d={d_head}",
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        calls["torch, long"] = partial(ask, peer, tokens)
        calls["torch, short"] = partial(ask, peer, SHORT)
        times = in_turn(calls, runs)
        peer.communicate()
    for name in ("ours", "torch"):
        show(times, tokens, name)
    over = median(times["torch, long"]) / median(times["ours, long"])
    cache = 2 * 4 * CONFIG.d_model * CONFIG.n_layers * tokens
    print(f"torch's attention alone over our whole model at {tokens:,}: {over:,.1f}; its cache is {cache:,} bytes")


def show(times: dict[str, list[float]], tokens: int, name: str) -> None:
    """Print the two lengths of one of them."""
    long, short = times[f"{name}, long"], times[f"{name}, short"]
    print(
        f"{name}: a token at {tokens:,} {median(long) * 1e3:.3f} ms (least {min(long) * 1e3:.3f}), at {SHORT:,} "
        f"{median(short) * 1e3:.3f} ms (least {min(short) * 1e3:.3f}): {median(long) / median(short):.3f}"
        + (" (bar 1.05)" if name == "ours" else "")
    )


def timed(engine: Engine, slot: int) -> float:
    """Seconds of one token more."""
    began = time.perf_counter()
    engine.decode([slot])
    return time.perf_counter() - began


def ask(peer: subprocess.Popen[str], tokens: int) -> float:
    """The seconds that the peer says it took."""
    assert peer.stdin is not None
    assert peer.stdout is not None
    print(tokens, file=peer.stdin, flush=True)
    answer = peer.stdout.readline()
    if not answer:
        sys.exit(f"tests.bench.long_context: the peer ended with {peer.wait()}; its words stand above")
    return float(answer)


def in_turn(calls: dict[str, Callable[[], Any]], runs: int) -> dict[str, list[float]]:
    """What each says that it took, round after round, forwards and backwards; two rounds first that do not count."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(runs + 2):
        for name in list(calls) if turn % 2 else reversed(list(calls)):
            seconds[name].append(calls[name]())
    return {name: each[2:] for name, each in seconds.items()}


if __name__ == "__main__":
    main()
