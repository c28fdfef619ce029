"""Thousands of answers at random, of several tenants, that end in every way: each token is right, no slot is lost."""

from __future__ import annotations

import logging
import random
import threading
from collections import Counter
from dataclasses import dataclass, field

import pytest

from inference.engine.sampling_parameters import SamplingParameters
from inference.scheduling.admission import QueueFullError
from inference.scheduling.generation import Generation, Reason
from inference.scheduling.scheduler import Scheduler
from inference.scheduling.ticket import Ticket
from inference.testing import Call, Fault, SummingEngine, answer
from tests.inference.scheduling.answers import Heard, ask, cache_of, finish, running, scheduler_of, wait_until_idle

TEXTS = [[(7 * text + i * i) % 256 for i in range(120)] for text in range(5)]


def question(drawn: random.Random) -> Generation:
    """Mostly the beginning of a known text and something new behind it, so that states are kept and found."""
    prompt = TEXTS[drawn.randrange(5)][: drawn.randrange(100)] + [
        drawn.randrange(256) for _ in range(drawn.randint(1, 9))
    ]
    return ask(
        prompt,
        drawn.choice([0, 1, 2, 10, 40]),
        parameters=SamplingParameters(
            temperature=drawn.choice([0, 1]), seed=drawn.randrange(9), draw=drawn.randrange(3)
        ),
        stop_tokens=frozenset(drawn.sample(range(256), drawn.choice([0, 0, 8]))),
        min_tokens=drawn.choice([0, 0, 5]),
        score_prompt=drawn.random() < 0.1,
        tenant=drawn.choice(["", "a", "b"]),
        cache_salt=drawn.choice(["", "", "salt"]),
        turn_ends=tuple(sorted(drawn.sample(range(1, 120), 2))),
    )


@dataclass
class Client:
    """Asks, leaves now and then, and checks at the end."""

    drawn: random.Random
    asked: list[tuple[Generation, Heard, Ticket]] = field(default_factory=list)
    refused: int = 0

    def ask(self, scheduler: Scheduler) -> None:
        generation = question(self.drawn)
        heard = Heard(enough=self.drawn.choice([None, None, 3]))
        try:
            ticket = scheduler.submit(generation, heard)
        except QueueFullError:
            self.refused += 1
            return
        self.asked.append((generation, heard, ticket))
        if self.drawn.random() < 0.2:
            leaves_after = self.drawn.randrange(4)
            heard.on_token = lambda _: scheduler.cancel(ticket) if len(heard.tokens) == leaves_after else None
        elif self.drawn.random() < 0.1:
            scheduler.cancel(ticket)

    def leave(self, scheduler: Scheduler) -> None:
        scheduler.cancel(self.drawn.choice(self.asked)[2])

    def check(self) -> Counter[Reason]:
        """Check all that was heard; how often each reason was."""
        reasons: Counter[Reason] = Counter()
        for generation, heard, _ in self.asked:
            check_end(generation, heard)
            assert heard.reason is not None
            reasons[heard.reason] += 1
        return reasons


def check_end(generation: Generation, heard: Heard) -> None:
    """All that was heard is right, and it ended where the closed form says."""
    right = answer(generation.prompt, generation.max_tokens, generation.parameters)
    count = len(heard.tokens)
    assert heard.tokens == right[:count]
    assert heard.end is not None
    assert heard.end.generated_tokens == count
    stops = [
        place + 1
        for place, token in enumerate(right)
        if (token in generation.stop_tokens and place + 1 > generation.min_tokens) or place + 1 == heard.enough
    ]
    last = min(stops, default=generation.max_tokens)
    if heard.reason in (Reason.STOP, Reason.LENGTH):
        assert count == last
        assert (heard.reason is Reason.STOP) == bool(stops)
        if generation.score_prompt:
            assert [score.token for score in heard.scores] == list(generation.prompt[1:])
    else:
        assert count <= last


@pytest.mark.parametrize("seed", range(6))
def test_thousands_of_answers_turn_by_turn(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL + 1)
    drawn = random.Random(seed)
    slots = drawn.choice([1, 3, 8])
    engine = SummingEngine(slots=slots, devices=1 if seed < 4 else slots, grid=8, context=160, state_bytes=100)
    if seed == 3:
        engine.faults = [Fault(call=Call.DECODE, turn=turn) for turn in range(100, 9000, 333)]
    cache = cache_of(engine, capacity=2000)
    scheduler = scheduler_of(engine, cache=cache, queue=20, prefill_tokens_a_turn=drawn.choice([8, 24]))
    client = Client(drawn=drawn)
    for _ in range(4000):
        for _ in range(drawn.choice([0, 0, 1, 3])):
            client.ask(scheduler)
        if client.asked and drawn.random() < 0.05:
            client.leave(scheduler)
        scheduler.turn()
        assert cache.statistics().nbytes <= 2000
    finish(scheduler)
    reasons = client.check()
    assert len(engine.free_slots()) == engine.limits.slots
    statistics = scheduler.statistics()
    assert dict(statistics.ended) == {reason: reasons[reason] for reason in Reason}
    assert statistics.refused == client.refused
    assert statistics.generated_tokens == sum(len(heard.tokens) for _, heard, _ in client.asked)
    assert engine.read_tokens == statistics.prefilled_tokens
    assert statistics.restores > 10
    assert min(reasons[reason] for reason in (Reason.STOP, Reason.LENGTH, Reason.CANCELLED)) > 10
    assert (reasons[Reason.FAILED] > 0) == (seed == 3)
    assert statistics.cache is not None
    assert statistics.cache.evictions > 10
    assert statistics.cache.hits == statistics.restores


def test_many_threads_at_once() -> None:
    engine = SummingEngine(slots=4, grid=8, context=160, state_bytes=100)
    scheduler = scheduler_of(engine, cache=cache_of(engine, capacity=2000), queue=60)
    clients = [Client(drawn=random.Random(100 + number)) for number in range(8)]
    looked: list[int] = []

    def play(client: Client) -> None:
        for _ in range(150):
            client.ask(scheduler)
            if client.asked and client.drawn.random() < 0.2:
                client.leave(scheduler)
            statistics = scheduler.statistics()
            assert 0 <= statistics.running <= 4
            looked.append(statistics.waiting)
            wait_until_idle(scheduler, 0.0005)

    threads = [threading.Thread(target=play, args=(client,)) for client in clients]
    with running(scheduler):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        scheduler.drain()
        assert wait_until_idle(scheduler, 60)
    reasons: Counter[Reason] = Counter()
    for client in clients:
        reasons += client.check()
    assert engine.free_slots() == [1, 2, 3, 4]
    statistics = scheduler.statistics()
    assert (statistics.running, statistics.waiting) == (0, 0)
    assert {reason: n for reason, n in statistics.ended.items() if n} == dict(reasons)
    assert statistics.refused == sum(client.refused for client in clients)
    assert len(looked) == 8 * 150
