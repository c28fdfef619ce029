"""Small invented worlds: resources in Google's REST JSON, and the record and context that hold them."""

from __future__ import annotations

import datetime
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from policies.audit.context import Context
from policies.audit.pricing import Pricing
from policies.audit.record import Item, Metric, Missing, Part, Record, Series, Window
from policies.audit.terms import Terms
from policies.prices.book import PriceBook, load_book

PROJECT = "reef"
ZONE = "us-central1-b"
URL = f"https://www.googleapis.com/compute/v1/projects/{PROJECT}"
NOW = datetime.datetime(2026, 11, 15, 10, 0, tzinfo=datetime.UTC)
END = NOW - datetime.timedelta(minutes=5)
OLD = "2026-09-01T03:00:00.000-07:00"
"""Older than any window, in Compute's own way of writing it."""


@cache
def book() -> PriceBook:
    return load_book(Path(__file__).with_name("auditors") / "book.csv")


def context(
    inventory: Mapping[Part, Sequence[Item]],
    metrics: Mapping[Metric, Sequence[Series]] | None = None,
    *,
    missing: tuple[Missing, ...] = (),
    terms: Terms | None = None,
) -> Context:
    """What an auditor sees of a world that was asked for exactly the parts and metrics given."""
    terms = terms or Terms()
    record = Record(
        project=PROJECT,
        recorded_at=NOW,
        window=Window(start=END - terms.window, end=END),
        inventory={part: tuple(items) for part, items in inventory.items()},
        metrics={metric: tuple(series) for metric, series in (metrics or {}).items()},
        missing=missing,
    )
    return Context(record=record, terms=terms, pricing=Pricing(record=record, book=book(), as_of=NOW.date()))


def zonal(collection: str, name: str, **fields: Any) -> dict[str, Any]:
    """A resource of a zone in the form of Compute v1, made long ago."""
    at = f"{URL}/zones/{ZONE}"
    named = {"id": str(zlib.crc32(f"{collection}/{name}".encode())), "name": name, "selfLink": f"{at}/{collection}/{name}"}
    return {**named, "zone": at, "creationTimestamp": OLD, "labels": {}} | fields


def regional(collection: str, name: str, **fields: Any) -> dict[str, Any]:
    """A resource of the region, made long ago."""
    at = f"{URL}/regions/us-central1"
    return {"name": name, "selfLink": f"{at}/{collection}/{name}", "region": at, "creationTimestamp": OLD} | fields


def everywhere(collection: str, name: str, **fields: Any) -> dict[str, Any]:
    """A global resource, made long ago."""
    return {"name": name, "selfLink": f"{URL}/global/{collection}/{name}", "creationTimestamp": OLD} | fields


def disk(name: str = "coral", type: str = "hyperdisk-ml", gib: int = 100, **fields: Any) -> dict[str, Any]:
    return zonal("disks", name, type=f"{URL}/zones/{ZONE}/diskTypes/{type}", sizeGb=str(gib), status="READY") | fields


def instance(name: str = "head", machine: str = "e2-standard-4", **fields: Any) -> dict[str, Any]:
    kind = f"{URL}/zones/{ZONE}/machineTypes/{machine}"
    return zonal("instances", name, machineType=kind, status="RUNNING", disks=[], lastStartTimestamp=OLD) | fields


def node(name: str = "pod", accelerator: str = "v6e-8", **fields: Any) -> dict[str, Any]:
    """A node in the form of TPU v2: an answer names both the type and the configuration."""
    return {
        "name": f"projects/{PROJECT}/locations/{ZONE}/nodes/{name}",
        "id": "4611686018427387904",
        "state": "READY",
        "acceleratorType": accelerator,
        "acceleratorConfig": {"type": "V6E", "topology": "2x4"},
        "schedulingConfig": {"spot": True},
        "createTime": "2026-11-01T12:00:00.123456789Z",
        "labels": {},
    } | fields
