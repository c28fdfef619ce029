"""`python -m inference`: serve a model. Signals work from the first moment; heavy imports wait behind the probes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Final

from inference.errors import ServingError
from inference.exit_codes import ExitCode
from inference.settings import Settings, parse

if TYPE_CHECKING:
    from inference.http.lifecycle import Event
    from inference.http.service import Assembled

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Each drains; the last is what a terminal sends that closes, unless nohup has the server live on."""

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


def run(arguments: Sequence[str]) -> int:
    """The exit code of one command line; a mistake of the user is one message and no traceback."""
    for number in _heard():
        signal.signal(number, _leave)
    try:
        return _serve(parse(arguments))
    except ServingError as error:
        print(f"error: {error}", file=sys.stderr)
        return ExitCode.BAD_INPUT


def _heard() -> tuple[signal.Signals, ...]:
    return tuple(each for each in SIGNALS if each != signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN)


def _leave(_number: int, _frame: FrameType | None) -> None:
    """Nobody is answered yet, and nobody waits."""
    os._exit(ExitCode.FINE)


def _serve(settings: Settings) -> int:
    import asyncio
    import logging

    from inference.http.authentication import Keys, read_keys
    from inference.http.lifecycle import Event
    from inference.http.running import Running, allow_connections, listen, say
    from inference.weights.sources.address import SCHEME
    from inference.weights.sources.endpoint import emulator

    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", datefmt="%H:%M:%S")
    if settings.weights.startswith(SCHEME):
        emulator()  # raises for one that nobody could reach, before JAX is imported, which takes seconds
    keys = Keys() if settings.api_key_file is None else read_keys(settings.api_key_file)
    allow_connections()
    listening = listen(settings.host, settings.port)
    if not keys.keys and settings.host not in LOOPBACK:
        say(f"warning: --host {settings.host} without --api-key-file: whoever reaches it is answered")

    def assemble(tell: Callable[[Event], None]) -> Assembled:
        from inference.assembly import assemble  # with JAX, which takes seconds

        return assemble(settings, tell, say)

    async def serve() -> int:
        running = Running(settings, assemble, listening=listening, keys=keys)
        for number in _heard():
            asyncio.get_running_loop().add_signal_handler(number, running.tell, Event.SIGNAL)
        return await running.run()

    return asyncio.run(serve())


if __name__ == "__main__":
    ended = run(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # What still runs are threads inside native code (of a load, of a compilation), which do not survive an orderly end:
    # the process would die of a signal instead of its exit code.
    os._exit(ended)
