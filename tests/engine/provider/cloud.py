"""The provider's way into a loopback Google Cloud: resources by their paths, over its `/loopback/resources`."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, final

from tests.engine.provider.serving import ProviderError

Item: TypeAlias = dict[str, Any]
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""What is on this machine is asked without a proxy."""


class GoogleError(ProviderError):
    """A refusal, as Google's provider tells it."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(f"googleapi: Error {code}: {message}, {reason}")
        self.code = code
        self.reason = reason


@final
class Cloud:
    """One project behind `endpoint`."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    def project(self) -> Item:
        """Its `projectId` and `projectNumber`."""
        return self._ask("GET", "/loopback/project")

    def create(self, path: str, fields: Mapping[str, Any], **options: str) -> Item:
        """Make the resource at `path`. Raises GoogleError."""
        return self._ask("POST", f"{_at(path)}?{urllib.parse.urlencode(options)}", fields)

    def get(self, path: str) -> Item | None:
        """The resource at `path`, None where there is none."""
        try:
            return self._ask("GET", _at(path))
        except GoogleError as error:
            if error.code == 404:
                return None
            raise

    def update(self, path: str, fields: Mapping[str, Any]) -> Item:
        """Set some fields of the resource at `path`. Raises GoogleError."""
        return self._ask("PATCH", _at(path), fields)

    def delete(self, path: str, **options: str) -> None:
        """Delete the resource at `path`. Raises GoogleError, also where there is none."""
        self._ask("DELETE", f"{_at(path)}?{urllib.parse.urlencode(options)}")

    def _ask(self, verb: str, path: str, body: Mapping[str, Any] | None = None) -> Item:
        if not self.endpoint:
            raise ProviderError("SPOTRAIL_WORLD is not set; it is the endpoint of the loopback Google Cloud")
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.endpoint + path, data=data, method=verb)
        try:
            with _OPENER.open(request, timeout=60) as answer:
                found: Item = json.load(answer)
                return found
        except urllib.error.HTTPError as error:
            told = json.load(error)["error"]
            raise GoogleError(told["code"], told["errors"][0]["reason"], told["message"]) from None


def _at(path: str) -> str:
    return f"/loopback/resources/{urllib.parse.quote(path)}"
