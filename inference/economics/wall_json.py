"""The memory wall as strict JSON, schema `spotrail.wall/1`: every number is an exact decimal string.

    schema, currency, price_book{as_of,sha256}, as_of, complete, fresh,
    model{name,d_model,layers,parameters,active_parameters,weights_bytes},
    machine{shape,chips,hosts,zone,memory_bytes,usable_bytes,bytes_per_second,flops_per_second,host_bytes},
    capacity, prices{spot,on_demand} (a chip-hour; null where the book has none),
    variants[]{key, title, state_bytes, token_bytes, parameters, prefill_crossover_tokens (null where nothing grows),
      contexts[]{context, held_bytes, most_requests, host_snapshots,
        steps[]{batch, fits, bytes_moved, flops, intensity, bound (bandwidth|compute), seconds, tokens_per_second,
          per_million{spot,on_demand}, memory{weights,states,cache,workspace,free}},
        full (such a step with as many requests as fit; null where none does)}},
    gains[]{one, other (keys of variants), memory_tokens, traffic_tokens, state_tokens, speed_tokens (null: never)},
    measured[]{batch, context, tokens_per_second, bound_tokens_per_second, share, per_million{spot,on_demand}},
    remarks[]{key, text}, assumptions[]{option, what, value, unit, source},
    missing[]{item, price_model, location, reason}

Bytes are whole, seconds and rates to 12 places; `free` is below 0 where a batch does not fit, and its rate is void.
`complete` is false where the price of the chosen capacity is missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Final, TypeAlias

from inference.economics.assumptions import Assumption
from inference.economics.decoding import Step
from inference.economics.wall_report import wall_remarks
from inference.memory_wall import Gain, Measured, Place, Row, Wall, gains
from policies.money import decimal_of, plain
from policies.prices.book import MissingPrice, Price, PriceModel

SCHEMA: Final = "spotrail.wall/1"

Json: TypeAlias = "bool | str | Sequence[Json] | Mapping[str, Json] | None"


def wall_json(wall: Wall) -> str:
    """The wall as text, one key a line, with a final newline."""
    return json.dumps(wall_document(wall), indent=2, allow_nan=False) + "\n"


def wall_document(wall: Wall) -> Mapping[str, Json]:
    """The wall as `spotrail.wall/1`."""
    machine, sizes = wall.machine, wall.sizes
    return {
        "schema": SCHEMA,
        "currency": wall.currency,
        "price_book": {
            "as_of": wall.book_as_of.isoformat() if wall.book_as_of else None,
            "sha256": wall.book_sha256,
        },
        "as_of": wall.as_of.isoformat(),
        "complete": not wall.missing,
        "fresh": wall.fresh,
        "model": {
            "name": sizes.name,
            "d_model": str(sizes.d_model),
            "layers": str(len(sizes.layers)),
            "parameters": str(sizes.parameters),
            "active_parameters": str(sizes.active_parameters),
            "weights_bytes": str(wall.rows[0].variant.weights_bytes),
        },
        "machine": {
            "shape": machine.shape.accelerator_type,
            "chips": str(machine.shape.chips),
            "hosts": str(machine.shape.hosts),
            "zone": wall.prices.zone,
            "memory_bytes": number(machine.memory_bytes),
            "usable_bytes": number(machine.usable_bytes),
            "bytes_per_second": number(machine.bytes_per_second),
            "flops_per_second": number(machine.flops_per_second),
            "host_bytes": str(machine.host_bytes),
        },
        "capacity": "spot" if wall.prices.capacity is PriceModel.SPOT else "on-demand",
        "prices": {"spot": _price(wall.prices.spot), "on_demand": _price(wall.prices.on_demand)},
        "variants": [_row(row, wall) for row in wall.rows],
        "gains": [_gain(gain) for gain in gains(wall.rows, machine)],
        "measured": [_measured(each, wall) for each in wall.measured],
        "remarks": [{"key": remark.key, "text": remark.text} for remark in wall_remarks(wall)],
        "assumptions": [assumption_document(each) for each in machine.assumptions],
        "missing": [missing_document(each) for each in wall.missing],
    }


def number(value: Fraction | Decimal | int) -> str:
    """A whole number as it is, another one with its places."""
    found = Fraction(value)
    return str(found.numerator) if found.denominator == 1 else plain(decimal_of(found))


def assumption_document(each: Assumption) -> Mapping[str, Json]:
    """One entry of `assumptions`."""
    return {
        "option": each.option,
        "what": each.what,
        "value": number(each.value),
        "unit": each.unit,
        "source": each.source,
    }


def missing_document(each: MissingPrice) -> Mapping[str, Json]:
    """One entry of `missing`."""
    return {
        "item": each.item,
        "price_model": each.model.value,
        "location": each.location,
        "reason": each.reason,
    }


def _price(found: Price | MissingPrice) -> str | None:
    return plain(found.unit_price) if isinstance(found, Price) else None


def _row(row: Row, wall: Wall) -> Mapping[str, Json]:
    each = row.variant
    return {
        "key": each.key,
        "title": each.title,
        "state_bytes": str(each.state_bytes),
        "token_bytes": str(each.token_bytes),
        "parameters": str(each.parameters),
        "prefill_crossover_tokens": _whole(each.prefill_crossover),
        "contexts": [_place(place, row, wall) for place in row.places],
    }


def _place(place: Place, row: Row, wall: Wall) -> Mapping[str, Json]:
    return {
        "context": str(place.context),
        "held_bytes": str(place.held_bytes),
        "most_requests": str(place.most),
        "host_snapshots": str(place.snapshots),
        "steps": [_step(each, row, wall) for each in place.steps],
        "full": None if place.full is None else _step(place.full, row, wall),
    }


def _step(each: Step, row: Row, wall: Wall) -> Mapping[str, Json]:
    spare = wall.machine.memory_bytes - wall.machine.usable_bytes
    return {
        "batch": str(each.batch),
        "fits": each.fits,
        "bytes_moved": str(each.bytes_moved),
        "flops": str(each.flops),
        "intensity": number(each.intensity),
        "bound": each.bound.value,
        "seconds": number(each.seconds),
        "tokens_per_second": number(each.tokens_per_second),
        "per_million": _per_million(each.tokens_per_second, wall),
        "memory": {
            "weights": str(row.variant.weights_bytes),
            "states": str(each.state_bytes),
            "cache": str(each.cache_bytes),
            "workspace": number(spare),
            "free": number(each.free_bytes),
        },
    }


def _per_million(rate: Fraction, wall: Wall) -> Mapping[str, Json]:
    costs = {"spot": wall.prices.spot, "on_demand": wall.prices.on_demand}
    return {key: _cost(wall.per_million(rate, price)) for key, price in costs.items()}


def _cost(value: Fraction | None) -> str | None:
    return None if value is None else plain(decimal_of(value))


def _gain(gain: Gain) -> Mapping[str, Json]:
    return {
        "one": gain.one.key,
        "other": gain.other.key,
        "memory_tokens": _whole(gain.memory),
        "traffic_tokens": _whole(gain.traffic),
        "state_tokens": _whole(gain.state_tokens),
        "speed_tokens": _whole(gain.speed),
    }


def _whole(value: int | None) -> str | None:
    return None if value is None else str(value)


def _measured(each: Measured, wall: Wall) -> Mapping[str, Json]:
    return {
        "batch": str(each.batch),
        "context": str(each.context),
        "tokens_per_second": number(each.tokens_per_second),
        "bound_tokens_per_second": number(each.step.tokens_per_second),
        "share": number(each.share),
        "per_million": _per_million(Fraction(each.tokens_per_second), wall),
    }
