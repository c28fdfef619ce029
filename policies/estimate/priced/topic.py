"""Pub/Sub topics: every byte bills when it is published and again for each subscription that it is delivered to."""

from __future__ import annotations

from typing import Final

from policies.estimate.market import Market, bill
from policies.estimate.model import ResourceEstimate
from policies.estimate.registry import Priced
from policies.resources import Resource

TOPIC: Final = "gcp:pubsub/topic:Topic"
SUBSCRIPTION: Final = "gcp:pubsub/subscription:Subscription"
GIB_PER_TIB: Final = 1024


def price(resource: Resource, market: Market) -> ResourceEstimate:
    """The throughput of a topic and its subscriptions."""
    subscriptions = len(market.resources.referrers(resource, "topic", SUBSCRIPTION))
    tib = market.usage_of(resource).message_gib * (1 + subscriptions) / GIB_PER_TIB
    note = f"published once, delivered to {subscriptions} subscriptions"
    line = market.used(resource, "message_gib", "throughput", "pubsub.throughput", tib, "TiB", "global", note=note)
    return bill(resource, "global", "topic", (line,))


PRICED: Final = Priced(types=(TOPIC,), price=price)
