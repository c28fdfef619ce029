"""Decoding by torch's scaled_dot_product_attention over a cache, for `tests.bench.long_context`.

Runs in an environment of its own, with torch for a CPU. Sizes come from the command line; each line of standard input
is the number of tokens in the cache of every layer, and is answered with the seconds of one token through all layers.
A cache is made when its length is first asked for; making it is not timed.
"""

from __future__ import annotations

import argparse
import sys
import time

import torch
from torch.nn.functional import scaled_dot_product_attention


def main() -> None:
    """Answer until the input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("layers", "heads", "d"):
        parser.add_argument(f"--{name}", type=int, required=True)
    options = parser.parse_args()
    query = torch.randn(1, options.heads, 1, options.d)
    caches: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] = {}
    with torch.inference_mode():
        for line in sys.stdin:
            tokens = int(line)
            if tokens not in caches:
                shape = (1, options.heads, tokens, options.d)
                caches[tokens] = [(torch.randn(shape), torch.randn(shape)) for _ in range(options.layers)]
            began = time.perf_counter()
            for keys, values in caches[tokens]:
                scaled_dot_product_attention(query, keys, values)
            print(time.perf_counter() - began, flush=True)


if __name__ == "__main__":
    main()
