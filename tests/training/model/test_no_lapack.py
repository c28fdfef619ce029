"""No program over a model calls LAPACK: batched, it hangs under jit on machines of few cores, in gradients too."""

from __future__ import annotations

import json
import subprocess
import sys

SECONDS = 300
"""For a program that takes 20 on an idle machine. A hang would take for ever."""

PROGRAM = """
import json, re
import jax, jax.numpy as jnp
from tests.training.model.patterns import EVERY_MIXER, VOCABULARY, quick_jit, tiny
from training.model.language_model import LanguageModel
from training.model.loss import next_token_loss
from training.model.paths import dotted

def slope(key, tokens, segments):
    model = LanguageModel.init(tiny(*EVERY_MIXER, n_layers=len(EVERY_MIXER)), key)
    return jax.value_and_grad(lambda at: next_token_loss(at, tokens, segments, block=8).objective(1e-3))(model)

tokens = jax.random.randint(jax.random.key(1), (2, 11), 0, VOCABULARY)
segments = jnp.stack([jnp.ones(11, int), jnp.repeat(jnp.array([1, 2, 0]), jnp.array([4, 5, 2]))])
lowered = quick_jit(slope).lower(jax.random.key(0), tokens, segments)
loss, gradient = lowered.compile()(jax.random.key(0), tokens, segments)
leaves = jax.tree_util.tree_leaves_with_path(gradient)
print(json.dumps({
    "loss": float(loss),
    "calls": re.findall(r"lapack\\w*|triangular_solve|cholesky", lowered.as_text()),
    "finite": all(bool(jnp.all(jnp.isfinite(leaf))) for _, leaf in leaves),
    "still": [dotted(path) for path, leaf in leaves if not bool(jnp.any(leaf))],
}))
"""


def test_forward_and_backward_of_every_mixer_end_and_call_none() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert told["calls"] == []
    assert told["finite"]
    # Every parameter learns; the decays of Lightning are the only numbers that are fixed.
    assert told["still"] == ["blocks.4.mixer.slopes"]
    assert 0 < told["loss"] < 2 * 16 * 10  # 17 tokens count, at about ln 61 + 1/2 each
