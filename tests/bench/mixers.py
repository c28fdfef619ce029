"""How fast linear attention is, chunk by chunk: `python -m tests.bench.mixers [--peer-python PYTHON]`.

Three figures, in fp32 with 8 heads of 128 channels:

- the share of the rate of this machine at its own shapes: 4NCd + 4Nd² operations a head over the median time, against
  the four batched products of exactly these shapes by themselves, measured in turn with it
- how the time grows from 16k to 64k tokens; 4 is linear
- the scalar decay beside the op of jax-linear-attention 0.1.0, in a process of its own, in turn with ours;
  `--peer-python` is the interpreter of an environment with Python 3.12 and `jax-linear-attention==0.1.0`

Medians; the least time is printed beside each, since another process on the machine makes times longer, never shorter.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from training.mixers.chunkwise import chunkwise

HEADS: Final = 8
D: Final = 128
PEER: Final = Path(__file__).parent / "peers" / "linear_attention.py"


class Times(NamedTuple):
    """Seconds of the same call, run so many times."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.seconds)

    def __str__(self) -> str:
        return f"{self.median * 1e3:8.1f} ms (least {min(self.seconds) * 1e3:.1f})"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--runs", type=int, default=15, help="runs of each call (default 15)")
    parser.add_argument("--peer-python", help="the interpreter of the environment of jax-linear-attention")
    options = parser.parse_args()
    print(
        f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; jax {jax.__version__} on {jax.default_backend()}"
    )
    for chunk in (64, 128):
        share_of_rate(4096, chunk, options.runs)
    growth(options.runs)
    if options.peer_python:
        beside_peer(options.peer_python, options.runs)
    print(f"load {os.getloadavg()[0]:.1f}")


def share_of_rate(tokens: int, chunk: int, runs: int) -> None:
    """Print the operations a second of the whole against those of its products alone."""
    given = operands(tokens)
    segments = jnp.ones((1, tokens), jnp.int32)
    steady = jnp.full(HEADS, -0.05)
    attention = partial(chunkwise, chunk=chunk)
    calls = {
        "products alone": bound(products, *product_operands(tokens, chunk)),
        "decay a token": bound(attention, *given),
        "decay a token, documents": bound(partial(attention, segments=segments), *given),
        "decay a head": bound(attention, *given[:3], steady),
        "and backward": bound(slopes(attention), *given),
    }
    operations = HEADS * (4 * tokens * chunk * D + 4 * tokens * D * D)
    times = in_turn(calls, runs)
    print(f"\n{tokens} tokens in chunks of {chunk}:")
    for name, each in times.items():
        rate, share = operations / each.median / 1e9, times["products alone"].median / each.median
        least = min(times["products alone"].seconds) / min(each.seconds)
        print(f"  {name:26}{each} {rate:7.1f} GFLOP/s {share:7.0%} (of least times {least:.0%})")


