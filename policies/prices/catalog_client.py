"""Reading the Cloud Billing Catalog with Google's own client, which is imported only here and only when asked."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, final

from policies.errors import InputError
from policies.prices.sku import Pricing, Rate, Sku

if TYPE_CHECKING:
    from google.cloud import billing_v1

PAGE_SIZE: Final = 5000
"""The most that the catalogue gives at once."""
INSTALL: Final = "pip install 'spotrail[live]'"
_CALL_S: Final = 60.0
"""Seconds after which one call without an answer is given up, or the deadline where that is less."""
_NANO: Final = Decimal("1e-9")

_Page = TypeVar("_Page")


@final
class CatalogError(RuntimeError):
    """The catalogue could not be read: what was asked, what came back, and what to do."""


@final
@dataclass(frozen=True, kw_only=True)
class Access:
    """How the catalogue is reached."""

    endpoint: str | None = None
    """host:port of a server on this machine that speaks gRPC without TLS; None for Google's."""
    api_key: str | None = field(default=None, repr=False)
    """Any key of a project with the Cloud Billing API; None for the application default credentials."""
    first_wait_s: float = 1.0
    """Before the first retry; each wait is twice as long as the one before, up to half a minute."""
    deadline_s: float = 120.0
    """After which a call that was told 429 or 503 is no longer repeated."""

    def __post_init__(self) -> None:
        if self.endpoint is not None:
            _check_endpoint(self.endpoint)
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.isprintable() and self.api_key):
            raise InputError("the API key has signs that no key has, or none; copy it again from the Cloud console")
        if not self.deadline_s > 0:
            raise InputError(f"the deadline is {self.deadline_s} s; it must be more than 0")


def read_catalogue(
    services: Sequence[str], access: Access, say: Callable[[str], None]
) -> Mapping[str, tuple[Sku, ...]]:
    """All SKUs of the services with these display names, in US dollars. `say` gets a line of progress now and then.

    Raises CatalogError for every failure of the API, InputError where the client is not installed.
    """
    try:
        from google.api_core.exceptions import GoogleAPIError
        from google.auth.exceptions import GoogleAuthError
    except ImportError as error:
        raise InputError(f"google-cloud-billing is not installed ({error}); install it with: {INSTALL}") from None
    try:
        with _client(access) as client:
            reader = _Reader(client, access, say)
            names = reader.service_names(services)
            return {service: tuple(reader.skus(service, names[service])) for service in services}
    except GoogleAuthError as error:
        raise CatalogError(
            f"no credentials for the Cloud Billing Catalog: {error}\n"
            "Run `gcloud auth application-default login`, or give --api-key."
        ) from error
    except GoogleAPIError as error:
        raise CatalogError(f"the Cloud Billing Catalog failed: {_cause(error)}") from error


@final
class _Reader:
    """One client with its patience."""

    def __init__(self, client: billing_v1.CloudCatalogClient, access: Access, say: Callable[[str], None]) -> None:
        from google.api_core.exceptions import ResourceExhausted, ServiceUnavailable
        from google.api_core.retry import Retry, if_exception_type

        self._say = say
        self._client = client
        # Without this the client gives up at the first 429: the method has no retry of its own.
        retry = Retry(
            predicate=if_exception_type(ResourceExhausted, ServiceUnavailable),
            initial=access.first_wait_s,
            maximum=max(30.0, access.first_wait_s),
            multiplier=2.0,
            timeout=access.deadline_s,
            on_error=lambda error: say(f"{_cause(error)}; trying again"),
        )
        key = (("x-goog-api-key", access.api_key),) if access.api_key else ()
        self._how: dict[str, Any] = {"retry": retry, "timeout": min(_CALL_S, access.deadline_s), "metadata": key}

    def service_names(self, wanted: Sequence[str]) -> Mapping[str, str]:
        """`services/6F81-5844-456A` by display name."""
        from google.cloud import billing_v1

        request = billing_v1.ListServicesRequest(page_size=PAGE_SIZE)
        found: dict[str, str] = {}
        for page in _pages(self._client.list_services(request=request, **self._how).pages):
            for service in page.services:
                if (
                    found.setdefault(service.display_name, service.name) != service.name
                    and service.display_name in wanted
                ):
                    raise CatalogError(
                        f"the Cloud Billing Catalog has two services called {service.display_name}: "
                        f"{found[service.display_name]} and {service.name}; nothing is refreshed"
                    )
        absent = [name for name in wanted if name not in found]
        if absent:
            raise CatalogError(
                f"the Cloud Billing Catalog has no service called {' or '.join(absent)} among its {len(found)}; "
                "nothing is refreshed"
            )
        return found

    def skus(self, service: str, name: str) -> Iterator[Sku]:
        """Every SKU of a service, page by page."""
        from google.cloud import billing_v1

        request = billing_v1.ListSkusRequest(parent=name, currency_code="USD", page_size=PAGE_SIZE)
        count = 0
        for page in _pages(self._client.list_skus(request=request, **self._how).pages):
            count += len(page.skus)
            self._say(f"{service}: {count} SKUs")
            yield from map(_sku, page.skus)


