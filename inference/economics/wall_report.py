"""The memory wall in words, tables and plots: the answer first, then where linear attention wins nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Final

from inference.economics.decoding import Bound, Step, most_requests, step
from inference.economics.figures import bytes_text, seconds_text, short, tokens_text
from inference.economics.report import Plot, Remark, Report, Series, Table
from inference.memory_wall import WORTH, Gain, Place, Row, Wall, gains
from policies.money import decimal_of
from policies.prices.book import MissingPrice, Price, PriceModel
from policies.report.figures import UNIT, money

NO_ROOM: Final = "no room"
DRAWN: Final = tuple(2**power for power in range(6, 22))
"""Contexts of the plots: 64 tokens to 2M."""


def wall_report(wall: Wall) -> Report:
    """Everything that `spotrail wall` shows."""
    found = gains(wall.rows, wall.machine)
    return Report(
        heading=f"spotrail wall {wall.sizes.name}",
        terms=_terms(wall),
        answers=tuple(_answers(wall, found)),
        tables=tuple(_tables(wall)),
        remarks=tuple(wall_remarks(wall)),
        assumptions=wall.machine.assumptions,
        plots=(_memory_plot(wall), _speed_plot(wall)),
        notes=tuple(_notes(wall)),
        next_steps=("the same with --format html --output wall.html, for the plots",),
    )


def wall_remarks(wall: Wall) -> Iterator[Remark]:
    """What the figures do not promise, and where linear attention wins nothing."""
    found = gains(wall.rows, wall.machine)
    if wall.machine.usable_bytes < wall.rows[0].variant.weights_bytes:
        yield Remark(key="weights", text=_too_large(wall), warning=True)
    memory = _each(found, lambda gain: gain.memory)
    if memory:
        said = f"Linear attention wins no memory below {memory}: there a request holds less with the other one"
        yield Remark(key="memory", text=f"{said}.", warning=True)
    traffic = _each(found, lambda gain: gain.traffic)
    if traffic:
        said = "Since a state is read and written back, a step of a large batch moves fewer bytes with it only from"
        yield Remark(key="traffic", text=f"{said} {traffic} on.", warning=True)
    speed = _each(found, lambda gain: gain.speed)
    if speed:
        said = f"A single request is bound by the weights, which both read: below {speed} it is decoded"
        text = f"{said} less than {float(WORTH):.1f} times as fast, and linear attention wins nothing"
        yield Remark(key="speed", text=f"{text}.", warning=True)
    looked = [row for row in wall.rows if row.variant.prefill_crossover and row.variant.key in ("mla", "gqa")]
    if looked:
        lengths = " and ".join(f"{row.variant.prefill_crossover:,} tokens ({row.variant.title})" for row in looked)
        text = f"Reading a prompt: up to {lengths} attention costs less than the weights do"
        yield Remark(key="prefill", text=f"{text}, and linear attention saves little.", warning=True)
    yield from _limits(wall)


def _limits(wall: Wall) -> Iterator[Remark]:
    longest = wall.rows[0].places[-1].context
    mixed = [row for row in wall.rows if row.variant.state_bytes and row.variant.token_bytes]
    if mixed:
        held = ", ".join(f"{bytes_text(row.variant.held(longest))} ({row.variant.title})" for row in mixed)
        yield Remark(key="hybrids", text=f"A hybrid still grows: at {tokens_text(longest)} tokens {held}.")
    fixed = next((row.variant for row in wall.rows if row.variant.state_bytes and not row.variant.token_bytes), None)
    if fixed:
        text = f"What a state of {bytes_text(fixed.state_bytes)} recalls of a long text is limited by its size, which"
        yield Remark(key="recall", text=f"{text} no figure here shows: measure it on your task.")
    yield Remark(
        key="bound",
        text="All tokens/s are upper bounds by bandwidth and operations alone: no sampling, no network, no scheduler; "
        "states are updated by the vector unit, which has not the operations of the whole chip.",
    )
    chips = wall.machine.shape.chips
    if chips > 1:
        yield Remark(
            key="chips",
            text=f"{chips} chips share the work evenly and for nothing: split by heads, keys and values of fewer than "
            f"{chips} heads (a latent has one) would be held several times, which favours softmax here.",
        )


def _terms(wall: Wall) -> str:
    dated = f"prices of {wall.book_as_of}" if wall.book_as_of else "prices without a date"
    capacity = "spot" if wall.prices.capacity is PriceModel.SPOT else "on demand"
    return f"{wall.machine.shape.accelerator_type} · {wall.prices.zone} · {capacity} · {dated}"


def _answers(wall: Wall, found: tuple[Gain, ...]) -> Iterator[str]:
    context = wall.contexts[-1]
    # The model itself where it is the one that grows, else what most models have.
    by_key = {gain.other.key: gain for gain in found}
    best = by_key.get("model") or by_key.get("gqa") or (found[-1] if found else None)
    if best is None:
        yield f"Nothing in {wall.sizes.name} grows with the context, and nothing that it is compared with does"
        return
    one, other = best.one, best.other
    less = Fraction(other.held(context), one.held(context))
    yield (
        f"At {tokens_text(context)} tokens a request holds {bytes_text(one.held(context))} with {one.title}, and "
        f"{bytes_text(other.held(context))} with {other.title}"
        + (f": {short(less)} times as much" if less >= 1 else "")
    )
    fits = [most_requests(each, wall.machine, context) for each in (one, other)]
    yield f"So many fit beside the weights of {bytes_text(one.weights_bytes)}: {fits[0]:,} and {fits[1]:,}."


def _tables(wall: Wall) -> Iterator[Table]:
    contexts = tuple(tokens_text(context) for context in wall.contexts)
    yield Table(
        title="One request holds",
        columns=("fixed", "a token", *contexts),
        rows=tuple(_held(row) for row in wall.rows),
    )
    yield Table(
        title="Requests that fit",
        columns=contexts,
        rows=tuple((row.variant.title, *(f"{place.most:,}" for place in row.places)) for row in wall.rows),
    )
    for number, batch in enumerate(wall.batches):
        yield _speeds(wall, f"Tokens/s, {_requests(batch)}", contexts, _batch(number))
    yield _speeds(wall, "Tokens/s, all that fit", contexts, lambda place: place.full)
    if not wall.missing:
        yield Table(
            title=f"{wall.currency} per 1M tokens, all that fit",
            columns=contexts,
            rows=tuple((row.variant.title, *(_cost(wall, place.full) for place in row.places)) for row in wall.rows),
            note=_doubt(wall),
        )
    yield _split(wall)
    yield Table(
        title="Prefixes kept by the hosts",
        columns=contexts,
        rows=tuple((row.variant.title, *(f"{place.snapshots:,}" for place in row.places)) for row in wall.rows),
        note=f"in {bytes_text(wall.machine.host_bytes * Fraction(wall.machine.snapshots.value))} of host memory",
    )
    if wall.measured:
        yield _measured(wall)


def _held(row: Row) -> tuple[str, ...]:
    each = row.variant
    fixed = bytes_text(each.state_bytes) if each.state_bytes else "-"
    growth = bytes_text(each.token_bytes) if each.token_bytes else "-"
    return (each.title, fixed, growth, *(bytes_text(place.held_bytes) for place in row.places))


def _batch(number: int) -> Callable[[Place], Step | None]:
    return lambda place: place.steps[number]


def _requests(batch: int) -> str:
    return "1 request" if batch == 1 else f"{batch:,} requests"


def _speeds(wall: Wall, title: str, contexts: tuple[str, ...], chosen: Callable[[Place], Step | None]) -> Table:
    steps = [[chosen(place) for place in row.places] for row in wall.rows]
    computing = any(each and each.fits and each.bound is Bound.COMPUTE for row in steps for each in row)
    return Table(
        title=title,
        columns=contexts,
        rows=tuple((row.variant.title, *map(_speed, each)) for row, each in zip(wall.rows, steps, strict=True)),
        note="c: bound by operations; all others by bandwidth" if computing else "",
    )


def _speed(found: Step | None) -> str:
    if found is None or not found.fits:
        return NO_ROOM
    mark = " c" if found.bound is Bound.COMPUTE else ""
    return f"{short(found.tokens_per_second)}{mark}"


def _cost(wall: Wall, found: Step | None) -> str:
    if found is None or not found.fits:
        return NO_ROOM
    cost = wall.per_million(found.tokens_per_second, wall.prices.chosen)
    return "?" if cost is None else short(cost)


def _split(wall: Wall) -> Table:
    """Of the model, at the largest batch and every context."""
    first, batch = wall.rows[0], wall.batches[-1]
    steps = [place.steps[-1] for place in first.places]
    spare = wall.machine.memory_bytes - wall.machine.usable_bytes
    weights = bytes_text(first.variant.weights_bytes)
    return Table(
        title=f"Memory of the chips, {_requests(batch)}",
        columns=tuple(tokens_text(context) for context in wall.contexts),
        rows=(
            ("weights", *(weights for _ in steps)),
            ("states", *(bytes_text(each.state_bytes) for each in steps)),
            ("keys and values", *(bytes_text(each.cache_bytes) for each in steps)),
            ("workspace", *(bytes_text(spare) for _ in steps)),
            ("free", *(bytes_text(each.free_bytes) if each.fits else NO_ROOM for each in steps)),
            ("a step takes", *(seconds_text(each.seconds) for each in steps)),
            ("operations a byte", *(short(each.intensity) for each in steps)),
        ),
        note=f"of the model itself; a chip is balanced at {short(_ridge(wall))} operations a byte",
    )


def _ridge(wall: Wall) -> Fraction:
    return wall.machine.flops_per_second / wall.machine.bytes_per_second


def _measured(wall: Wall) -> Table:
    rows = []
    for each in wall.measured:
        cost = wall.per_million(Fraction(each.tokens_per_second), wall.prices.chosen)
        rows.append(
            (
                f"{_requests(each.batch)} at {tokens_text(each.context)}",
                short(Fraction(each.tokens_per_second)),
                short(each.step.tokens_per_second),
                f"{short(100 * each.share)} %",
                "?" if cost is None else short(cost),
            )
        )
    columns = ("tokens/s", "bound", "of it", f"{wall.currency} per 1M")
    over = any(each.share > 1 for each in wall.measured)
    note = "more than the bound: another model, slice or batch was measured, or tokens were not decoded one by one"
    return Table(title="Measured", columns=columns, rows=tuple(rows), note=note if over else "")


def _notes(wall: Wall) -> Iterator[str]:
    found = wall.prices.chosen
    if isinstance(found, MissingPrice):
        yield f"no dollars: {found.reason}"
    other = wall.prices.on_demand if wall.prices.capacity is PriceModel.SPOT else wall.prices.spot
    if isinstance(found, Price) and isinstance(other, Price):
        said = "on demand" if wall.prices.capacity is PriceModel.SPOT else "on spot"
        times = Fraction(other.unit_price) / Fraction(found.unit_price)
        price, instead = money(found.unit_price, UNIT), money(other.unit_price, UNIT)
        yield f"a chip costs {price} {wall.currency} an hour; {said} {instead}, {short(times)} times as much"
    yield (
        f"all have {wall.rows[0].variant.parameters:,} parameters: what is compared is memory alone, "
        "not what the models are worth"
    )


def _doubt(wall: Wall) -> str:
    return "" if wall.fresh else "the price is stale or undated: used, and no ground for a budget"


def _too_large(wall: Wall) -> str:
    weights, usable = bytes_text(wall.rows[0].variant.weights_bytes), bytes_text(wall.machine.usable_bytes)
    shape = wall.machine.shape
    needed = -(-Fraction(wall.rows[0].variant.weights_bytes) * shape.chips // wall.machine.usable_bytes)
    return (
        f"The weights are {weights}, and {shape.accelerator_type} has {usable} for them: at least {int(needed):,} "
        "chips are needed (--shape)."
    )


def _each(found: tuple[Gain, ...], value: Callable[[Gain], int | None]) -> str:
    """`531 tokens (softmax GQA-4), 133 (softmax MHA-16)`: hybrids, which share in both, are left out."""
    known = [(value(gain), gain.other.title) for gain in found if not gain.other.state_bytes]
    shown = [f"{number:,} tokens ({title})" for number, title in known if number is not None]
    return ", ".join(shown)


def _memory_plot(wall: Wall) -> Plot:
    room = wall.machine.usable_bytes - wall.rows[0].variant.weights_bytes
    lines = [
        Series(name=row.variant.title, points=tuple((Fraction(at), Fraction(row.variant.held(at))) for at in DRAWN))
        for row in wall.rows
        if all(row.variant.held(at) for at in DRAWN)
    ]
    if room > 0:
        ends = (Fraction(DRAWN[0]), Fraction(DRAWN[-1]))
        lines.append(Series(name="all that is free", points=tuple((at, room) for at in ends), limit=True))
    return Plot(
        title="Bytes of one request",
        x_label="tokens of the request",
        y_label="bytes",
        series=tuple(lines),
        x_text=lambda value: tokens_text(int(value)),
        y_text=bytes_text,
        x_base=2,
        y_base=2,
    )


def _speed_plot(wall: Wall) -> Plot:
    lines = []
    for row in wall.rows:
        found = [(at, most_requests(row.variant, wall.machine, at)) for at in DRAWN]
        points = tuple(
            (Fraction(at), step(row.variant, wall.machine, most, at).tokens_per_second) for at, most in found if most
        )
        if points:
            lines.append(Series(name=row.variant.title, points=points))
    return Plot(
        title="Tokens a second with as many requests as fit",
        x_label="tokens of the request",
        y_label="tokens/s",
        series=tuple(lines),
        x_text=lambda value: tokens_text(int(value)),
        y_text=lambda value: short(Fraction(decimal_of(value))),
        x_base=2,
    )
