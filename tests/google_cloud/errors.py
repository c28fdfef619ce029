"""How the loopback Google Cloud refuses: one exception, with the forms that it takes over HTTP and over gRPC."""

from __future__ import annotations

from typing import Any, Final, final

import grpc

_STATUS: Final = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    408: grpc.StatusCode.DEADLINE_EXCEEDED,
    409: grpc.StatusCode.ALREADY_EXISTS,
    412: grpc.StatusCode.FAILED_PRECONDITION,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    501: grpc.StatusCode.UNIMPLEMENTED,
    503: grpc.StatusCode.UNAVAILABLE,
}


@final
class Refusal(Exception):  # noqa: N818 - it is an answer of the API, not a fault of the server
    """An answer other than success, as Google gives it."""

    def __init__(self, code: int, reason: str, message: str, *, header: str = "") -> None:
        super().__init__(message)
        self.code = code
        """The status over HTTP."""
        self.reason = reason
        """Google's word for it: `notFound`, `resourceInUseByAnotherResource`."""
        self.message = message
        self.header = header
        """The one of the request that it is about, if any."""

    def body(self) -> dict[str, Any]:
        """The JSON of Compute and Storage."""
        place = {"locationType": "header", "location": self.header} if self.header else {}
        entry = {"message": self.message, "domain": "global", "reason": self.reason, **place}
        return {"error": {"code": self.code, "message": self.message, "errors": [entry]}}

    @property
    def status(self) -> grpc.StatusCode:
        """The status over gRPC."""
        return _STATUS[self.code]


def not_found(path: str) -> Refusal:
    """There is no such resource; `path` begins with `projects/`."""
    return Refusal(404, "notFound", f"The resource '{path}' was not found")
