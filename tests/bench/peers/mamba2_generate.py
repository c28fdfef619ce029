"""`generate` of transformers on a Mamba-2 with random weights, for `tests.bench.serving`: in an environment of its own.

It needs torch and transformers. Prints its number of parameters, then for every line of standard input the tokens/s of
one batch, prompts read and tokens sampled.
"""

from __future__ import annotations

import argparse
import sys
import time

import torch
from transformers import Mamba2Config, Mamba2ForCausalLM


def main() -> None:
    """Answer until the input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("batch", "prompt", "tokens", "hidden", "layers", "vocabulary"):
        parser.add_argument(f"--{name}", type=int, required=True)
    options = parser.parse_args()
    torch.manual_seed(0)
    # Its blocks have no feed-forward: twice as many are about as large as ours with one.
    config = Mamba2Config(
        vocab_size=options.vocabulary,
        hidden_size=options.hidden,
        num_hidden_layers=2 * options.layers,
        expand=2,
        head_dim=64,
        num_heads=2 * options.hidden // 64,
        state_size=64,
        n_groups=1,
        tie_word_embeddings=True,
        eos_token_id=None,
        pad_token_id=0,
        bos_token_id=1,
    )
    model = Mamba2ForCausalLM(config).eval()
    print(f"{sum(each.numel() for each in model.parameters()):,} parameters, torch {torch.__version__}", flush=True)
    prompts = torch.randint(300, options.vocabulary, (options.batch, options.prompt))
    for _ in sys.stdin:
        began = time.perf_counter()
        with torch.no_grad():
            out = model.generate(
                prompts,
                attention_mask=torch.ones_like(prompts),
                do_sample=True,
                max_new_tokens=options.tokens,
                min_new_tokens=options.tokens,
            )
        new = (out.shape[1] - options.prompt) * options.batch
        print(new / (time.perf_counter() - began), flush=True)


if __name__ == "__main__":
    main()
