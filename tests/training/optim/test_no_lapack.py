"""A whole guarded step under Kron calls no LAPACK: batched, it hangs under jit on machines of few cores."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, Final

SECONDS: Final = 300
"""For a program that takes 20 on an idle machine. A hang would take for ever."""

LAPACK: Final = r'custom_call_target="([^"]*(?:lapack|solve|cholesky|eigh|qr)[^"]*)"'
"""How a compiled program calls it."""

PROGRAM: Final = """
import json, re, sys
import jax, jax.numpy as jnp
from tests.training.model.patterns import SOFTMAX, SSD, VOCABULARY, quick_jit, tiny
from training.model.language_model import LanguageModel
from training.model.paths import is_stacked
from training.optim.build import build_optimizer
from training.optim.kron_config import KronConfig
from training.optim.learning import LearningConfig
from training.train_step import TrainState, make_train_step

config = KronConfig(block_size=8, dense_steps=2, refresh_period=2)
optimizer = build_optimizer(config, LearningConfig(warmup_steps=1), steps=10, stacked=is_stacked)

def fresh():
    model = LanguageModel.init(tiny(SOFTMAX, SSD, n_layers=2), jax.random.key(0))
    return TrainState(model, optimizer.init(model), jnp.zeros((), jnp.int32))

tokens = jax.random.randint(jax.random.key(1), (2, 11), 0, VOCABULARY)
segments = jnp.ones_like(tokens)
state = quick_jit(fresh)()
step = make_train_step(optimizer, z_loss=1e-4, compute=jnp.dtype("float32"))
compiled = step.lower(state, tokens, segments).compile({"xla_backend_optimization_level": 0})
losses = []
for _ in range(5):
    state, metrics = compiled(state, tokens, segments)
    losses.append(float(metrics.loss))
print(json.dumps({
    "calls": re.findall(sys.argv[1], compiled.as_text()),
    "skipped": int(metrics.skipped),
    "losses": losses,
}))
"""


CALLER: Final = """
import json, re, sys
import jax, jax.numpy as jnp
compiled = jax.jit(lambda x: jnp.linalg.eigh(x)[0]).lower(jnp.eye(3)).compile()
print(json.dumps({"calls": re.findall(sys.argv[1], compiled.as_text())}))
"""


def told(program: str) -> dict[str, Any]:
    """What a program says in a process of its own, which is ended when it hangs."""
    command = [sys.executable, "-c", program, LAPACK]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads(ended.stdout))


def test_the_whole_step_ends_learns_and_calls_none() -> None:
    seen = told(PROGRAM)
    assert seen["calls"] == []
    assert seen["skipped"] == 0
    assert seen["losses"][-1] < seen["losses"][0]


def test_a_program_that_does_call_lapack_is_seen() -> None:
    assert len(told(CALLER)["calls"]) == 1
