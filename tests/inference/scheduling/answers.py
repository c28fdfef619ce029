"""Listeners that check what they hear against the closed form, and schedulers that are driven turn by turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from inference.engine.abstract_engine import Choice
from inference.engine.sampling_parameters import SamplingParameters
from inference.scheduling.generation import AbstractListener, Ended, Generation, Reason
from inference.scheduling.scheduler import Scheduler
from inference.state_cache.state_cache import StateCache
from inference.testing import SummingEngine, answer

GREEDY = SamplingParameters(temperature=0)


@dataclass(eq=False)
class Heard(AbstractListener):
    """Keeps all that it hears; `enough` says after how many tokens it is content, `on_token` hears of each."""

    enough: int | None = None
    on_token: Callable[[int], None] | None = None
    tokens: list[int] = field(default_factory=list)
    scores: list[Choice] = field(default_factory=list)
    end: Ended | None = None

    def scored(self, scores: tuple[Choice, ...]) -> None:
        assert self.end is None
        assert not self.tokens
        self.scores.extend(scores)

    def token(self, choice: Choice) -> bool:
        assert self.end is None
        self.tokens.append(choice.token)
        if self.on_token is not None:
            self.on_token(choice.token)
        return len(self.tokens) == self.enough

    def ended(self, ended: Ended) -> None:
        assert self.end is None, "the end was told twice"
        self.end = ended

    @property
    def reason(self) -> Reason | None:
        """Why it ended; None: it goes on."""
        return None if self.end is None else self.end.reason


def ask(prompt: list[int], count: int, **changes: Any) -> Generation:
    """A question with `count` tokens of answer at most."""
    given: dict[str, Any] = {"request_id": "r", "parameters": GREEDY, "max_tokens": count} | changes
    return Generation(prompt=tuple(prompt), **given)


def scheduler_of(engine: SummingEngine, **changes: Any) -> Scheduler:
    """A scheduler without a cache, with a long queue and a budget of two pieces, unless told otherwise."""
    given: dict[str, Any] = {"cache": None, "queue": 1000, "prefill_tokens_a_turn": 2 * engine.limits.grid} | changes
    return Scheduler(engine, **given)


def cache_of(engine: SummingEngine, capacity: int = 1 << 20, **changes: Any) -> StateCache:
    """A cache for an engine."""
    return StateCache(capacity, fingerprint=engine.fingerprint, grid=engine.limits.grid, **changes)


def finish(scheduler: Scheduler, *, most: int = 10_000) -> int:
    """Take turns until all is done; how many."""
    for number in range(1, most + 1):
        if not scheduler.turn():
            return number
    raise AssertionError(f"not done after {most} turns")


def is_idle(scheduler: Scheduler) -> bool:
    """Whether no answer is here, by what it says of itself."""
    said = scheduler.statistics()
    return (said.running, said.waiting) == (0, 0)


def wait_until_idle(scheduler: Scheduler, seconds: float) -> bool:
    """Wait until no answer is here; whether it is so."""
    end = time.monotonic() + seconds
    while not (idle := is_idle(scheduler)) and time.monotonic() < end:
        time.sleep(0.0002)
    return idle


@contextmanager
def running(scheduler: Scheduler) -> Iterator[None]:
    """Its thread, which is closed behind the block."""
    thread = threading.Thread(target=scheduler.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        scheduler.close()
        thread.join(timeout=30)
    assert not thread.is_alive()


def check(heard: Heard, generation: Generation, *, vocab_size: int = 256) -> None:
    """What was heard is what the closed form says, as far as it goes, and is all of it where it ended by itself."""
    right = answer(generation.prompt, generation.max_tokens, generation.parameters, vocab_size=vocab_size)
    assert heard.tokens == right[: len(heard.tokens)]
    assert heard.end is not None
    assert heard.end.generated_tokens == len(heard.tokens)
    if heard.end.reason is Reason.LENGTH:
        assert len(heard.tokens) == generation.max_tokens
