"""A policy pack that judges nothing: it writes what the engine tells it of each resource into SPOTRAIL_RECORD.

States and preview files leave out some options, such as deleteBeforeReplace; the engine's analyzers get them.
"""

import json
import os
from pathlib import Path

from pulumi_policy import (
    EnforcementLevel,
    PolicyPack,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
)


def record(args: ResourceValidationArgs, _report: ReportViolation) -> None:
    """Write one line of JSON."""
    told = args.opts
    timeouts = told.custom_timeouts
    line = {
        "urn": args.urn,
        "protect": bool(told.protect),
        "ignore_changes": sorted(told.ignore_changes),
        "delete_before_replace": bool(told.delete_before_replace),
        "additional_secret_outputs": sorted(told.additional_secret_outputs),
        "custom_timeouts": {
            "create": timeouts.create_seconds,
            "update": timeouts.update_seconds,
            "delete": timeouts.delete_seconds,
        },
    }
    with Path(os.environ["SPOTRAIL_RECORD"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    policy = ResourceValidationPolicy(
        name="record",
        description="Writes down what the engine says of each resource",
        validate=record,
        enforcement_level=EnforcementLevel.ADVISORY,
    )
    PolicyPack("recorder", [policy])
