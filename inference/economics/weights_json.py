"""The plan for weights as strict JSON, schema `spotrail.weights-plan/1`: every number is an exact decimal string.

    schema, currency, price_book{as_of,sha256}, as_of, complete, fresh,
    fleet{size_bytes,replicas,shape,hosts,zone,bucket,capacity,restarts_per_day,at_once,starts_per_month,
      updates_per_month,versions,snapshot,whole},
    volume{gib,mibps,best_mibps (null without prices),least_mibps,most_mibps,unset_mibps,idle_share},
    ways[]{source (disk|fuse|download), title, complete, monthly, fixed_monthly, starts_monthly,
      start{seconds,bytes,readers,mibps,limit},
      lines[]{name,item,quantity,unit,unit_price,monthly,by_start,freshness,note}, warnings[], ours, vllm[]},
    cheapest (a source; null where a price is missing), fastest,
    break_even[]{cheaper,than,restarts_per_day}, remarks[]{key,text},
    assumptions[]{option,what,value,unit,source}, missing[]{item,price_model,location,reason}

Quantities and amounts are of a month of 730 hours, to 12 places where they do not end; `monthly` of a way that is not
complete is a lower bound, and of a line without a price null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from inference.economics.wall_json import Json, assumption_document, missing_document, number
from inference.economics.weights_bill import Line
from inference.economics.weights_report import plan_remarks
from inference.weights_plan import Plan, Way, break_evens
from policies.money import decimal_of, plain
from policies.prices.book import PriceModel

SCHEMA: Final = "spotrail.weights-plan/1"


def weights_json(plan: Plan) -> str:
    """The plan as text, one key a line, with a final newline."""
    return json.dumps(weights_document(plan), indent=2, allow_nan=False) + "\n"


def weights_document(plan: Plan) -> Mapping[str, Json]:
    """The plan as `spotrail.weights-plan/1`."""
    fleet, cheapest = plan.fleet, plan.cheapest
    return {
        "schema": SCHEMA,
        "currency": plan.currency,
        "price_book": {
            "as_of": plan.book_as_of.isoformat() if plan.book_as_of else None,
            "sha256": plan.book_sha256,
        },
        "as_of": plan.as_of.isoformat(),
        "complete": plan.complete,
        "fresh": plan.fresh,
        "fleet": {
            "size_bytes": str(fleet.size_bytes),
            "replicas": str(fleet.replicas),
            "shape": fleet.shape.accelerator_type,
            "hosts": str(fleet.hosts),
            "zone": fleet.zone,
            "bucket": fleet.bucket,
            "capacity": "spot" if fleet.capacity is PriceModel.SPOT else "on-demand",
            "restarts_per_day": number(fleet.restarts_per_day),
            "at_once": str(fleet.at_once),
            "starts_per_month": number(fleet.starts),
            "updates_per_month": number(fleet.updates_per_month),
            "versions": str(fleet.versions),
            "snapshot": fleet.snapshot,
            "whole": fleet.whole,
        },
        "volume": {
            "gib": str(fleet.disk_gib),
            "mibps": str(plan.throughput),
            "best_mibps": None if plan.best is None else str(plan.best),
            "least_mibps": str(fleet.least),
            "most_mibps": str(fleet.most),
            "unset_mibps": str(plan.unset),
            "idle_share": number(plan.idle),
        },
        "ways": [_way(way) for way in plan.ways],
        "cheapest": None if cheapest is None else cheapest.source.value,
        "fastest": plan.fastest.source.value,
        "break_even": [
            {
                "cheaper": each.cheaper.value,
                "than": each.than.value,
                "restarts_per_day": number(each.restarts_per_day),
            }
            for each in break_evens(plan)
        ],
        "remarks": [{"key": remark.key, "text": remark.text} for remark in plan_remarks(plan)],
        "assumptions": [assumption_document(each) for each in plan.assumptions],
        "missing": [missing_document(each) for each in plan.missing],
    }


def _way(way: Way) -> Mapping[str, Json]:
    start = way.start
    return {
        "source": way.source.value,
        "title": way.source.title,
        "complete": way.complete,
        "monthly": _money(way.monthly),
        "fixed_monthly": _money(way.fixed),
        "starts_monthly": _money(way.by_starts),
        "start": {
            "seconds": number(start.seconds),
            "bytes": str(start.bytes_read),
            "readers": str(start.readers),
            "mibps": number(start.mibps),
            "limit": start.limit,
        },
        "lines": [_line(line) for line in way.lines],
        "warnings": list(way.warnings),
        "ours": way.source.ours,
        "vllm": list(way.source.of_vllm),
    }


def _line(line: Line) -> Mapping[str, Json]:
    return {
        "name": line.name,
        "item": line.item,
        "quantity": number(line.quantity),
        "unit": line.unit,
        "unit_price": None if line.unit_price is None else plain(line.unit_price),
        "monthly": None if line.monthly is None else _money(line.monthly),
        "by_start": line.by_start,
        "freshness": line.freshness.value,
        "note": line.note,
    }


def _money(value: Fraction) -> str:
    return plain(decimal_of(value))
