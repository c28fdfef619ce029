"""A bucket of Cloud Storage to read from: lists of objects, and ranges of one generation of an object.

Over the JSON API and its credentials alone: a range goes from the connection to the file without a copy between.
STORAGE_EMULATOR_HOST names another endpoint, which is asked without credentials.
Source: https://cloud.google.com/storage/docs/json_api/v1/objects, .../json_api/v1/status-codes
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import functools
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, final
from urllib.parse import quote

import google.auth
import requests
from google.auth.exceptions import GoogleAuthError, TransportError
from google.auth.transport.requests import AuthorizedSession
from urllib3.exceptions import HTTPError, MaxRetryError

from inference.errors import ServingError
from inference.weights.sources.attempts import Halt, Patience, Trouble, tried
from inference.weights.sources.endpoint import GOOGLE, emulator
from inference.weights.sources.errors import CloudError, PassingError, StalledError
from inference.weights.sources.spans import Span

_SCOPE: Final = "https://www.googleapis.com/auth/devstorage.read_only"
_PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})
_BROKEN: Final = (requests.RequestException, HTTPError, TransportError, OSError)
_LASTING: Final = (
    requests.exceptions.InvalidURL,
    requests.exceptions.InvalidSchema,
    requests.exceptions.MissingSchema,
    requests.TooManyRedirects,
)
"""What no other try would change, as a proxy in the environment that is no address."""
_DISTRUST: Final = "CERTIFICATE_VERIFY_FAILED"
"""What OpenSSL says, however deep the libraries put it."""
_FIELDS: Final = "items(name,size,crc32c,generation,contentEncoding),prefixes,nextPageToken"
_CONTENT_RANGE: Final = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
_PIECE: Final = 1 << 20
"""The most bytes of one read from a connection."""
_MOST_OBJECTS: Final = 20_000
"""No model has more; a list that goes on is of something else."""


@final
@dataclass(frozen=True, kw_only=True)
class RemoteObject:
    """One generation of an object: other bytes under the same name are another object."""

    name: str
    bytes: int
    crc32c: int
    generation: str
    encoding: str
    """Content-Encoding: with one, the bytes that lie there are not those that were uploaded. Mostly empty."""


@final
@dataclass(frozen=True, kw_only=True)
class Listing:
    """What a list has."""

    objects: tuple[RemoteObject, ...]
    folders: tuple[str, ...] = ()
    """Prefixes up to the delimiter, with it."""


@final
class Bucket:
    """Any number of threads may read from it at once. To be closed."""

    def __init__(
        self, name: str, patience: Patience, connections: int, halt: Halt, heard: Callable[[Trouble], None]
    ) -> None:
        """`halt`: when it is set, no call waits or goes on. `heard` is told of what `list` and `read` try again.

        Raises CloudError where there are no credentials, ServingError for an endpoint that is none.
        """
        self.name = name
        self._patience = patience
        self._halt = halt
        self._heard = heard
        self._endpoint, self._session = _session()
        adapter = requests.adapters.HTTPAdapter(pool_maxsize=connections, max_retries=0)
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, adapter)

    def list(self, prefix: str, delimiter: str = "") -> Listing:
        """The live objects whose names begin so. Raises ServingError, CloudError, StoppedError."""
        query = {"prefix": prefix, "delimiter": delimiter, "fields": _FIELDS, "maxResults": "1000"}
        items: list[RemoteObject] = []
        folders: list[str] = []
        tokens: set[str] = set()
        while True:
            page = tried(functools.partial(self._page, query), self._patience, self._halt, self._heard)
            items += (self._object(item) for item in page.get("items", ()))
            folders += page.get("prefixes", ())
            token = page.get("nextPageToken")
            if not token:
                return Listing(objects=tuple(items), folders=tuple(folders))
            if token in tokens:
                raise CloudError(f"gs://{self.name}: the list of its objects comes back to a page that it had before")
            if len(items) > _MOST_OBJECTS:
                raise ServingError(
                    f"gs://{self.name}/{prefix}: has more than {_MOST_OBJECTS} objects; name the folder of one model"
                )
            tokens.add(token)
            query = {**query, "pageToken": token}

    def read(self, remote: RemoteObject) -> bytes:
        """All of a small object. Raises CloudError, StoppedError; its checksum is the caller's."""

        def whole() -> bytes:
            pieces: list[bytes] = []
            self.fetch(remote, Span(0, remote.bytes), pieces.append)
            return b"".join(pieces)

        return tried(whole, self._patience, self._halt, self._heard) if remote.bytes else b""

    def fetch(self, remote: RemoteObject, span: Span, sink: Callable[[bytes], None]) -> None:
        """Give `sink` a range piece by piece. Raises PassingError where it ends early, CloudError."""
        shown = f"gs://{self.name}/{remote.name}"
        headers = {"Range": f"bytes={span.start}-{span.stop - 1}", "Accept-Encoding": "identity"}
        query = {"alt": "media", "generation": remote.generation}
        with self._asked(f"/{quote(remote.name, safe='')}", query, headers, shown) as response:
            self._check_range(response, remote, span)
            came = 0
            for piece in self._pieces(response, shown):
                came += len(piece)
                if came > span.size:
                    raise PassingError(f"{shown}: more bytes came than were asked for")
                sink(piece)
        if came < span.size:
            raise PassingError(f"{shown}: the answer ended after {came} of {span.size} bytes")

    def close(self) -> None:
        """End all connections."""
        self._session.close()

    def _page(self, query: Mapping[str, str]) -> dict[str, Any]:
        with self._asked("", query, {}, f"gs://{self.name}") as response:
            try:
                page = response.json()
            except (ValueError, *_BROKEN) as error:
                raise PassingError(f"gs://{self.name}: the list of its objects came broken") from error
        if not isinstance(page, dict):
            raise PassingError(f"gs://{self.name}: the list of its objects is no JSON object")
        return page

    def _object(self, item: Mapping[str, Any]) -> RemoteObject:
        name = str(item.get("name"))
        try:
            crc32c = int.from_bytes(base64.b64decode(item["crc32c"], validate=True), "big")
            return RemoteObject(
                name=name,
                bytes=int(item["size"]),
                crc32c=crc32c,
                generation=str(item["generation"]),
                encoding=str(item.get("contentEncoding", "")),
            )
        except (KeyError, ValueError, binascii.Error) as error:
            raise CloudError(f"gs://{self.name}/{name}: the list has no size, generation or crc32c of it") from error

    @contextlib.contextmanager
    def _asked(
        self, path: str, query: Mapping[str, str], headers: Mapping[str, str], shown: str
    ) -> Iterator[requests.Response]:
        timeout = (self._patience.connect_seconds, self._patience.stall_seconds)
        url = f"{self._endpoint}/storage/v1/b/{self.name}/o{path}"
        try:
            response = self._session.get(url, params=query, headers=headers, stream=True, timeout=timeout)
        except _LASTING as error:
            raise CloudError(f"{shown}: {_shown(error)}; see HTTPS_PROXY and HTTP_PROXY in the environment") from error
        except _BROKEN as error:
            if _DISTRUST in str(error):
                raise CloudError(
                    f"{shown}: the certificate is not trusted: {_shown(error)}; is a proxy in between? Name its "
                    "authority in REQUESTS_CA_BUNDLE, and see the clock of this machine"
                ) from error
            raise PassingError(f"{shown}: {_shown(error)}") from error
        except GoogleAuthError as error:
            if error.retryable:
                raise PassingError(f"{shown}: the credentials were not renewed: {_shown(error)}") from error
            raise CloudError(f"{shown}: the credentials were not renewed: {_shown(error)}; {_LOGIN}") from error
        with response:
            self._check_status(response, shown, of_object=bool(path))
            yield response

    def _check_status(self, response: requests.Response, shown: str, *, of_object: bool) -> None:
        status = response.status_code
        if status in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
            return
        said = f"{shown}: the answer was {status}"
        if status in _PASSING:
            raise PassingError(said)
        if status == HTTPStatus.NOT_FOUND and of_object:
            raise CloudError(f"{shown}: was replaced or deleted during the download; start again for what is there now")
        if status == HTTPStatus.NOT_FOUND:
            raise ServingError(f"{shown}: there is no such bucket; see `gcloud storage buckets list`")
        if status == HTTPStatus.UNAUTHORIZED:
            raise CloudError(f"{said}: the credentials are not accepted; {_LOGIN}")
        if status == HTTPStatus.FORBIDDEN:
            raise CloudError(
                f"{said}: the account may not read there; give it the role: gcloud storage buckets "
                f"add-iam-policy-binding gs://{self.name} --role=roles/storage.objectViewer --member=serviceAccount:..."
            )
        raise CloudError(f"{said}, which a read should never be answered with")

    def _check_range(self, response: requests.Response, remote: RemoteObject, span: Span) -> None:
        shown = f"gs://{self.name}/{remote.name}"
        match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        got = (0, remote.bytes - 1, remote.bytes) if match is None else tuple(map(int, match.groups()))
        if got != (span.start, span.stop - 1, remote.bytes):
            raise CloudError(
                f"{shown}: bytes {span.start} to {span.stop - 1} of {remote.bytes} were asked for, and the answer has "
                f"{got[0]} to {got[1]} of {got[2]}; is a proxy in between?"
            )

    def _pieces(self, response: requests.Response, shown: str) -> Iterator[bytes]:
        """What the connection brings, as it comes, for as long as it brings enough."""
        began, came = time.monotonic(), 0
        while True:
            try:
                piece = response.raw.read1(_PIECE, decode_content=False)
            except _BROKEN as error:
                raise PassingError(f"{shown}: {_shown(error)}") from error
            if not piece:
                return
            yield piece
            came += len(piece)
            passed = time.monotonic() - began
            if passed >= self._patience.stall_seconds:
                if came < self._patience.stall_bytes:
                    raise StalledError(f"{shown}: {came} bytes came in {passed:.1f} s")
                began, came = time.monotonic(), 0


_LOGIN: Final = (
    "run `gcloud auth application-default login`, or give the machine a service account with the scope "
    "devstorage.read_only, or name a key in GOOGLE_APPLICATION_CREDENTIALS"
)


def _session() -> tuple[str, requests.Session]:
    """The endpoint, and what asks it."""
    if (other := emulator()) is not None:
        return other, requests.Session()
    try:
        credentials, _ = google.auth.default(scopes=[_SCOPE])
    except (GoogleAuthError, OSError, ValueError) as error:
        raise CloudError(
            f"gs:// cannot be reached without credentials: {_shown(error).rstrip('.')}; {_LOGIN}"
        ) from error
    return GOOGLE, AuthorizedSession(credentials)  # type: ignore[no-untyped-call]


def _shown(error: BaseException) -> str:
    """In one line: of urllib3 the reason alone, without the URL, and its words before the exception of the system."""
    if error.args and isinstance(error.args[0], MaxRetryError) and error.args[0].reason is not None:
        return _shown(error.args[0].reason)
    said = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
    return (said.strip() or type(error).__name__).splitlines()[0][:300]
