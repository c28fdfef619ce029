"""Components as CSV in the columns of FOCUS 1.2: list prices of a month to come, for tools that read bills.

It is shaped like FOCUS and does not conform to it. What only a bill knows stays empty: BilledCost, ContractedCost,
EffectiveCost, the billing account, the invoice, and the periods, as an estimate is of any month of 730 hours. The
columns with `x_` are ours.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from typing import Final

from policies.estimate.model import CostComponent, ResourceEstimate
from policies.money import decimal_of, plain
from policies.report.escapes import cell, line
from policies.report.headline import standing
from policies.report.quantities import of_a_month, without_price
from policies.report.stack import StackReport
from policies.resources import Resource

COLUMNS: Final = (
    "AvailabilityZone",
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "ListUnitPrice",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "RegionId",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "SkuMeter",
    "Tags",
    "x_Estimate",
    "x_PriceAsOf",
    "x_Confidence",
    "x_Note",
    "x_Project",
    "x_Stack",
)
SERVICES: Final = {
    "alerting.": ("Management and Governance", "Cloud Monitoring"),
    "artifact-registry.": ("Developer Tools", "Artifact Registry"),
    "disk.": ("Storage", "Compute Engine"),
    "gke.": ("Compute", "Kubernetes Engine"),
    "image.": ("Storage", "Compute Engine"),
    "instance.": ("Compute", "Compute Engine"),
    "logging.": ("Management and Governance", "Cloud Logging"),
    "network.": ("Networking", "Networking"),
    "pubsub.": ("Integration", "Cloud Pub/Sub"),
    "run.": ("Compute", "Cloud Run"),
    "scheduler.": ("Integration", "Cloud Scheduler"),
    "snapshot.": ("Storage", "Compute Engine"),
    "storage.": ("Storage", "Cloud Storage"),
    "tpu.": ("AI and Machine Learning", "Cloud TPU"),
    "transfer.": ("Networking", "Networking"),
}
"""Category and service by what an item begins with."""
OTHER: Final = ("Other", "Google Cloud")


def stack_focus(report: StackReport) -> str:
    """One row a component of what will stand, and one for each part without a price, whose costs are empty."""
    out = io.StringIO()
    rows = csv.DictWriter(out, COLUMNS, restval="", lineterminator="\n")
    rows.writeheader()
    for found in standing(report.change.after):
        rows.writerows({**_of_all(found, report), **row} for row in _rows(found))
    return out.getvalue()


def _of_all(found: ResourceEstimate, report: StackReport) -> dict[str, str]:
    return {
        **_place(found.location),
        "BillingCurrency": report.change.after.currency,
        "ChargeCategory": "Usage",
        "ChargeFrequency": "Usage-Based",
        "ProviderName": "Google Cloud",
        "PublisherName": "Google Cloud",
        "ResourceId": cell(found.resource.urn),
        "ResourceName": cell(found.resource.name),
        "ResourceType": cell(found.resource.type),
        "Tags": _tags(found.resource),
        "x_Project": cell(report.project),
        "x_Stack": cell(report.stack),
    }


def _place(location: str) -> dict[str, str]:
    """Region and zone; a zone ends in a letter of its own, `us-central1-b`."""
    parts = line(location).split("-")
    zone = len(parts) == 3
    region = "-".join(parts[:2]) if zone else "-".join(parts)
    return {"RegionId": cell(region), "AvailabilityZone": cell("-".join(parts)) if zone else ""}


def _rows(found: ResourceEstimate) -> Iterator[dict[str, str]]:
    yield from map(_row, found.components)
    for part in found.unpriced:
        quantity = without_price(part)
        yield {
            **_service(part.item),
            "ChargeDescription": cell(f"{part.item}: {part.reason}"),
            "PricingQuantity": "" if quantity is None else plain(decimal_of(quantity)),
            "PricingUnit": part.unit,
            "x_Estimate": "no price",
        }
    for hidden in found.unknown:
        yield {"ChargeDescription": cell(f"{hidden.path}: {hidden.reason}"), "x_Estimate": "not known"}


def _row(part: CostComponent) -> dict[str, str]:
    return {
        **_service(part.item),
        "ChargeDescription": cell(part.name),
        "ListCost": plain(part.amount.monthly),
        "ListUnitPrice": plain(part.unit_price),
        "PricingCategory": "Dynamic" if part.spot else "Standard",
        "PricingQuantity": plain(decimal_of(of_a_month(part))),
        "PricingUnit": part.unit,
        "x_Estimate": "month of 730 hours",
        "x_PriceAsOf": str(part.as_of or ""),
        "x_Confidence": part.freshness.value,
        "x_Note": cell(part.note),
    }


def _service(item: str) -> dict[str, str]:
    category, service = next((names for start, names in SERVICES.items() if item.startswith(start)), OTHER)
    return {"ServiceCategory": category, "ServiceName": service, "SkuMeter": cell(item)}


def _tags(resource: Resource) -> str:
    """The labels as a JSON object; what is unknown or secret is left out."""
    labels = resource.value("labels")
    found = labels.items() if isinstance(labels, Mapping) else ()
    return json.dumps({line(key): line(value) for key, value in found if isinstance(value, str)})
