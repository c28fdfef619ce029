"""Page after page of a list: counted, repeated where the API is busy, ended where it goes in circles or on and on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from policies.audit.live.access import Clients
from policies.audit.live.failures import CloudError, told


def pages(clients: Clients, method: str, call: Callable[..., Any], request: Any) -> Iterator[Any]:
    """The pages of a list method of a generated client. Raises CloudError."""
    turn = _Turn(clients, method)
    with told(method):
        while True:
            clients.asked(method)
            # One page a call: the client's own loop would keep each page until the next has come.
            page = next(iter(call(request=request, **clients.how(method)).pages))
            request.page_token = page.next_page_token
            yield page
            del page
            if turn.ends(request.page_token):
                return


def storage_pages(clients: Clients, method: str, path: str, query: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The pages of a list of Cloud Storage, as JSON. Raises CloudError.

    The packaged client has no method for caches, and hides the JSON of what it lists: its connection gives both.
    """
    turn = _Turn(clients, method)
    asked = dict(query)
    with told(method):
        while True:
            clients.asked(method)
            connection = clients.storage._connection
            page = connection.api_request("GET", path, query_params=asked, **clients.how(method))
            if not isinstance(page, Mapping):
                raise CloudError(f"{method}: the answer is no JSON object")
            yield page
            token = page.get("nextPageToken", "")
            if not isinstance(token, str):
                raise CloudError(f"{method}: the token of the next page is no text")
            if turn.ends(token):
                return
            asked["pageToken"] = token


class _Turn:
    """Whether there is another page, and whether it may be asked for."""

    def __init__(self, clients: Clients, method: str) -> None:
        self._method = method
        self._seen: set[str] = set()
        self._seconds = clients.access.part_s
        self._until = time.monotonic() + self._seconds

    def ends(self, token: str) -> bool:
        """Whether the page was the last. Raises CloudError for a token that came before, and when time is up."""
        if not token:
            return True
        if token in self._seen:
            raise CloudError(f"{self._method}: the API gives the same page again and again")
        if time.monotonic() > self._until:
            raise CloudError(f"{self._method}: not at an end after {self._seconds:g} s and {len(self._seen) + 1} pages")
        self._seen.add(token)
        return False
