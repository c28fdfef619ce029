"""A Cloud Billing Catalog on this machine: a real gRPC server that speaks the messages of the packaged client.

It pages, counts and records its calls, and can be told to fail: with a status so many times, or with garbage.
"""

from __future__ import annotations

import contextlib
import datetime
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass, field
from typing import Any, Final, final

import grpc
from google.cloud import billing_v1
from google.protobuf.timestamp_pb2 import Timestamp

PREFIX: Final = "/google.cloud.billing.v1.CloudCatalog/"
PAST: Final = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)
IDS: Final = {
    "Compute Engine": "services/6F81-5844-456A",
    "Networking": "services/E505-1604-58F8",
    "Cloud Storage": "services/95FF-2EF5-5EA1",
}


def sku(
    sku_id: str,
    description: str,
    regions: Sequence[str],
    unit: str,
    *prices: str | tuple[float, str],
    family: str = "Compute",
    group: str = "TPU",
    usage_type: str = "OnDemand",
    currency: str = "USD",
    effective: datetime.datetime | None = PAST,
) -> billing_v1.Sku:
    """A SKU as the API has it. A price is the amount of the one step, or a pair: where its step begins, the amount."""
    steps = [price if isinstance(price, tuple) else (0.0, price) for price in prices]
    info = billing_v1.PricingInfo(
        pricing_expression=billing_v1.PricingExpression(
            usage_unit=unit,
            tiered_rates=[
                billing_v1.PricingExpression.TierRate(start_usage_amount=start, unit_price=_money(amount, currency))
                for start, amount in steps
            ],
        )
    )
    if effective is not None:
        info.effective_time = _timestamp(effective)
    return billing_v1.Sku(
        name=f"services/x/skus/{sku_id}",
        sku_id=sku_id,
        description=description,
        category=billing_v1.Category(resource_family=family, resource_group=group, usage_type=usage_type),
        service_regions=regions,
        pricing_info=[info],
    )


def _money(amount: str, currency: str) -> dict[str, Any]:
    whole, _, part = amount.partition(".")
    return {"currency_code": currency, "units": int(whole), "nanos": int(part.ljust(9, "0"))}


def _timestamp(when: datetime.datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(when)
    return stamp


@final
@dataclass(kw_only=True)
class Catalogue:
    """What the server serves, how it fails, and what it was asked."""

    skus: Mapping[str, Sequence[billing_v1.Sku]]
    """By display name of the service."""
    twins: bool = False
    """List every service a second time under another id."""
    page_size: int = 5000
    """The most that a page has, whatever is asked for."""
    failures: list[grpc.StatusCode] = field(default_factory=list)
    """Given to the next calls of ListSkus, one each."""
    always: grpc.StatusCode | None = None
    """Given to every call."""
    garbage: bool = False
    """Answer ListSkus with bytes that are no message."""
    looping: bool = False
    """Give the same page token for ever."""
    calls: list[str] = field(default_factory=list)
    """`ListSkus services/6F81-5844-456A 0`: method, parent, start of the page."""
    keys: list[str | None] = field(default_factory=list)
    """The API key of each call."""
    sizes: list[int] = field(default_factory=list)
    """The page size of each call."""

    def services(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._enter("ListServices", request, context)
        found = [billing_v1.Service(name=IDS[name], display_name=name) for name in self.skus]
        if self.twins:
            found += [billing_v1.Service(name=f"{one.name}-TWIN", display_name=one.display_name) for one in found]
        start, end, token = self._page(request, len(found))
        return billing_v1.ListServicesResponse(services=found[start:end], next_page_token=token)

    def list_skus(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._enter(f"ListSkus {request.parent}", request, context)
        if self.failures:
            context.abort(self.failures.pop(0), "quota\x1b[31m exceeded")
        if self.garbage:
            return b"\xff\xff\xff\xff garbage"
        found = self.skus[next(name for name, parent in IDS.items() if parent == request.parent)]
        start, end, token = self._page(request, len(found))
        answer = billing_v1.ListSkusResponse(skus=found[start:end], next_page_token=token)
        return billing_v1.ListSkusResponse.serialize(answer)

    def _enter(self, call: str, request: Any, context: grpc.ServicerContext) -> None:
        self.calls.append(f"{call} {request.page_token or 0}")
        self.sizes.append(request.page_size)
        given = {entry.key: entry.value for entry in context.invocation_metadata()}
        self.keys.append(given.get("x-goog-api-key"))
        if self.always is not None:
            context.abort(self.always, "the caller does not have permission")

    def _page(self, request: Any, count: int) -> tuple[int, int, str]:
        start = int(request.page_token or 0)
        end = start + min(self.page_size, request.page_size)
        if self.looping:
            return 0, end, "0"
        return start, end, str(end) if end < count else ""


@final
class _Handler(grpc.GenericRpcHandler):
    """The two methods of the catalogue by their paths: the package has the messages, but no service of its own."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._lock = threading.Lock()
        self._methods = {
            f"{PREFIX}ListServices": grpc.unary_unary_rpc_method_handler(
                self._one_at_a_time(catalogue.services),
                request_deserializer=billing_v1.ListServicesRequest.deserialize,
                response_serializer=billing_v1.ListServicesResponse.serialize,
            ),
            f"{PREFIX}ListSkus": grpc.unary_unary_rpc_method_handler(
                self._one_at_a_time(catalogue.list_skus),
                request_deserializer=billing_v1.ListSkusRequest.deserialize,
                response_serializer=None,  # bytes, so that garbage is possible
            ),
        }

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        return self._methods.get(handler_call_details.method)

    def _one_at_a_time(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def called(request: Any, context: grpc.ServicerContext) -> Any:
            with self._lock:
                return method(request, context)

        return called


@contextlib.contextmanager
def served(catalogue: Catalogue) -> Iterator[str]:
    """Serve it on a free port of 127.0.0.1; gives `127.0.0.1:port`."""
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    server.add_generic_rpc_handlers((_Handler(catalogue),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(grace=None).wait()
