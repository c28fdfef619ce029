"""Findings to Pub/Sub: one message a finding, in order, in requests that Pub/Sub takes.

Limits: https://cloud.google.com/pubsub/quotas#resource_limits (10 MB a request and a message, 1,000 messages a
request, 1,024 bytes of an attribute's value).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from policies.audit.live.access import Clients
from policies.audit.live.failures import told
from policies.errors import InputError
from policies.guard.telling import Message

MOST_MESSAGES: Final = 500
MOST_BYTES: Final = 5_000_000
"""Of the data of one request: half of what Pub/Sub takes, the rest is for attributes."""
MOST_ATTRIBUTE: Final = 1024
"""Bytes of the value of an attribute."""
METHOD: Final = "pubsub.topics.publish"


@final
@dataclass(frozen=True, kw_only=True)
class Envelope:
    """A message as Pub/Sub gets it."""

    data: bytes
    attributes: Mapping[str, str]
    ordering_key: str


def check_topic(topic: str) -> str:
    """`topic` itself. Raises InputError for what is not `projects/<project>/topics/<name>`."""
    parts = topic.split("/")
    if len(parts) != 4 or parts[0] != "projects" or parts[2] != "topics" or not (parts[1] and parts[3]):
        raise InputError(f'--topic is "{topic}"; it must be projects/PROJECT/topics/NAME')
    return topic


def envelope(message: Message, stack: str) -> Envelope:
    """A message in its envelope. What a subscription may filter by is an attribute."""
    data = json.dumps(message.document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    attributes = {"kind": message.kind, "id": message.id, "stack": stack, "resource": message.resource}
    return Envelope(
        data=data,
        attributes={key: _cut(value) for key, value in attributes.items() if value},
        ordering_key=_cut(f"spotrail/{stack}"),
    )


def batches(envelopes: Iterable[Envelope]) -> Iterator[tuple[Envelope, ...]]:
    """The envelopes in their order, as many in a request as it takes."""
    batch: list[Envelope] = []
    size = 0
    for each in envelopes:
        if batch and (len(batch) == MOST_MESSAGES or size + len(each.data) > MOST_BYTES):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(each)
        size += len(each.data)
    if batch:
        yield tuple(batch)


def publish(clients: Clients, topic: str, messages: Iterable[Message], stack: str) -> int:
    """Publish all messages in their order; the number of them. Raises CloudError at the first request that fails."""
    from google.pubsub_v1 import PublisherClient, types

    sent = 0
    for batch in batches(envelope(message, stack) for message in messages):
        made: list[Any] = [
            types.PubsubMessage(data=each.data, attributes=dict(each.attributes), ordering_key=each.ordering_key)
            for each in batch
        ]
        with told(METHOD):
            clients.asked(METHOD)
            # The client's own `publish` hands over to a thread that gives up silently when the process ends.
            request = types.PublishRequest(topic=topic, messages=made)
            PublisherClient.publish(clients.publisher, request=request, **clients.how(METHOD))
        sent += len(batch)
    return sent


def _cut(text: str) -> str:
    """At most as many bytes as an attribute may have."""
    return text.encode()[:MOST_ATTRIBUTE].decode(errors="ignore")
