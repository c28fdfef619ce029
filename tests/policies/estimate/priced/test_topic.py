"""Pub/Sub: what is published bills again for each subscription."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from policies.estimate.model import Estimate
from policies.resources import UNKNOWN, Resource

TOPIC = "gcp:pubsub/topic:Topic"
SUBSCRIPTION = "gcp:pubsub/subscription:Subscription"


def test_every_delivery_bills(make: Callable[..., Resource], price_stack: Callable[..., Estimate]) -> None:
    topic = make(TOPIC, "alerts")
    subscriptions = [
        make(SUBSCRIPTION, name, {"topic": UNKNOWN}, property_dependencies={"topic": (topic.urn,)}) for name in "ab"
    ]
    found = price_stack(topic, *subscriptions, alerts={"message_gib": "512"})
    # 512 GiB published and twice delivered: 1.5 TiB x 40
    assert found.resources[0].amount.monthly == Decimal(60)
    assert found.resources[0].components[0].note == "published once, delivered to 2 subscriptions"
    assert found.resources[1].free == "its deliveries bill with the topic"
    assert price_stack(topic).amount.monthly == 0
