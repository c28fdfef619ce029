"""The memory wall: what a request holds and what a token costs, for softmax attention and for linear, as it grows long.

A decoding step reads the weights once, and of every request its state (and writes it back) or its keys and values. It
takes at least max(bytes / bandwidth, operations / peak): a bound, not a prediction. A slice counts as so many chips
that share the work evenly and for nothing, which favours attention with few heads of keys and values: split by heads
over more chips than these, they are held several times.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final, final

from inference.economics.decoding import Machine, Step, most_requests, step
from inference.economics.model_sizes import Sizes
from inference.economics.variants import Choices, Variant, break_even, state_in_tokens, variants
from policies.prices.book import MissingPrice, Price, PriceBook, PriceModel

CHIP: Final = "tpu.v6e.chip"
WORTH: Final = Fraction(11, 10)
"""From so many times the tokens a second on, linear attention is said to gain something."""
_LONGEST: Final = 2**40


@final
@dataclass(frozen=True, kw_only=True)
class Prices:
    """What an hour of a chip costs."""

    zone: str
    capacity: PriceModel
    """Bought so."""
    spot: Price | MissingPrice
    on_demand: Price | MissingPrice

    @property
    def chosen(self) -> Price | MissingPrice:
        """The one that the dollars are counted with."""
        return self.spot if self.capacity is PriceModel.SPOT else self.on_demand


@final
@dataclass(frozen=True, kw_only=True)
class Place:
    """One variant at one length of the requests."""

    context: int
    held_bytes: int
    """Of one request."""
    most: int
    """Requests that fit beside the weights; 0 where not even one does, or the weights do not."""
    snapshots: int
    """Prefixes of this length that the hosts keep in their memory."""
    steps: tuple[Step, ...]
    """One a batch."""
    full: Step | None
    """With as many requests as fit; None where none does."""


@final
@dataclass(frozen=True, kw_only=True)
class Row:
    """One variant at every length."""

    variant: Variant
    places: tuple[Place, ...]


@final
@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a benchmark gave, beside the bound."""

    tokens_per_second: Decimal
    batch: int
    context: int
    step: Step

    @property
    def share(self) -> Fraction:
        """Of the bound that was reached."""
        return Fraction(self.tokens_per_second) / self.step.tokens_per_second


@final
@dataclass(frozen=True, kw_only=True)
class Wall:
    """The answer."""

    sizes: Sizes
    machine: Machine
    contexts: tuple[int, ...]
    batches: tuple[int, ...]
    rows: tuple[Row, ...]
    """The model first."""
    prices: Prices
    currency: str
    book_as_of: datetime.date | None
    book_sha256: str
    as_of: datetime.date
    measured: tuple[Measured, ...] = ()

    @property
    def missing(self) -> tuple[MissingPrice, ...]:
        """The price that the dollars need, where the book has none."""
        return (self.prices.chosen,) if isinstance(self.prices.chosen, MissingPrice) else ()

    @property
    def fresh(self) -> bool:
        """Whether the price is dated and young enough."""
        found = self.prices.chosen
        return isinstance(found, Price) and found.freshness(self.as_of).trusted

    def per_million(self, tokens_per_second: Fraction, price: Price | MissingPrice) -> Fraction | None:
        """What a million tokens cost at that rate; None without a price."""
        if isinstance(price, MissingPrice):
            return None
        hour = Fraction(price.unit_price) * self.machine.shape.chips
        return hour * 10**6 / (3600 * tokens_per_second)


@final
@dataclass(frozen=True, kw_only=True)
class Gain:
    """What the model, or the linear one beside it, has before another one, and from where on."""

    one: Variant
    other: Variant
    memory: int | None
    """The context from which on it holds less; None where it never does."""
    traffic: int | None
    """The context from which on a step moves fewer bytes for a request: a state is read, and written back."""
    state_tokens: int | None
    """So many tokens of the other fill its state."""
    speed: int | None
    """The context from which on a single request gets at least `WORTH` times the tokens a second."""


def faster_from(one: Variant, other: Variant, machine: Machine, worth: Fraction = WORTH) -> int | None:
    """The context from which on a single request is decoded at least `worth` times as fast; None where it never is."""

    def gains(context: int) -> bool:
        slow, fast = (step(each, machine, 1, context).seconds for each in (other, one))
        return slow >= worth * fast

    if other.token_bytes <= one.token_bytes or not gains(_LONGEST):
        return None
    least, most = 0, _LONGEST  # not there yet, and there
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if gains(middle) else (middle, most)
    return most


def gains(rows: Sequence[Row], machine: Machine) -> tuple[Gain, ...]:
    """The variant without attention that grows (else the model) against each one with it."""
    one = next((row.variant for row in rows if row.variant.token_bytes == 0), rows[0].variant)
    return tuple(
        Gain(
            one=one,
            other=row.variant,
            memory=break_even(one, row.variant),
            traffic=break_even(one, row.variant, Variant.read),
            state_tokens=state_in_tokens(one, row.variant),
            speed=faster_from(one, row.variant, machine),
        )
        for row in rows
        if row.variant is not one and row.variant.token_bytes > one.token_bytes
    )


def chip_prices(book: PriceBook, zone: str, capacity: PriceModel) -> Prices:
    """What the book says of a chip in that zone."""
    return Prices(
        zone=zone,
        capacity=capacity,
        spot=book.find(CHIP, PriceModel.SPOT, zone),
        on_demand=book.find(CHIP, PriceModel.ON_DEMAND, zone),
    )


def memory_wall(
    sizes: Sizes,
    machine: Machine,
    contexts: Sequence[int],
    batches: Sequence[int],
    *,
    choices: Choices,
    book: PriceBook,
    zone: str,
    capacity: PriceModel,
    as_of: datetime.date,
    measured: Sequence[tuple[Decimal, int, int]] = (),
) -> Wall:
    """The whole answer. `measured` are tokens a second, batch and context. Raises InputError where heads do not fit."""
    rows = tuple(
        Row(variant=each, places=tuple(_place(each, machine, context, batches) for context in contexts))
        for each in variants(sizes, choices)
    )
    return Wall(
        sizes=sizes,
        machine=machine,
        contexts=tuple(contexts),
        batches=tuple(batches),
        rows=rows,
        prices=chip_prices(book, zone, capacity),
        currency=book.currency,
        book_as_of=book.as_of,
        book_sha256=book.sha256,
        as_of=as_of,
        measured=tuple(
            Measured(
                tokens_per_second=rate,
                batch=batch,
                context=context,
                step=step(rows[0].variant, machine, batch, context),
            )
            for rate, batch, context in measured
        ),
    )


def _place(variant: Variant, machine: Machine, context: int, batches: Sequence[int]) -> Place:
    held, most = variant.held(context), most_requests(variant, machine, context)
    kept = machine.host_bytes * Fraction(machine.snapshots.value)
    return Place(
        context=context,
        held_bytes=held,
        most=most,
        snapshots=int(kept // held) if held else 0,
        steps=tuple(step(variant, machine, batch, context) for batch in batches),
        full=step(variant, machine, most, context) if most else None,
    )
