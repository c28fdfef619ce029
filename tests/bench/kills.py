"""A run that is killed at random steps beside one that is not: `python -m tests.bench.kills [--kills N] [--seed S]`.

Both are the small run of the tests. The kills are SIGKILL, after random steps and a part of the one that follows;
an attempt that makes no progress is killed again. At the end the digests of parameters and optimizer state must be
equal; what the kills cost is printed as goodput.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.training.small_run import SmallRun, small_config, write_text
from training.data.prepare import Recipe, prepare
from training.goodput import account, read_ledger


def main() -> int:
    """The exit code: 0 where both ended in the same bits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        rows = root / "rows"
        prepare(write_text(root), rows, recipe=Recipe(vocab_size=300, sequence_length=16, validation=0.2))
        config = small_config(rows, steps=options.steps)
        straight = SmallRun.make(root / "straight", config, root / "compiled")
        killed = SmallRun.make(root / "killed", config, root / "compiled")
        began = time.monotonic()
        straight.finish()
        once = time.monotonic() - began
        began = time.monotonic()
        steps = kill_at_random(killed, options.kills, options.steps, random.Random(options.seed))
        killed.finish()
        again = time.monotonic() - began
        same = killed.final() == straight.final()
        kept = account(read_ledger(killed.run_dir / "goodput.jsonl"))
        print(f"killed {options.kills} times, after the steps {', '.join(map(str, steps))}")
        print(f"straight {once:.1f} s; killed {again:.1f} s, goodput {kept.goodput:.1%}")
        print("the same bits" if same else f"OTHER BITS: {killed.final()} instead of {straight.final()}")
    return 0 if same else 1


def kill_at_random(run: SmallRun, kills: int, steps: int, source: random.Random) -> list[int]:
    """Start and kill a run so often; the last step that each attempt had finished."""
    reached = []
    for number in range(kills):
        process = run.start()
        # Each attempt gets a random share of what is left, so that the run is not over before the last kill.
        done = max((line.get("step", 0) for line in run.lines()), default=0)
        run.wait_for_step(done + source.randint(1, max(1, (steps - done) // (kills - number + 1))), process)
        time.sleep(source.random() * 0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        reached.append(max((line.get("step", 0) for line in run.lines()), default=0))
    return reached


if __name__ == "__main__":
    sys.exit(main())