def _client(access: Access) -> billing_v1.CloudCatalogClient:
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import billing_v1

    if access.endpoint is None:
        nobody = AnonymousCredentials()  # type: ignore[no-untyped-call]
        return billing_v1.CloudCatalogClient(credentials=nobody if access.api_key else None)
    import grpc
    from google.cloud.billing_v1.services.cloud_catalog.transports import CloudCatalogGrpcTransport

    # No proxy of the environment stands between us and our own machine.
    channel = grpc.insecure_channel(
        access.endpoint, options=(("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1))
    )
    return billing_v1.CloudCatalogClient(transport=CloudCatalogGrpcTransport(channel=channel))


def _pages(pages: Iterator[_Page]) -> Iterator[_Page]:
    """The pages up to the last; a server that gives the same token again would never end."""
    seen: set[str] = set()
    for page in pages:
        yield page
        token = str(getattr(page, "next_page_token", ""))
        if token in seen:
            raise CatalogError("the Cloud Billing Catalog gives the same page again and again; nothing is refreshed")
        if token:
            seen.add(token)


def _sku(sku: billing_v1.Sku) -> Sku:
    return Sku(
        sku_id=sku.sku_id,
        description=sku.description,
        family=sku.category.resource_family,
        group=sku.category.resource_group,
        usage_type=sku.category.usage_type,
        regions=tuple(sku.service_regions),
        pricings=tuple(map(_pricing, sku.pricing_info)),
    )


def _pricing(info: billing_v1.PricingInfo) -> Pricing:
    expression = info.pricing_expression
    return Pricing(
        # The marshalled form of the timestamp, which its annotation does not show; None where it is absent.
        effective=cast("datetime.datetime | None", info.effective_time),
        usage_unit=expression.usage_unit,
        rates=tuple(map(_rate, expression.tiered_rates)),
    )


def _rate(rate: billing_v1.PricingExpression.TierRate) -> Rate:
    price = rate.unit_price
    # The start is a double on the wire; its shortest decimal is what was meant.
    return Rate(
        start=Decimal(repr(rate.start_usage_amount)),
        price=price.units + price.nanos * _NANO,
        currency=price.currency_code,
    )


def _cause(error: Exception) -> str:
    """The error that lies beneath, where the retries were used up."""
    beneath = getattr(error, "cause", None)
    return f"{error}" if beneath is None or str(beneath) in str(error) else f"{error}: {beneath}"


def _check_endpoint(endpoint: str) -> None:
    host, colon, port = endpoint.rpartition(":")
    here = host == "localhost"
    with contextlib.suppress(ValueError):
        here = here or ipaddress.ip_address(host.strip("[]")).is_loopback
    if not (colon and here and port.isascii() and port.isdecimal() and 0 < int(port) < 2**16):
        raise InputError(
            f'--endpoint is "{endpoint}"; it is host:port of a server on this machine, such as 127.0.0.1:8080, '
            "because nothing on the way is encrypted"
        )
