"""What a client is told when there is no answer: a status, and a body in the shape of OpenAI's.

`code` is a string or null there, never a number. No text of a client comes back at more than `LONGEST_ECHO` characters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, final

import orjson

LONGEST_ECHO: Final = 200
"""Characters of what a client sent that an error repeats, at most."""


@final
class ApiError(Exception):
    """No answer, and why. Raised by what reads a body, and turned into a response by the server."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        type: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status: Final = status
        self.message: Final = message
        self.type: Final = type
        self.param: Final = param
        self.code: Final = code
        self.retry_after: Final = retry_after
        """Seconds."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """The object under `error`."""
        return {"message": self.message, "type": self.type, "param": self.param, "code": self.code}

    @property
    def headers(self) -> Mapping[str, str]:
        """Of the response, beside those that every response has."""
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}

    def body(self) -> bytes:
        """The whole body."""
        return orjson.dumps({"error": self.fields})


def echo(value: object) -> str:
    """`value` as an error repeats it: bounded, whatever it is. Lists and objects are told by their size."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            cut = value if len(value) <= LONGEST_ECHO - 3 else value[: LONGEST_ECHO - 6] + "..."
            return f'"{cut}"'
        case list():
            return f"a list of {len(value)}"
        case dict():
            return "an object"
    shown = repr(value)
    return shown if len(shown) <= LONGEST_ECHO else shown[: LONGEST_ECHO - 3] + "..."


def invalid(param: str | None, problem: str, *, code: str | None = None) -> ApiError:
    """400: a field is not what it may be. `problem` goes on from its name: `is 3; it is ...`."""
    if param is None:
        return ApiError(400, problem, code=code)
    name = param if len(param) <= LONGEST_ECHO else param[: LONGEST_ECHO - 3] + "..."
    return ApiError(400, f"{name}: {problem}", param=name, code=code)


def context_exceeded(param: str, tokens: int, context: int, *, at_least: bool = False) -> ApiError:
    """400: a prompt that leaves no room for a token of an answer."""
    count = f"at least {tokens:,}" if at_least else f"{tokens:,}"
    return invalid(
        param,
        f"has {count} tokens; this model's maximum context length is {context:,} tokens, prompt and answer together, "
        f"so that a prompt has at most {context - 1:,}. Shorten it",
        code="context_length_exceeded",
    )


def model_not_found(asked: str, served: str) -> ApiError:
    """404: another model than the one that is served."""
    message = f"The model {echo(asked)} does not exist here; this server has {echo(served)} (GET /v1/models)"
    return ApiError(404, message, param="model", code="model_not_found")


def invalid_api_key() -> ApiError:
    """401: no key, or a wrong one."""
    message = "No valid API key: send one of this server's keys as `Authorization: Bearer KEY`"
    return ApiError(401, message, code="invalid_api_key")


def no_http() -> ApiError:
    """400: what came cannot be read as a request, and nor can what comes behind it."""
    return ApiError(400, "This is no request of HTTP/1.1; the connection is closed", code="invalid_http")


def no_such_route(method: str, path: str) -> ApiError:
    """404: nothing is served there."""
    return ApiError(404, f"There is no {echo(method)} {echo(path)} here", code="unknown_url")


def method_not_allowed(method: str, path: str, allowed: str) -> ApiError:
    """405: something is served there, by another method."""
    return ApiError(405, f"{echo(path)} takes {allowed}, not {echo(method)}", code="method_not_allowed")


def body_too_large(limit: int) -> ApiError:
    """413: more bytes than a body may have."""
    return ApiError(413, f"The body is larger than {limit:,} bytes, the most that is read", code="body_too_large")


def queue_full(retry_after: int) -> ApiError:
    """429: everything is busy, and as many wait as may."""
    message = f"The queue is full; try again in {retry_after} s"
    return ApiError(429, message, type="rate_limit_error", code="rate_limit_exceeded", retry_after=retry_after)


def not_ready(retry_after: int) -> ApiError:
    """503: the model is not loaded yet."""
    return _unavailable("The model is being loaded", "not_ready", retry_after)


def draining(retry_after: int) -> ApiError:
    """503: the server ends, and takes nothing new."""
    return _unavailable("The server is shutting down and takes no new request", "draining", retry_after)


def cut_off(retry_after: int) -> ApiError:
    """503: the server ended before the answer did; also the last event of a stream that had begun."""
    return _unavailable("The server is shutting down: the answer is not complete", "cut_off", retry_after)


def failed() -> ApiError:
    """500: the engine failed; also the last event of a stream that had begun."""
    message = "The engine failed while it worked on this answer; the log of the server says how"
    return ApiError(500, message, type="server_error", code="engine_failed")


def _unavailable(message: str, code: str, retry_after: int) -> ApiError:
    return ApiError(
        503, f"{message}; try again in {retry_after} s", type="server_error", code=code, retry_after=retry_after
    )