def growth(runs: int) -> None:
    """Print the time of 64k tokens over that of 16k."""
    calls = {}
    for tokens in (16_384, 65_536):
        given = operands(tokens)
        calls[f"{tokens} forward"] = bound(chunkwise, *given)
        calls[f"{tokens} and backward"] = bound(slopes(chunkwise), *given)
    times = in_turn(calls, max(3, runs // 3))
    print()
    for kind in ("forward", "and backward"):
        short, long = times[f"16384 {kind}"], times[f"65536 {kind}"]
        ratio, least = long.median / short.median, min(long.seconds) / min(short.seconds)
        print(f"64k over 16k tokens, {kind}: {long} over {short}: {ratio:.2f} (of least times {least:.2f})")


def beside_peer(python: str, runs: int) -> None:
    """Print our times and those of the peer, run in turn on the same operands."""
    for tokens in (2_048, 8_192):
        given = operands(tokens)
        command = [python, str(PEER), f"--time={tokens}", f"--heads={HEADS}", f"--d={D}"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
            ours = float(jax.jit(lambda *given: jnp.sum(jnp.abs(chunkwise(*given)[0])))(*given))
            theirs = ask(peer, "check")
            if not np.isclose(ours, theirs, rtol=1e-4):
                sys.exit(f"tests.bench.mixers: the peer computes something else: {theirs}, and here {ours}")
            calls: dict[str, Callable[[], float]] = {
                "ours": partial(timed, bound(chunkwise, *given)),
                "theirs": partial(ask, peer, "run"),
                "ours and backward": partial(timed, bound(slopes(chunkwise), *given)),
                "theirs and backward": partial(ask, peer, "slope"),
            }
            times = measured(calls, runs)
            peer.communicate()
        print(f"\n{tokens} tokens beside jax-linear-attention:")
        for name, each in times.items():
            print(f"  {name:26}{each}")
        for suffix in ("", " and backward"):
            ratio = times[f"theirs{suffix}"].median / times[f"ours{suffix}"].median
            print(f"  theirs over ours{suffix}: {ratio:.2f}")


def ask(peer: subprocess.Popen[str], what: str) -> float:
    """The answer of the peer's process."""
    assert peer.stdin is not None
    assert peer.stdout is not None
    print(what, file=peer.stdin, flush=True)
    answer = peer.stdout.readline()
    if not answer:
        sys.exit(f"tests.bench.mixers: the peer ended with {peer.wait()}; its words stand above")
    return float(answer)


def operands(tokens: int) -> tuple[jax.Array, ...]:
    """q, k, v and a log decay a token: the same numbers as the peer draws."""
    draw = np.random.default_rng(0)
    shape = (1, tokens, HEADS, D)
    vectors = [jnp.asarray(draw.standard_normal(shape, dtype=np.float32)) for _ in range(3)]
    return (*vectors, -jnp.asarray(draw.uniform(0, 0.1, shape[:3]), jnp.float32))


def product_operands(tokens: int, chunk: int) -> tuple[jax.Array, ...]:
    """Queries, keys, values, scores and states of every chunk of every head."""
    draw = np.random.default_rng(1)
    many = HEADS * tokens // chunk
    shapes = ((chunk, D), (chunk, D), (chunk, D), (chunk, chunk), (D, D))
    return tuple(jnp.asarray(draw.standard_normal((many, *shape), dtype=np.float32)) for shape in shapes)


def products(q: jax.Array, k: jax.Array, v: jax.Array, scores: jax.Array, state: jax.Array) -> tuple[jax.Array, ...]:
    """The four products of the chunkwise form, and nothing else."""
    return (
        jnp.einsum("nck,nsk->ncs", q, k),
        jnp.einsum("ncs,nsv->ncv", scores, v),
        jnp.einsum("nck,nkv->ncv", q, state),
        jnp.einsum("nck,ncv->nkv", k, v),
    )


def slopes(attention: Callable[..., Any]) -> Callable[..., Any]:
    """The gradients of a loss in every operand."""
    return jax.grad(lambda *given: jnp.sum(attention(*given)[0] ** 2), argnums=(0, 1, 2, 3))


def bound(call: Callable[..., Any], *given: jax.Array) -> Callable[[], Any]:
    """`call` compiled, with its operands."""
    return partial(jax.jit(call), *given)


def timed(call: Callable[[], Any]) -> float:
    """Seconds until its result is there."""
    began = time.perf_counter()
    for array in jax.tree.leaves(call()):
        array.block_until_ready()
    return time.perf_counter() - began


def in_turn(calls: Mapping[str, Callable[[], Any]], runs: int) -> dict[str, Times]:
    """Times of calls that run one after the other, round after round."""
    return measured({name: partial(timed, call) for name, call in calls.items()}, runs)


def measured(calls: Mapping[str, Callable[[], float]], runs: int) -> dict[str, Times]:
    """What each says that it took, round after round; two rounds first that do not count."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(runs + 2):
        for name, call in calls.items():
            seconds[name].append(call())
    return {name: Times(tuple(each[2:])) for name, each in seconds.items()}


if __name__ == "__main__":
    main()
