"""An answer on its way: what the scheduler knows of it between `submit` and its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from inference.engine.abstract_engine import Limits
from inference.scheduling.generation import AbstractListener, Ended, Generation, Reason, Timings
from inference.state_cache.hash_chain import HashChain, hash_chain
from inference.state_cache.state_cache import StateCache


@final
@dataclass(kw_only=True, slots=True, eq=False)
class Ticket:
    """What `submit` gives, to be handed to `cancel`. All of it belongs to the thread of the scheduler."""

    generation: Generation
    """What is asked for."""
    listener: AbstractListener
    """Who hears of it."""
    submitted: float
    """When."""
    most: int
    """Tokens that it may have: what was asked for, or what the context has room for."""
    chain: HashChain
    """What kept states of its prompt go by; without places where none are kept."""
    tenant: str = field(init=False)
    """Who asks."""
    cancelled: bool = False
    """Whether it is not wanted any more; the one thing that other threads set."""
    over: bool = False
    """Whether its end has been told."""
    slot: int | None = None
    """Where it is; None while it waits, and afterwards."""
    position: int = 0
    """Tokens of the prompt that are read."""
    cached: int = 0
    """Of those, the ones that came from a kept state."""
    generated: int = 0
    """Tokens that were chosen."""
    wanted: tuple[int, ...] = ()
    """Places at which its state is to be kept, rising; those passed are taken away."""
    awaited: int | None = None
    """The nearest of them that others wait for."""
    admitted: float | None = None
    """When it got its slot."""
    first_token: float | None = None
    """When its first token was chosen."""

    def __post_init__(self) -> None:
        self.tenant = self.generation.tenant

    @property
    def left(self) -> int:
        """Tokens to read until somebody gets something from it."""
        end = len(self.generation.prompt) if self.awaited is None else self.awaited
        return end - self.position

    def ended(self, reason: Reason, now: float) -> Ended:
        """The end, as its listener hears it."""
        timings = Timings(submitted=self.submitted, admitted=self.admitted, first_token=self.first_token, ended=now)
        return Ended(reason=reason, cached_tokens=self.cached, generated_tokens=self.generated, timings=timings)


def reason_to_end(ticket: Ticket, token: int, *, enough: bool) -> Reason | None:
    """Why the answer is over behind `token`, the last that was counted; None: it goes on.

    A stop token is one only behind `min_tokens` others. `enough` is what the listener said.
    """
    generation = ticket.generation
    if enough or (token in generation.stop_tokens and ticket.generated > generation.min_tokens):
        return Reason.STOP
    return Reason.LENGTH if ticket.generated >= ticket.most else None


def new_ticket(
    generation: Generation, listener: AbstractListener, now: float, limits: Limits, cache: StateCache | None
) -> Ticket:
    """The ticket of an answer that comes now. Raises ValueError for a prompt that cannot be read within `limits`."""
    prompt = generation.prompt
    if not 0 < len(prompt) <= limits.context:
        raise ValueError(f"prompt: has {len(prompt)} tokens; it has 1 to {limits.context}, which is the context")
    if not 0 <= min(prompt) <= max(prompt) < limits.vocab_size:
        raise ValueError(f"prompt: has a token outside of 0 to {limits.vocab_size - 1}")
    return Ticket(
        generation=generation,
        listener=listener,
        submitted=now,
        most=max(0, min(generation.max_tokens, limits.context - len(prompt))),
        chain=hash_chain((), grid=limits.grid, salt=()) if cache is None else cache.chain(generation),
    )
