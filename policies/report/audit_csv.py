"""The audit as a CSV file: one row a verdict, with the columns of the JSON, for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Final

from policies.audit.model import Audit
from policies.report.audit_json import Json, verdict_document
from policies.report.escapes import cell

COLUMNS: Final = (
    "resource", "type", "location", "verdict", "coverage", "provisioned_mibps", "mean_mibps", "p99_mibps",
    "p99_points_s", "peak_mibps", "monthly_waste", "wasted_so_far", "since", "since_confidence", "remedy", "to_mibps",
    "monthly_saving", "message",
)  # fmt: skip


def audit_csv(audit: Audit) -> str:
    """The verdicts, worst first. What is not known is an empty cell; a figure is never `NaN`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for verdict in audit.verdicts:
        row = verdict_document(verdict)
        remedy = row["remedy"]
        flat = {**row, "remedy": None, **(_flat(remedy) if isinstance(remedy, Mapping) else {})}
        writer.writerow(cell(value) if isinstance(value := flat.get(key), str) else "" for key in COLUMNS)
    return text.getvalue()


def _flat(remedy: Mapping[str, Json]) -> Mapping[str, Json]:
    return {"remedy": remedy["kind"], "to_mibps": remedy["to_mibps"], "monthly_saving": remedy["monthly_saving"]}
