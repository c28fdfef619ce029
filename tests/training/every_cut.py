"""Goes on from every checkpoint of a run, each time by one step: `python -m tests.training.every_cut CONFIG RUN_DIR`.

Restored from the checkpoint of step k and trained one step, the state must have the bits of that of step k + 1.
Prints the steps that it found, and ends with 1 at the first that differs.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import jax

from training.assembly import Assembly, assemble
from training.checkpoint.discovery import find_one
from training.checkpoint.names import parsed
from training.checkpoint.restoring import restore
from training.checkpoint.store import AbstractStore, open_store
from training.config import read_data, read_run
from training.state_digest import sha256_of
from training.train_step import TrainState


def main(config_file: str, run_dir: str) -> int:
    """The exit code."""
    config, source = read_run(read_data(Path(config_file), []), config_file)
    assembly = assemble(config)
    root = Path(run_dir) / "checkpoints"
    prefixes = {name.step: folder.name for folder in root.iterdir() if (name := parsed(folder.name))}
    with contextlib.closing(open_store(str(root))) as store:
        for step in sorted(prefixes)[:-1]:
            batch = source.batch(step)
            tokens, segments = jax.device_put((batch.tokens, batch.segments), assembly.rows)
            after, _ = assembly.step(restored(store, prefixes[step], assembly), tokens, segments)
            if sha256_of(after) != sha256_of(restored(store, prefixes[step + 1], assembly)):
                print(f"step {step + 1} differs")
                return 1
    print(*sorted(prefixes))
    return 0


def restored(store: AbstractStore, prefix: str, assembly: Assembly) -> TrainState:
    """The state in one checkpoint."""
    found = find_one(store, prefix)
    assert found is not None
    state, _ = restore(found, assembly.shapes, assembly.shardings)
    return state


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
