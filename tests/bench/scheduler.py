"""What the scheduler adds to a token, and a long prompt to its submission: `python -m tests.bench.scheduler`.

- overhead  microseconds a token of an engine whose tokens are sums, driven bare and by the scheduler, and what lies
            between: all that the scheduler does for a token of an answer, but for the work of its listener
- digests   milliseconds for what a kept state of a prompt is known by, which `submit` takes on the thread of who asks

Bare and scheduled take turns; medians and the least of all rounds are printed.
"""

from __future__ import annotations

import argparse
import statistics
import time

from inference.engine.abstract_engine import Choice
from inference.engine.sampling_parameters import SamplingParameters
from inference.scheduling.generation import AbstractListener, Ended, Generation
from inference.scheduling.scheduler import Scheduler
from inference.state_cache.state_cache import StateCache
from inference.testing import SummingEngine

GREEDY = SamplingParameters(temperature=0)
CONTEXT = 1 << 30


class Deaf(AbstractListener):
    """Takes every token."""

    def scored(self, scores: tuple[Choice, ...]) -> None:
        """Never called: no prompt is scored."""

    def token(self, choice: Choice) -> bool:
        """Go on."""
        return False

    def ended(self, ended: Ended) -> None:
        """Nobody waits for it."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slots", type=int, nargs="+", default=[1, 8, 32, 128], help="default 1 8 32 128")
    parser.add_argument("--tokens", type=int, default=32_000, help="of a round (default 32,000)")
    parser.add_argument("--rounds", type=int, default=7, help="of each (default 7)")
    parser.add_argument("--prompts", type=int, nargs="+", default=[4096, 1_000_000], help="default 4096 1000000")
    options = parser.parse_args()
    print(f"{'slots':>6} {'bare':>16} {'scheduled':>16} {'between':>16}   us a token, median (least)")
    for slots in options.slots:
        turns = max(1, options.tokens // slots)
        rounds = [(bare(slots, turns), scheduled(slots, turns)) for _ in range(options.rounds)]
        columns = [[a for a, _ in rounds], [b for _, b in rounds]]
        between = [statistics.median(columns[1]) - statistics.median(columns[0]), min(columns[1]) - min(columns[0])]
        cells = [f"{statistics.median(column):8.2f} ({min(column):.2f})" for column in columns]
        print(f"{slots:>6} {cells[0]:>16} {cells[1]:>16} {between[0]:8.2f} ({between[1]:.2f})")
    print(f"\n{'tokens':>9} {'digests':>9}   ms, the least")
    for length in options.prompts:
        print(f"{length:>9,} {min(digests(length) for _ in range(options.rounds)):>9.2f}")


def bare(slots: int, turns: int) -> float:
    """Microseconds a token of the engine alone."""
    engine = SummingEngine(slots=slots, context=CONTEXT)
    for slot in range(1, slots + 1):
        engine.admit(slot, GREEDY, prompt=[slot % 256], start=None)
        engine.prefill(slot)
    numbers = list(range(1, slots + 1))
    began = time.perf_counter()
    for _ in range(turns):
        engine.decode(numbers)
    return (time.perf_counter() - began) / turns / slots * 1e6


def scheduled(slots: int, turns: int) -> float:
    """The same, by the scheduler."""
    scheduler = Scheduler(SummingEngine(slots=slots, context=CONTEXT), cache=None, queue=0, prefill_tokens_a_turn=4096)
    for slot in range(1, slots + 1):
        scheduler.submit(question((slot % 256,)), Deaf())
    while scheduler.statistics().reading or scheduler.statistics().waiting:
        scheduler.turn()
    began = time.perf_counter()
    for _ in range(turns):
        scheduler.turn()
    return (time.perf_counter() - began) / turns / slots * 1e6


def digests(length: int) -> float:
    """Milliseconds for the digests of a prompt."""
    asked = question(tuple(number % 50_000 for number in range(length)))
    cache = StateCache(1, fingerprint="weights", grid=256)
    began = time.perf_counter()
    cache.chain(asked)
    return (time.perf_counter() - began) * 1e3


def question(prompt: tuple[int, ...]) -> Generation:
    """One that is answered until the context is full."""
    return Generation(request_id="bench", prompt=prompt, parameters=GREEDY, max_tokens=CONTEXT)


if __name__ == "__main__":
    main()
