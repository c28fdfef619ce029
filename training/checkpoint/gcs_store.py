"""Checkpoints in Cloud Storage, through Google's client.

STORAGE_EMULATOR_HOST or TENSORSTORE_GCS_HTTP_URL name another endpoint, which is asked without credentials.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, final

from training.checkpoint.errors import AlreadyThereError, BucketError, ChangedError, CheckpointError, NotThereError
from training.checkpoint.retries import retried
from training.checkpoint.store import SCHEME, AbstractStore, Part, Versioned

try:
    import requests
    from google.api_core import exceptions
    from google.auth.credentials import AnonymousCredentials
    from google.auth.exceptions import GoogleAuthError, TransportError
    from google.cloud.storage import Client
    from google.cloud.storage.exceptions import DataCorruption, InvalidResponse
except ImportError as missing:
    raise CheckpointError("gs:// needs Google's client: pip install 'spotrail[train]'") from missing

ResultT = TypeVar("ResultT")
RETRY_SECONDS: Final = 120.0
"""For which a call is tried again."""
_TIMEOUT: Final = (10.0, 60.0)
"""Seconds to connect, and between two bytes."""
_DOUBTS: Final = 3
"""Times that a download must match the checksum that the store has of the object."""
_CONNECTIONS: Final = 32
_ADDRESS: Final = re.compile(r"gs://(?P<bucket>[a-z0-9][a-z0-9._-]{1,220}[a-z0-9])(?:/(?P<prefix>[^\s]*))?")
_PASSING: Final = (408, 429, 500, 502, 503, 504)
_BROKEN: Final = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
    DataCorruption,
    TransportError,
    ConnectionError,
)
_ENDPOINTS: Final = ("STORAGE_EMULATOR_HOST", "TENSORSTORE_GCS_HTTP_URL")


@final
class GcsStore(AbstractStore):
    """Objects under a prefix of a bucket."""

    threads = 16

    def __init__(self, url: str, *, retry_seconds: float = RETRY_SECONDS) -> None:
        """`url`: gs://bucket/prefix; `retry_seconds`: after which 429, 503 and broken connections become an error."""
        match = _ADDRESS.fullmatch(url)
        if match is None:
            raise CheckpointError(
                f"{url!r} names no bucket; write it as gs://bucket/prefix. A bucket has 3 to 222 lower-case letters, "
                "digits, '-', '_' and '.'"
            )
        prefix = (match["prefix"] or "").strip("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self.url = f"{SCHEME}{match['bucket']}/{prefix}".rstrip("/")
        self._seconds = retry_seconds
        self._client = _client()
        self._bucket = self._client.bucket(match["bucket"])

    def get(self, key: str) -> bytes:
        return self._content(self._blob(key), key)

    def create(self, key: str, parts: Sequence[Part]) -> None:
        try:
            self._upload(key, b"".join(map(bytes, parts)), 0)
        except exceptions.PreconditionFailed as error:
            raise AlreadyThereError(f"{self.url}/{key} is there already") from error

    def read(self, key: str) -> Versioned | None:
        blob = self._blob(key)
        try:
            content = self._content(blob, key)
        except NotThereError:
            return None
        return Versioned(content=content, generation=str(blob.generation))

    def replace(self, key: str, content: bytes, generation: str | None) -> None:
        try:
            self._upload(key, content, int(generation or 0))
        except exceptions.PreconditionFailed as error:
            raise ChangedError(f"{self.url}/{key} was changed by another process") from error

    def folders(self) -> tuple[str, ...]:
        return tuple(name.rstrip("/") for name in self._listed()[0])

    def objects(self) -> tuple[str, ...]:
        return self._listed()[1]

    def keys(self, folder: str) -> tuple[str, ...]:
        def listed() -> list[str]:
            prefix = f"{self._prefix}{folder}/"
            return [
                blob.name for blob in self._client.list_blobs(self._bucket, prefix=prefix, timeout=_TIMEOUT, retry=None)
            ]

        return tuple(sorted(name.removeprefix(self._prefix) for name in self._tried(listed, "listed")))

    def delete(self, key: str) -> None:
        def deleted() -> None:
            try:
                self._blob(key).delete(timeout=_TIMEOUT, retry=None)
            except exceptions.NotFound:
                return

        self._tried(deleted, "deleted", key)

    def close(self) -> None:
        self._client.close()

    def _listed(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The folders in the root, each with its slash, and the objects beside them."""

        def listed() -> tuple[list[str], list[str]]:
            pages = self._client.list_blobs(
                self._bucket, prefix=self._prefix, delimiter="/", timeout=_TIMEOUT, retry=None
            )
            objects = [blob.name for blob in pages]  # the folders are known when these have been gone through
            return list(pages.prefixes), objects

        folders, objects = (
            tuple(sorted(name.removeprefix(self._prefix) for name in names)) for names in self._tried(listed, "listed")
        )
        return folders, objects

    def _blob(self, key: str) -> Any:
        return self._bucket.blob(self._prefix + key)

    def _content(self, blob: Any, key: str) -> bytes:
        # A bit that the line flipped is right the next time; one that the store has is damage, which the caller finds.
        doubts: list[Exception] = []

        def downloaded() -> bytes:
            checksum = "auto" if len(doubts) < _DOUBTS else None
            try:
                content: bytes = blob.download_as_bytes(timeout=_TIMEOUT, retry=None, checksum=checksum)
            except DataCorruption as error:
                doubts.append(error)
                raise
            return content

        try:
            return self._tried(downloaded, "read", key)
        except exceptions.NotFound as error:
            raise NotThereError(f"{self.url}/{key} is not there") from error

    def _upload(self, key: str, content: bytes, generation: int) -> None:
        """Raises PreconditionFailed, also where an earlier try was done and only its answer was lost."""

        def uploaded() -> None:
            self._blob(key).upload_from_file(
                io.BytesIO(content),
                size=len(content),
                content_type="application/octet-stream",
                if_generation_match=generation,
                checksum="crc32c",
                timeout=_TIMEOUT,
                retry=None,
            )

        self._tried(uploaded, "written", key)

    def _tried(self, call: Callable[[], ResultT], what: str, key: str = "") -> ResultT:
        """Raises StoreError for all but what a condition or a name was answered with."""
        try:
            return retried(call, passing=_passes, seconds=self._seconds)
        except (exceptions.PreconditionFailed, exceptions.NotFound) as error:
            if isinstance(error, exceptions.NotFound) and not key:
                raise BucketError(f"{self.url} cannot be {what}: there is no such bucket") from error
            raise
        except (exceptions.GoogleAPIError, requests.RequestException, GoogleAuthError, OSError, ValueError) as error:
            tried = f" after {self._seconds:g} s of trying" if _passes(error) else ""
            place = f"{self.url}/{key}".rstrip("/")
            raise BucketError(f"{place} cannot be {what}{tried}: {_shown(error)}") from error


def _client() -> Any:
    endpoint = next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), None)
    if endpoint is None:
        try:
            client = Client()
        except (GoogleAuthError, OSError, ValueError) as error:
            raise BucketError(
                f"{SCHEME} cannot be reached without credentials: {_shown(error).rstrip('.')}; run `gcloud auth "
                "application-default login`, or name a key or a project in the environment "
                "(GOOGLE_APPLICATION_CREDENTIALS, GOOGLE_CLOUD_PROJECT)"
            ) from error
    else:
        address = endpoint if "://" in endpoint else f"http://{endpoint}"
        client = Client(
            project="none",
            credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]
            client_options={"api_endpoint": address},
        )
    for scheme in ("https://", "http://"):
        # As many connections as there may be threads, and no tries of its own: `retried` counts them.
        adapter = requests.adapters.HTTPAdapter(pool_maxsize=_CONNECTIONS, max_retries=0)
        client._http.mount(scheme, adapter)
    return client


def _passes(error: Exception) -> bool:
    """Whether the same call may be answered another time."""
    if isinstance(error, InvalidResponse):
        return getattr(error.response, "status_code", 0) in _PASSING
    if isinstance(error, exceptions.GoogleAPICallError):
        return error.code in _PASSING
    return isinstance(error, _BROKEN)


def _shown(error: Exception) -> str:
    text = getattr(error, "message", None) or str(error) or type(error).__name__
    return str(text).strip().splitlines()[0][:300]
