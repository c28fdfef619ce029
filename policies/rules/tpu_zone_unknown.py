"""A zone that Google does not list for v6e: the create call waits for capacity that never comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from policies.estimate.model import UnknownInput
from policies.hardware.errors import HardwareError
from policies.hardware.zones import check_zone, is_zone
from policies.resources import Opaque, Resource
from policies.rules.cluster_pools import CLUSTER, each_pool
from policies.rules.machines import SLICES, is_tpu, place_of
from policies.rules.model import Context, Rule, Severity, Violation


def _check(resource: Resource, context: Context) -> Iterator[Violation]:
    tpu = is_tpu(resource, context.resources)
    if isinstance(tpu, Opaque):
        yield Violation.hidden("machineType", tpu)
    if tpu is not True:
        return
    zone = place_of(resource, context.resources)
    if isinstance(zone, UnknownInput):
        yield Violation(message=f"{zone.path}: {zone.reason}", decided=False)
    elif is_zone(zone):
        try:
            check_zone(zone)
        except HardwareError as error:
            yield Violation(message=" ".join(str(error).split("\n")))


RULE: Final = Rule(
    id="TPU-ZONE-UNKNOWN",
    title="A slice is in a zone that Google lists for v6e",
    severity=Severity.WARNING,
    applies_to=(*SLICES, CLUSTER),
    remediation="Set spotrail:zone, or the zone of the slice; for a zone of spotrail:extra_zones, waive this finding.",
    url="https://docs.cloud.google.com/tpu/docs/regions-zones",
    check=each_pool(_check),
)
