"""The scalar-decay op of jax-linear-attention 0.1.0, for `tests.bench.mixers`: runs in an environment of its own.

It needs Python 3.12 and `jax-linear-attention==0.1.0`, which pins another jax than ours. Reads sizes from the command
line, then a line of standard input for each run, and answers each with its seconds: `run` for the forward pass, `slope`
for the forward and backward pass, `check` for the sum of its outputs.
"""

from __future__ import annotations

import argparse
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jla.ops.chunked import simple_gla


def main() -> None:
    """Answer until the input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("time", "heads", "d"):
        parser.add_argument(f"--{name}", type=int, required=True)
    options = parser.parse_args()
    draw = np.random.default_rng(0)
    shape = (1, options.time, options.heads, options.d)
    q, k, v = (jnp.asarray(draw.standard_normal(shape, dtype=np.float32)) for _ in range(3))
    g = -jnp.asarray(draw.uniform(0, 0.1, shape[:3]), jnp.float32)

    def attention(q: jax.Array, k: jax.Array, v: jax.Array, g: jax.Array) -> jax.Array:
        return simple_gla(q, k, v, g, scale=1.0)[0]

    calls = {
        "run": jax.jit(attention),
        "slope": jax.jit(jax.grad(lambda *given: jnp.sum(attention(*given) ** 2), argnums=(0, 1, 2, 3))),
        "check": jax.jit(lambda *given: jnp.sum(jnp.abs(attention(*given)))),
    }
    for line in sys.stdin:
        began = time.perf_counter()
        result = jax.block_until_ready(calls[line.strip()](q, k, v, g))
        answer = float(result) if line.strip() == "check" else time.perf_counter() - began
        print(repr(answer), flush=True)


if __name__ == "__main__":
    main()
