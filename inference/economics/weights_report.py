"""The plan for weights in words, tables and plots: which way is cheapest, which fastest, and what to run."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from inference.economics.figures import bytes_text, seconds_text, short
from inference.economics.report import Plot, Remark, Report, Series, Table
from inference.economics.weights_bill import Line
from inference.economics.weights_sources import Source
from inference.weights_plan import Plan, Way, best_cost, break_evens, cost_at, curve
from policies.money import decimal_of
from policies.prices.book import PriceModel
from policies.report.figures import money

DRAWN: Final = tuple(Fraction(2) ** power for power in range(-3, 8))
"""Restarts a day of the plot: one in eight days to 128."""


def weights_report(plan: Plan) -> Report:
    """Everything that `spotrail weights-plan` shows."""
    return Report(
        heading=f"spotrail weights-plan {bytes_text(plan.fleet.size_bytes)}",
        terms=_terms(plan),
        answers=tuple(_answers(plan)),
        tables=(_overview(plan), *(_bill(way, plan) for way in plan.ways)),
        remarks=tuple(plan_remarks(plan)),
        assumptions=plan.assumptions,
        plots=tuple(_plots(plan)),
        notes=tuple(_notes(plan)),
        next_steps=tuple(_steps(plan)),
    )


def plan_remarks(plan: Plan) -> Iterator[Remark]:
    """What follows from the figures."""
    for way in plan.ways:
        for text in way.warnings:
            yield Remark(key="room", text=f"{text}.", warning=True)
    for missing in plan.missing:
        yield Remark(key="missing", text=f"{missing.reason}.", warning=True)
    yield Remark(key="throughput", text=_throughput(plan))
    for each in break_evens(plan):
        text = (
            f"{each.cheaper.title} is cheaper than {each.than.title} from {short(each.restarts_per_day)} restarts of "
            "each replica a day on"
        )
        fitted = plan.best is not None and plan.fleet.throughput is None and Source.DISK in (each.cheaper, each.than)
        yield Remark(key="break-even", text=f"{text}{', with the throughput that is best there' if fitted else ''}.")
    best = _chosen(plan)
    yield Remark(key="vllm", text=_vllm(best, plan))
    for way in plan.ways:
        if way is not best:
            flags = " && ".join(way.source.of_vllm)
            yield Remark(key=f"vllm-{way.source.value}", text=f"vLLM with {way.source.title} instead: {flags}")


def _terms(plan: Plan) -> str:
    fleet = plan.fleet
    capacity = "spot" if fleet.capacity is PriceModel.SPOT else "on demand"
    dated = f"prices of {plan.book_as_of}" if plan.book_as_of else "prices without a date"
    return f"{fleet.replicas} x {fleet.shape.accelerator_type} · {fleet.zone} · {capacity} · {dated}"


def _answers(plan: Plan) -> Iterator[str]:
    cheapest, fastest, known = plan.cheapest, plan.fastest, plan.cheapest_known
    if cheapest is None:
        lacking = [way.source.title for way in plan.ways if not way.complete]
        lack = "lacks a price" if len(lacking) == 1 else "lack prices"
        others = f"; of the others {known.source.title} is: {_cost(known, plan)}, {_time(known)}" if known else ""
        yield f"Which is cheapest cannot be said, {' and '.join(lacking)} {lack}{others}"
    elif cheapest is fastest:
        title = f"{cheapest.source.title} is cheapest and fastest"
        yield f"{title}: {_cost(cheapest, plan)}, {_time(cheapest)} a cold start"
    else:
        yield (
            f"{cheapest.source.title} is cheapest: {_cost(cheapest, plan)}, {_time(cheapest)} a cold start; "
            f"{fastest.source.title} is fastest: {_cost(fastest, plan)}, {_time(fastest)}"
        )
    fleet = plan.fleet
    starts = f"{short(fleet.restarts_per_day)} restarts of each replica a day"
    yield f"{starts}, {fleet.at_once} of {fleet.replicas} replicas at once: {short(fleet.starts)} cold starts a month."


def _cost(way: Way, plan: Plan) -> str:
    least = "" if way.complete else "at least "
    return f"{least}{money(decimal_of(way.monthly))} {plan.currency} /month"


def _time(way: Way) -> str:
    return seconds_text(way.start.seconds)


def _overview(plan: Plan) -> Table:
    ways = plan.ways
    return Table(
        title="Side by side",
        columns=tuple(way.source.title for way in ways),
        rows=(
            ("cold start", *map(_time, ways)),
            ("a host reads, MiB/s", *(short(way.start.mibps) for way in ways)),
            ("kept from more by", *(way.start.limit for way in ways)),
            (f"standing, {plan.currency} /month", *map(_standing, ways)),
            ("reads at starts", *(_reads(way) for way in ways)),
            ("accelerators waiting", *(_waiting(way) for way in ways)),
            ("total", *(_total(way) for way in ways)),
        ),
    )


def _standing(way: Way) -> str:
    return _sum([line for line in way.lines if not line.by_start])


def _reads(way: Way) -> str:
    return _sum([line for line in way.lines if line.by_start and line.unit != "chip-hour"])


def _waiting(way: Way) -> str:
    return _sum([line for line in way.lines if line.unit == "chip-hour"])


def _sum(lines: list[Line]) -> str:
    if any(line.monthly is None for line in lines):
        return "?"
    return money(decimal_of(sum((line.monthly or Fraction(0) for line in lines), Fraction(0))))


def _total(way: Way) -> str:
    return money(decimal_of(way.monthly)) if way.complete else f"at least {money(decimal_of(way.monthly))}"


def _bill(way: Way, plan: Plan) -> Table:
    doubtful = any(not line.freshness.trusted for line in way.lines)
    return Table(
        title=way.source.title,
        columns=("quantity", "unit", "unit price", plan.currency),
        rows=tuple(_row(line) for line in way.lines),
        note="* stale or undated: used, and no ground for a budget" if doubtful else "",
    )


def _row(line: Line) -> tuple[str, ...]:
    mark = "" if line.freshness.trusted else " *"
    price = "?" if line.unit_price is None else f"{line.unit_price:,f}{mark}"
    cost = "?" if line.monthly is None else money(decimal_of(line.monthly))
    return (f"{line.name}{f' ({line.note})' if line.note else ''}", short(line.quantity), line.unit, price, cost)


def _throughput(plan: Plan) -> str:
    fleet = plan.fleet
    price = next((line for line in plan.ways[0].lines if line.name == "volume throughput"), None)
    standing = price.monthly if price and price.monthly is not None else None
    said = f"The volume has {plan.throughput:,} MiB/s"
    if plan.best is not None:
        same = "which is" if plan.best == plan.throughput else f"and {plan.best:,} would be"
        said += f", {same} the cheapest with the accelerators that wait for it (of {fleet.least:,} to {fleet.most:,})"
    if standing is not None:
        unread = money(decimal_of(standing * plan.idle))
        share = short(100 * plan.idle)
        said += f". {unread} {plan.currency} of its {money(decimal_of(standing))} a month pay for the {share} % of"
        said += " the time in which nobody reads"
    said += f". Unset, Google provisions {plan.unset:,} MiB/s"
    if standing is not None and plan.throughput:
        said += f" = {money(decimal_of(standing / plan.throughput * plan.unset))} a month"
    return f"{said}."


def _chosen(plan: Plan) -> Way:
    """The cheapest of those that have all their prices, else the fastest."""
    return plan.cheapest_known or plan.fastest


def _vllm(best: Way, plan: Plan) -> str:
    why = "the cheapest" if best.complete else "the fastest"
    flags = " && ".join(best.source.of_vllm)
    return f"A user of vLLM on TPU has the same three and would take {best.source.title}, {why}: {flags}"


def _notes(plan: Plan) -> Iterator[str]:
    yield "boot of the VM, compilation and warm-up are the same for all three, and in no figure here"
    if plan.fleet.updates_per_month:
        yield "the VM and staging disk that fill a new volume are not counted: spotrail plan prices them (hydration)"


def _steps(plan: Plan) -> Iterator[str]:
    yield _chosen(plan).source.ours
    yield "the same with --format html --output weights.html, for the plots"


def _plots(plan: Plan) -> Iterator[Plot]:
    lines = tuple(
        Series(name=way.source.title, points=tuple((at, cost_at(way, plan, at)) for at in DRAWN))
        for way in plan.ways
        if way.complete and way.monthly
    )
    if plan.best is not None and plan.fleet.throughput is None:
        points = tuple((at, best_cost(plan, at)) for at in DRAWN)
        lines = (*lines, Series(name="Hyperdisk ML, to fit", points=points))
    if lines:
        yield Plot(
            title="Cost of a month by restarts",
            x_label="restarts of each replica a day",
            y_label=plan.currency,
            series=lines,
            x_text=short,
            y_text=short,
            x_base=2,
        )
    points = tuple((Fraction(mibps), cost) for mibps, cost in curve(plan))
    if points and points[0][0] < points[-1][0]:
        yield Plot(
            title="Throughput of the volume and the accelerators that wait for it",
            x_label="MiB/s provisioned",
            y_label=f"{plan.currency} a month",
            series=(Series(name="throughput + waiting", points=points),),
            x_text=short,
            y_text=short,
            x_base=2,
            y_base=2,
        )
