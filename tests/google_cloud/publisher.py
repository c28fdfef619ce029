"""Pub/Sub: messages are kept, and given ids."""

from __future__ import annotations

from typing import Any, final

from google.pubsub_v1 import types as pubsub

from tests.google_cloud.errors import Refusal
from tests.google_cloud.faults import Call
from tests.google_cloud.world import World


@final
class Publisher:
    """The publisher service of a world. Every topic exists."""

    def __init__(self, world: World) -> None:
        self._world = world

    def publish(self, request: Any, call: Call) -> Any:
        """Keeps the messages; their data is text."""
        if not request.messages:
            raise Refusal(400, "badRequest", "The value for message_count is too small. You passed 0.")
        for message in request.messages:
            self._world.published.append(
                {"topic": request.topic, "data": message.data.decode(), "attributes": dict(message.attributes)}
            )
        first = len(self._world.published) - len(request.messages)
        return pubsub.PublishResponse(message_ids=[str(first + index + 1) for index in range(len(request.messages))])
