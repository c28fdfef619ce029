"""How the live APIs are reached: Google's own clients, made when first asked for, and what to say when they fail."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, final
from urllib.parse import urlsplit

from policies.audit.live.failures import CloudError, installed, passes, plain, reason, told
from policies.errors import InputError

if TYPE_CHECKING:
    from google.api_core.retry import Retry
    from google.cloud import monitoring_v3, tpu_v2

_PARTIAL: Final[Mapping[str, str]] = {"returnPartialSuccess": "true"}
"""A parameter of every list of Compute Engine that the requests of the packaged client do not have."""
_SCOPES: Final = ("Zone", "Region", "Global")
_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"


@final
@dataclass(frozen=True, kw_only=True)
class Access:
    """How the APIs are reached, and with what patience. Raises InputError."""

    endpoint: str | None = None
    """`http://127.0.0.1:8080`: a server on this machine that speaks REST and, without TLS, gRPC; None for Google's."""
    first_wait_s: float = 1.0
    """Before the first retry; each wait is twice as long as the one before, up to half a minute."""
    deadline_s: float = 120.0
    """After which a call that was told 429 or 503 is no longer repeated."""
    call_s: float = 60.0
    """After which one call without an answer is given up."""
    part_s: float = 600.0
    """After which a part of the project that has not come whole is given up."""

    def __post_init__(self) -> None:
        if self.endpoint is not None:
            _check_endpoint(self.endpoint)
        for name in ("first_wait_s", "deadline_s", "call_s", "part_s"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name} is {getattr(self, name)} s; it must be more than 0")

    @property
    def address(self) -> str | None:
        """`127.0.0.1:8080` of the endpoint."""
        return None if self.endpoint is None else self.endpoint.removeprefix("http://").rstrip("/")


