"""Small invented worlds: resources in Google's REST JSON, and the record and context that hold them."""

from __future__ import annotations

import datetime
import zlib
from array import array
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from policies.audit.context import Auditor, Context
from policies.audit.model import AuditFinding, Verdict
from policies.audit.pricing import Pricing
from policies.audit.record import Item, Kind, Metric, Missing, Part, Record, Series, Window
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
    named = {
        "id": str(zlib.crc32(f"{collection}/{name}".encode())),
        "name": name,
        "selfLink": f"{at}/{collection}/{name}",
    }
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


def told(name: str, seen: Context) -> list[Verdict | AuditFinding]:
    """Everything that the auditor of that module says."""
    auditor: Auditor = import_module(f"policies.audit.auditors.{name}").AUDITOR
    return list(auditor.look(seen))


def verdict(name: str, seen: Context, resource: str = "") -> Verdict:
    """The one verdict that the auditor of that module gives, or that on the resource of that name."""
    found = [each for each in told(name, seen) if isinstance(each, Verdict) and resource in ("", each.name)]
    assert len(found) == 1, found
    return found[0]


def findings(name: str, seen: Context) -> list[AuditFinding]:
    """The findings of the auditor of that module."""
    return [each for each in told(name, seen) if isinstance(each, AuditFinding)]


def gauge(
    labels: Mapping[str, str],
    resource: Mapping[str, str],
    values: Sequence[float],
    *,
    step: int = 3600,
    end: datetime.datetime = END,
    resource_type: str = "tpu.googleapis.com/GceTpuWorker",
) -> Series:
    """A gauge whose newest point ends at `end`; the values are in the order of time, the points newest first."""
    ends = [end.timestamp() - step * back for back in range(len(values))]
    return Series(
        metric_labels=labels,
        resource_type=resource_type,
        resource_labels=resource,
        kind=Kind.GAUGE,
        whole=False,
        starts=array("d", ends),
        ends=array("d", ends),
        values=array("d", reversed(values)),
    )


def duty(worker: str, *percents: float, chip: int = 0, step: int = 3600, end: datetime.datetime = END) -> Series:
    """The duty cycles of one chip of a worker, one a step, the last one ending at `end`."""
    where = {"resource_container": PROJECT, "location": ZONE, "worker_id": worker}
    return gauge({"accelerator_id": str(chip)}, where, percents, step=step, end=end)
