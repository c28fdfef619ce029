"""Google's clients, pointed at a loopback endpoint."""

from __future__ import annotations

import importlib
from typing import Any

import grpc
from google.auth.credentials import AnonymousCredentials
from google.cloud import compute_v1, monitoring_v3, tpu_v2
from google.cloud.monitoring_v3.services.metric_service.transports import MetricServiceGrpcTransport
from google.cloud.storage import Client  # type: ignore[import-untyped]
from google.cloud.tpu_v2.services.tpu.transports import TpuGrpcTransport
from google.pubsub_v1.services.publisher import PublisherClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport


def nobody() -> Any:
    """Credentials of nobody: the loopback asks for none."""
    return AnonymousCredentials()  # type: ignore[no-untyped-call]


def compute(endpoint: str, service: str) -> Any:
    """A client of Compute by its name: `Disks`, `ZoneOperations`."""
    made = _transport(endpoint, service)
    if not service.endswith("Operations"):
        # Otherwise `operation.result()` polls Google itself, whatever host the client was given.
        places = {"zone": "Zone", "region": "Region", "global": "Global"}
        services = {f"{place}_operations": compute(endpoint, f"{name}Operations") for place, name in places.items()}
        made._extended_operations_services = services
    return getattr(compute_v1, f"{service}Client")(transport=made)


def _transport(endpoint: str, service: str) -> Any:
    room = "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in service).lstrip("_")
    transports = importlib.import_module(f"google.cloud.compute_v1.services.{room}.transports")
    make = getattr(transports, f"{service}RestTransport")
    return make(host=endpoint.removeprefix("http://"), url_scheme="http", credentials=nobody())


def channel(endpoint: str) -> grpc.Channel:
    """For the gRPC clients; pages of a hundred thousand points are larger than gRPC's limit of 4 MiB."""
    options = (("grpc.max_receive_message_length", -1), ("grpc.enable_http_proxy", 0))
    return grpc.insecure_channel(endpoint.removeprefix("http://"), options=options)


def tpu(endpoint: str) -> Any:
    """Cloud TPU."""
    return tpu_v2.TpuClient(transport=TpuGrpcTransport(channel=channel(endpoint)))


def monitoring(endpoint: str) -> Any:
    """Cloud Monitoring."""
    return monitoring_v3.MetricServiceClient(transport=MetricServiceGrpcTransport(channel=channel(endpoint)))


def publisher(endpoint: str) -> Any:
    """Pub/Sub."""
    return PublisherClient(transport=PublisherGrpcTransport(channel=channel(endpoint)))


def buckets(endpoint: str) -> Any:
    """Cloud Storage."""
    return Client(project="acme-tpu-dev", credentials=nobody(), client_options={"api_endpoint": endpoint})
