"""What machines send: to the internet, to the logs. Both bill by usage and by nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from policies.estimate.market import Market, Part
from policies.resources import Resource


def traffic_parts(market: Market, resource: Resource, location: str) -> Iterator[Part]:
    """Lines for the traffic that the usage of `resource` names; none where it names none."""
    usage = market.usage_of(resource)
    if usage.egress_gib:
        item = "transfer.internet.worldwide"
        yield market.line("to the internet", item, usage.egress_gib, "GiB", location)
    if usage.log_gib:
        yield market.line("logs", "logging.ingest", usage.log_gib, "GiB", location)