@final
class Calls:
    """How often each method was called, repeated calls and all. Safe in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def add(self, method: str) -> None:
        """One more call of `compute.disks.aggregatedList`."""
        with self._lock:
            self._counts[method] += 1

    def counts(self) -> Mapping[str, int]:
        """The calls so far by method, in the order of their names."""
        with self._lock:
            return dict(sorted(self._counts.items()))


@final
class Clients:
    """Google's clients, each made when it is first asked for. Safe in threads.

    Raises InputError where they are not installed, CredentialsError where nobody is logged in, CloudError where the
    endpoint does not answer.
    """

    def __init__(self, access: Access, calls: Calls | None = None, say: Callable[[str], None] = lambda _: None) -> None:
        self.access = access
        self.calls = calls or Calls()
        self.say = say
        self._lock = threading.RLock()
        self._made: dict[str, Any] = {}
        with installed():
            import google.api_core
            import google.auth  # noqa: F401
        self._check_answer()

    def compute(self, collection: str) -> Any:
        """The client of a collection of Compute Engine, by the name of its class: `Disks` for `DisksClient`."""
        return self._once(f"compute.{collection}", lambda: self._compute(f"{collection}Client", {}))

    def compute_lists(self, collection: str) -> Any:
        """The same for lists: a zone that does not answer is then named, and does not fail the others."""
        return self._once(f"compute.{collection} lists", lambda: self._compute(f"{collection}Client", _PARTIAL))

    @property
    def tpu(self) -> tpu_v2.TpuClient:
        """The client of Cloud TPU."""
        client: tpu_v2.TpuClient = self._once("tpu", self._tpu)
        return client

    @property
    def monitoring(self) -> monitoring_v3.MetricServiceClient:
        """The client of Cloud Monitoring's time series."""
        client: monitoring_v3.MetricServiceClient = self._once("monitoring", self._monitoring)
        return client

    @property
    def storage(self) -> Any:
        """The client of Cloud Storage."""
        return self._once("storage", self._storage)

    @property
    def publisher(self) -> Any:
        """The client that publishes to Pub/Sub."""
        return self._once("publisher", self._publisher)

    def how(self, method: str) -> dict[str, Any]:
        """The arguments `retry` and `timeout` of a call of that method, which also count what is repeated."""
        return {"retry": self._retry(method), "timeout": min(self.access.call_s, self.access.deadline_s)}

    def asked(self, method: str) -> None:
        """Count a call."""
        self.calls.add(method)

    def _retry(self, method: str) -> Retry:
        from google.api_core.retry import Retry

        def again(error: Exception) -> None:
            self.calls.add(method)
            self.say(f"{method}: {reason(error)}; trying again")

        # Without this the clients give up at the first 429: their methods repeat 503 at most.
        return Retry(
            predicate=passes,
            initial=self.access.first_wait_s,
            maximum=max(30.0, self.access.first_wait_s),
            multiplier=2.0,
            # Nobody waits longer: a thread that was given up is not to knock on for minutes.
            timeout=min(self.access.deadline_s, self.access.part_s),
            on_error=again,
        )

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        with self._lock:
            if name not in self._made:
                with installed(), told(name):
                    self._made[name] = make()
            return self._made[name]

    def _compute(self, name: str, query: Mapping[str, str]) -> Any:
        from google.cloud import compute_v1

        client = getattr(compute_v1, name)
        make = client.get_transport_class("rest")
        if self.access.address is None:
            transport = make(credentials=self._credentials)
        else:
            transport = make(host=self.access.address, url_scheme="http", credentials=self._credentials)
            # No proxy of the environment stands between us and our own machine.
            transport._session.trust_env = False
            # Operations are polled by clients of their own, which a transport would otherwise make for Google's host.
            if not name.endswith("OperationsClient"):
                transport._extended_operations_services = {
                    f"{scope.lower()}_operations": self.compute(f"{scope}Operations") for scope in _SCOPES
                }
        transport._session.params = dict(query)
        return client(transport=transport)

    def _tpu(self) -> Any:
        from google.cloud import tpu_v2
        from google.cloud.tpu_v2.services.tpu.transports import TpuGrpcTransport

        return self._grpc(tpu_v2.TpuClient, TpuGrpcTransport)

    def _monitoring(self) -> Any:
        from google.cloud import monitoring_v3
        from google.cloud.monitoring_v3.services.metric_service.transports import MetricServiceGrpcTransport

        return self._grpc(monitoring_v3.MetricServiceClient, MetricServiceGrpcTransport)

    def _publisher(self) -> Any:
        from google.cloud import pubsub_v1  # type: ignore[attr-defined]
        from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport

        return self._grpc(pubsub_v1.PublisherClient, PublisherGrpcTransport)

    def _grpc(self, client: Any, transport: Any) -> Any:
        if self.access.address is None:
            return client(credentials=self._credentials)
        import grpc

        options = (("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1))
        return client(transport=transport(channel=grpc.insecure_channel(self.access.address, options=options)))

    def _storage(self) -> Any:
        from google.auth.transport.requests import AuthorizedSession
        from google.cloud.storage import Client

        if self.access.address is None:
            return Client(project=None, credentials=self._credentials)
        session = AuthorizedSession(self._credentials)  # type: ignore[no-untyped-call]
        session.trust_env = False
        endpoint = {"api_endpoint": f"http://{self.access.address}"}
        return Client(project="-", credentials=self._credentials, _http=session, client_options=endpoint)

    @cached_property
    def _credentials(self) -> Any:
        if self.access.address is not None:
            from google.auth.credentials import AnonymousCredentials

            return AnonymousCredentials()  # type: ignore[no-untyped-call]
        import google.auth

        credentials, _ = google.auth.default(scopes=[_SCOPE])
        return credentials

    def _check_answer(self) -> None:
        """A wrong port is told at once, not after the patience that a busy server deserves."""
        if self.access.address is None:
            return
        host, _, port = self.access.address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
        except OSError as error:
            why = error.strerror or str(error)
            raise CloudError(f"--endpoint {self.access.endpoint}: nothing answers there: {why}") from None


def _check_endpoint(endpoint: str) -> None:
    try:
        parts = urlsplit(endpoint if "://" in endpoint else f"http://{endpoint}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    here = host == "localhost"
    with contextlib.suppress(ValueError):
        here = here or ipaddress.ip_address(host).is_loopback
    bare = parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username or parts.password)
    if not (here and port and bare and parts.scheme == "http" and plain(endpoint) == endpoint):
        raise InputError(
            f'--endpoint is "{plain(endpoint)}"; it is the address of a server on this machine, such as '
            "http://127.0.0.1:8080, because nothing on the way is encrypted"
        )
