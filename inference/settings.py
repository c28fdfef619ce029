"""The settings of a server: read once from the command line, checked, and never changed."""

from __future__ import annotations

import argparse
import difflib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NoReturn, final

from inference.errors import ServingError

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30
SOURCES: Final = ("auto", "disk", "fuse", "download")
DTYPES: Final = ("as-stored", "bfloat16", "float32")
_UNITS: Final = {"": 1, "b": 1, "kib": KIB, "mib": MIB, "gib": GIB, "tib": 1 << 40}
_SIZE: Final = re.compile(r"(\d{1,20}(?:\.\d{1,20})?) *([a-z]*)", re.IGNORECASE | re.ASCII)
_ORIGIN: Final = re.compile(r"\*|[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
_CHOICE: Final = re.compile(r".*invalid choice: '(.*)' \(choose from (.*)\)")
_EPILOG: Final = """examples:
  python -m inference --weights ./export --port 8000
  python -m inference --weights gs://bucket/model --source download --slots 32 --api-key-file keys

While weights are loaded the server answers its probes: /livez 200, /readyz and requests 503 with Retry-After.
SIGTERM, SIGINT and SIGHUP drain; a second one does not wait.

exit codes: 0 drained; 1 a bug in spotrail, or the machine failed; 2 a mistake in the command, or weights that are
refused; 5 the bucket or its credentials failed; 9 answers were cut off
"""


@final
@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a server is told. Raises ServingError, naming the option, for a number outside its range."""

    weights: str
    """A folder, or `gs://bucket/folder`."""
    source: str = "auto"
    """What the folder is: see `--source`."""
    weights_cache: Path = Path("~/.cache/spotrail/weights")
    """Where a download goes."""
    verify: bool = False
    """Whether the files are held against the digests of their manifest first."""
    dtype: str = "as-stored"
    """Of the weights on the device."""
    model_name: str | None = None
    """What requests call it; None: the name of the folder."""
    host: str = "127.0.0.1"
    """Address to listen on."""
    port: int = 8000
    """0: any that is free."""
    devices: int | None = None
    """Of this machine, each with a copy of the model; None: all that are here."""
    slots: int = 8
    """Answers at once on each device."""
    context: int = 32_768
    """The most tokens of prompt and answer together."""
    grid: int = 256
    """Tokens between two places where a state may be kept."""
    queue: int = 256
    """Answers that wait for a slot; a request over it is refused with 429."""
    cache_memory: int = GIB
    """Bytes of kept states; 0: none are kept."""
    prefill_tokens: int = 512
    """Of prompts that are read between two tokens of those that answer, at most, on each device."""
    api_key_file: Path | None = None
    """None: everybody is let in."""
    allowed_origins: tuple[str, ...] = ()
    """Pages of which a browser may ask: `https://chat.example.com`, or `*` for all."""
    access_log: bool = False
    """Whether each request is one line on standard error."""
    drain_timeout: float = 25.0
    """Seconds that the answers under way may go on behind SIGTERM."""
    most_body: int | None = None
    """Bytes of a request; a larger one is refused with 413 while it comes. None: by the context, see `body_limit`."""
    keep_alive: float = 15.0
    """Seconds without an event behind which a stream says that it is alive."""
    stall_timeout: float = 30.0
    """Seconds behind which a client that takes nothing of its answer, or sends nothing of its request, is left."""
    heartbeat_timeout: float = 120.0
    """Seconds without a turn of the engine, while it has work, behind which `/livez` fails."""
    compile_cache: Path | None = None
    """Where compiled programs are kept, so that the next start finds them."""

    def __post_init__(self) -> None:
        _within("--port", self.port, 0, 65_535)
        if self.devices is not None:
            _within("--devices", self.devices, 1, 4_096)
        _within("--slots", self.slots, 1, 65_536)
        _within("--context", self.context, 2, 1 << 30)
        _within("--grid", self.grid, 64, 65_536)
        if self.grid & (self.grid - 1):
            raise ServingError(
                f"--grid is {self.grid}; it is a power of two, so that pieces of a prompt have few sizes"
            )
        _within("--queue", self.queue, 0, 1 << 20)
        _within("--prefill-tokens", self.prefill_tokens, self.grid, 1 << 20)
        _within("--cache-memory", self.cache_memory, 0, 1 << 50)
        _within("--max-body", self.body_limit, KIB, GIB)
        _within("--drain-timeout", self.drain_timeout, 0, 86_400)
        _within("--keep-alive", self.keep_alive, 0.05, 3_600)
        _within("--stall-timeout", self.stall_timeout, 0.05, 3_600)
        _within("--heartbeat-timeout", self.heartbeat_timeout, 0.05, 86_400)
        if not self.host:
            raise ServingError("--host is empty; name an address, 0.0.0.0 for all of IPv4, or leave it out")
        if self.model_name is not None and not re.fullmatch(r"[!-~]{1,200}", self.model_name):
            raise ServingError(f"--model-name is {self.model_name!r}; it is 1 to 200 ASCII characters without a space")

    @property
    def body_limit(self) -> int:
        """Bytes of a request at most: by default 16 a token of the context, and 4 MiB at least.

        A token is 4 bytes of text, or 8 as a number; and to read the JSON of a body holds up everything else.
        """
        return self.most_body if self.most_body is not None else max(4 * MIB, 16 * self.context)

    @property
    def served_name(self) -> str:
        """What requests call the model."""
        return self.model_name or self.weights.rstrip("/").rpartition("/")[2] or "model"


def parse(arguments: Sequence[str]) -> Settings:
    """The settings of a command line. Raises ServingError; SystemExit behind `--help`."""
    given = _parser().parse(arguments)
    return Settings(**{name: value for name, value in given.items() if value is not None})


def bytes_of(text: str) -> int:
    """The bytes that `4GiB`, `512 MiB` or `1048576` says. Raises ServingError."""
    said = _SIZE.fullmatch(text.strip())
    factor = _UNITS.get(said[2].lower()) if said else None
    if said is None or factor is None:
        raise ServingError(f"{text!r} is no size; give bytes, or a number with KiB, MiB, GiB or TiB, as in 4GiB")
    return int(Decimal(said[1]) * factor)


def _within(option: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:  # not a number is in no range
        said, low, high = (str(each) if isinstance(each, int) else f"{each:g}" for each in (value, least, most))
        raise ServingError(f"{option} is {said}; it is {low} to {high}")


class _Parser(argparse.ArgumentParser):
    """One that raises instead of ending the process, and knows what was meant."""

    def parse(self, arguments: Sequence[str]) -> dict[str, Any]:
        """What was given, by the names of the settings; None for what was not."""
        given, unknown = self.parse_known_args(list(arguments))
        if unknown:
            self.error(self._unknown(unknown[0].partition("=")[0]))
        if given.weights is None:
            self.error("--weights is missing: the folder or gs:// address of a model")
        return vars(given)

    def error(self, message: str) -> NoReturn:
        choice = _CHOICE.fullmatch(message)
        if choice:
            close = difflib.get_close_matches(choice[1], re.findall(r"[\w-]+", choice[2]), 1, 0.5)
            message += f"; did you mean {close[0]}?" if close else ""
        raise ServingError(f"{message} (see python -m inference --help)")

    def _unknown(self, name: str) -> str:
        options = [option for action in self._actions for option in action.option_strings]
        close = difflib.get_close_matches(name, options, 1, 0.5)
        hint = f"; did you mean {close[0]}?" if close else ""
        return f"{name} is no option{hint}" if name.startswith("-") else f"{name!r} is not expected{hint}"


def _size(text: str) -> int:
    try:
        return bytes_of(text)
    except ServingError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _path(text: str) -> Path:
    if not text:  # as of a variable of the shell that is not set; Path("") would be the working folder
        raise argparse.ArgumentTypeError("is empty; name a file or folder")
    return Path(text)


def _origins(text: str) -> tuple[str, ...]:
    """As a list of JSON, which is how vLLM takes them, or with commas between."""
    try:
        said = json.loads(text) if text.lstrip().startswith("[") else text.split(",")
    except ValueError:
        said = None
    if not isinstance(said, list) or not said:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of origins, as in https://a.example,https://b.example")
    for origin in said:
        if not isinstance(origin, str) or not _ORIGIN.fullmatch(origin):
            raise argparse.ArgumentTypeError(
                f"{origin!r} is no origin: SCHEME://HOST[:PORT] in small letters, with nothing behind it, or *"
            )
    return tuple(said)


def _devices(text: str) -> int | None:
    if text == "all":
        return None
    if not re.fullmatch(r"-?\d{1,9}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of devices; give one, or all")
    return int(text)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return value


def _parser() -> _Parser:
    parser = _Parser(
        prog="python -m inference",
        description="An OpenAI-compatible server of a linear-attention model: memory does not grow with the context.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_weights(parser)
    _add_serving(parser)
    _add_patience(parser)
    return parser


def _default(name: str) -> object:
    return next(field.default for field in fields(Settings) if field.name == name)


def _add_weights(parser: _Parser) -> None:
    group = parser.add_argument_group("weights")
    group.add_argument("--weights", metavar="PATH|gs://...", help="the export to serve")
    group.add_argument(
        "--source",
        choices=SOURCES,
        help="disk: a local disk or Hyperdisk ML; fuse: a mount of gcsfuse, read forward only; download: copy a bucket "
        "first; auto (default): by what the path is",
    )
    group.add_argument(
        "--weights-cache",
        type=_path,
        metavar="DIR",
        help=f"where a download goes (default {_default('weights_cache')})",
    )
    group.add_argument(
        "--verify",
        action="store_true",
        help="hold the files against the digests of their manifest before they are read",
    )
    group.add_argument("--dtype", choices=DTYPES, help="of the weights on the device (default as-stored)")
    group.add_argument("--model-name", metavar="NAME", help="what requests call it (default: the folder's name)")
    group.add_argument("--compile-cache", type=_path, metavar="DIR", help="keep compiled programs for the next start")


def _add_serving(parser: _Parser) -> None:
    group = parser.add_argument_group("serving")
    group.add_argument("--host", help="address to listen on (default 127.0.0.1)")
    group.add_argument("--port", type=int, help="0 for any that is free (default 8000)")
    group.add_argument(
        "--devices",
        type=_devices,
        metavar="N|all",
        help="chips of this machine, each with a copy of the model (default all)",
    )
    for name, what in (
        ("slots", "answers at once on each device: with 8 devices there are 8 times as many"),
        ("context", "most tokens of prompt and answer together"),
        ("grid", "tokens between two places where a state may be kept, a power of two"),
        ("queue", "answers that wait for a slot; over it requests get 429"),
        ("prefill-tokens", "of prompts, read on each device between two tokens of those that answer"),
    ):
        default = _default(name.replace("-", "_"))
        group.add_argument(f"--{name}", type=int, metavar="N", help=f"{what} (default {default})")
    group.add_argument(
        "--cache-memory", type=_size, metavar="SIZE", help="of kept states of prompts, 0 for none (default 1GiB)"
    )
    group.add_argument(
        "--max-body",
        dest="most_body",
        type=_size,
        metavar="SIZE",
        help="of a request; over it 413 (default by the context, 4MiB or more)",
    )
    group.add_argument(
        "--api-key-file", type=_path, metavar="FILE", help="a line each: KEY or TENANT KEY (default: all are let in)"
    )
    group.add_argument(
        "--allowed-origins",
        type=_origins,
        metavar="ORIGIN,...",
        help="pages of which a browser may ask (CORS), * for all; a JSON list as in vLLM too (default: none)",
    )
    group.add_argument(
        "--access-log", action="store_true", help="say each request on standard error, but probes that are well"
    )


def _add_patience(parser: _Parser) -> None:
    group = parser.add_argument_group("patience, in seconds")
    for name, what in (
        ("drain-timeout", "that answers may go on behind SIGTERM; a spot machine is off 30 s behind its notice"),
        ("keep-alive", "without an event, behind which a stream sends a comment"),
        ("stall-timeout", "behind which a client that takes nothing, or sends no more of its request, is left"),
        ("heartbeat-timeout", "without a turn while there is work, behind which /livez fails"),
    ):
        default = _default(name.replace("-", "_"))
        group.add_argument(f"--{name}", type=_number, metavar="S", help=f"{what} (default {default:g})")
