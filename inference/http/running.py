"""A server from its first probe to its exit code: the event loop, the thread that loads, the thread of the engine.

The loop answers probes before there is a model, and takes signals from the first moment. Loading and compiling run on a
thread of their own, since they cannot be interrupted: a process that is told to stop meanwhile ends under them.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import math
import resource
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, cast, final

import uvicorn

from inference.errors import ServingError
from inference.exit_codes import ExitCode
from inference.http.authentication import Keys
from inference.http.connections import Connection
from inference.http.lifecycle import Action, Event, Lifecycle, Phase
from inference.http.metrics import Metrics, phases
from inference.http.server import Front
from inference.http.service import Assembled, AssemblyError, Service
from inference.scheduling.scheduler import Scheduler
from inference.settings import Settings
from training.errors import TrainingError

TELLING: Final = 2.0
"""Seconds in which the answers that are cut off are told so."""
CLOSING: Final = 1.0
"""Seconds in which connections are closed behind that, at least."""
IDLE: Final = 620
"""Seconds that a connection is kept between two requests: longer than the 600 of Google's load balancers, which would
send a request into one that is just being closed."""
LOOKING: Final = 0.5
"""Seconds between two looks at whether the engine is alive."""
FULL: Final = 30.0
"""Seconds between two warnings that no more connections can be taken."""
BACKLOG: Final = 2048
"""Connections that wait to be accepted."""
_LOG: Final = logging.getLogger("inference")

Assemble = Callable[[Callable[[Event], None]], Assembled]
"""Makes the engine; tells of WEIGHTS and COMPILE as it gets there. Runs on a thread of its own."""


def listen(host: str, port: int) -> socket.socket:
    """The socket of a server; `::` is all addresses, of IPv4 too. Raises ServingError where one cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = host == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG, dualstack_ipv6=both)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        hint = "is another server there?" if taken else "name an address of this machine, as 127.0.0.1, 0.0.0.0 or ::1"
        # Python appends the address, which is there already.
        reason = (error.strerror or str(error)).partition(" (while")[0]
        raise ServingError(f"--host {host} --port {port}: {reason}; {hint}") from None


def allow_connections() -> None:
    """Let this process open as many connections and files as the system lets it: the usual 1,024 are soon taken."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # some systems name more than they give
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def say(text: str) -> None:
    """A line of progress, written at once: several threads say something.

    Nothing where nobody reads any more: a server is not ended by its log.
    """
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")
        sys.stderr.flush()


@final
class Running:
    """One server. Made on any thread; `run` on the thread of its event loop."""

    def __init__(
        self,
        settings: Settings,
        assemble: Assemble,
        *,
        listening: socket.socket,
        keys: Keys | None = None,
        say: Callable[[str], None] = say,
    ) -> None:
        self._settings: Final = settings
        self._assemble: Final = assemble
        self._socket: Final = listening
        self._say: Final = say
        self.metrics: Final = Metrics(settings.served_name, context=settings.context)
        self.front: Final = Front(settings, keys=keys or Keys(), metrics=self.metrics, life=lambda: self.life, say=say)
        self.life = Lifecycle()
        """Where it is in its life."""
        self.metrics.watch(lambda: phases(self.life.phase))
        self._threads: list[threading.Thread] = []
        self._leaving: Final = asyncio.Event()
        self._hurried: Final = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cutting: asyncio.Task[None] | None = None
        self._grace_ends: float | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port, *_ = self._socket.getsockname()
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def run(self) -> ExitCode:
        """Serve until the end."""
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(_Complaints(self._say))
        http = _Uvicorn(self._config())
        serving = asyncio.create_task(http.serve(sockets=[self._socket]))
        serving.add_done_callback(self._served)
        self._say(f"listening on {self.url}")
        self._start("assembly", partial(self._assembly, self._loop))
        await self._leaving.wait()
        http.should_exit = True
        hurried = asyncio.create_task(self._hurried.wait())
        await asyncio.wait([serving, hurried], timeout=self._closing, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        for connection in list(http.server_state.connections):
            cast(Connection, connection).abort()
        await asyncio.wait([serving], timeout=CLOSING)
        await self._end_engine()
        self.front.close()
        self._say(f"stopped: {self.life.exit_code.meaning}")
        return self.life.exit_code

    def tell(self, event: Event) -> None:
        """What has happened; from any thread, and from a signal handler of the loop."""
        self._soon(partial(self._on, event))

    def _soon(self, work: Callable[[], None]) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it is closed: nothing matters any more
                self._loop.call_soon_threadsafe(work)

    def _config(self) -> uvicorn.Config:
        connection = partial(Connection, patience=self._settings.stall_timeout)
        return uvicorn.Config(
            self.front.app,
            http=cast(type[asyncio.Protocol], connection),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=IDLE,
        )

    @property
    def _closing(self) -> float:
        """Seconds for clients to take what was sent to them: what is left of the grace, where all was answered."""
        if self.life.exit_code is not ExitCode.FINE or self._grace_ends is None:
            return CLOSING
        return max(CLOSING, self._grace_ends - time.monotonic())

    def _on(self, event: Event) -> None:
        before = self.life.phase
        self.life, action = self.life.after(event)
        if self.life.phase is not before:
            self._say(self.life.phase.value)
        match action:
            case Action.DRAIN:
                self._drain()
            case Action.CUT_OFF:
                self._cutting = asyncio.get_running_loop().create_task(self._cut_off())
            case Action.LEAVE:
                self._leaving.set()
            case Action.HURRY:
                self._hurried.set()

    def _drain(self) -> None:
        """Refuse what comes, and wait for what is under way."""
        gate, service = self.front.gate, self.front.service
        assert service is not None
        service.scheduler.drain()
        self._say(f"draining: {gate.inside} requests under way, {self._settings.drain_timeout:g} s for them")
        gate.emptied = partial(self._on, Event.IDLE)
        if not gate.inside:
            self._on(Event.IDLE)
        self._grace_ends = time.monotonic() + self._settings.drain_timeout
        asyncio.get_running_loop().call_later(self._settings.drain_timeout, self._on, Event.GRACE_OVER)

    async def _cut_off(self) -> None:
        """Tell whoever still waits that there is no more, then leave."""
        service = self.front.service
        assert service is not None
        service.scheduler.cut_off()
        end = time.monotonic() + TELLING
        while self.front.gate.inside and time.monotonic() < end:
            await asyncio.sleep(0.02)
        self._leaving.set()

    def _start(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name=f"spotrail {name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _assembly(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._told():
            assembled = self._assemble(self.tell)
            service = Service(assembled, self._settings, self.metrics, loop)
            for warning in service.warnings:
                self._say(f"warning: {warning}")
            self._soon(partial(self._serve, service))

    def _serve(self, service: Service) -> None:
        if self.life.phase is Phase.STOPPED:
            return
        self.front.service = service
        self._start("engine", partial(self._engine, service.scheduler))
        self._on(Event.READY)
        self._watch(service.scheduler)

    def _engine(self, scheduler: Scheduler) -> None:
        with self._told():
            scheduler.run()

    def _watch(self, scheduler: Scheduler) -> None:
        """Leave where the engine is dead: who started the server starts another."""
        if scheduler.failed is not None:
            self._say(f"error: {scheduler.failed}")
            self._on(Event.FAILED)
        else:
            asyncio.get_running_loop().call_later(LOOKING, self._watch, scheduler)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what goes wrong on a thread into a message and an event."""
        try:
            yield
        except AssemblyError as error:
            self._say(f"error: {error}")
            self.tell(error.event)
        except (ServingError, TrainingError) as error:
            self._say(f"error: {error}")
            self.tell(Event.REFUSED)
        except Exception:  # noqa: BLE001 (a thread that ends in silence would leave a server that is never ready)
            _LOG.exception("a bug, or the machine")
            self.tell(Event.FAILED)

    def _served(self, serving: asyncio.Task[None]) -> None:
        """Nobody can reach the server any more: nothing where that was meant."""
        if not serving.cancelled() and (error := serving.exception()) is not None:
            _LOG.error("the HTTP server failed", exc_info=error)
        self._on(Event.FAILED)

    async def _end_engine(self) -> None:
        if self.front.service is not None:
            self.front.service.scheduler.close()
            await asyncio.to_thread(self._threads[-1].join, CLOSING)


@final
class _Complaints:
    """What is said of an error that nobody caught on the event loop.

    Where no more connections can be opened, asyncio has one for each that waits, and again every second: it is said
    once a while. Each has asyncio listen again too, which fails without harm where the server has stopped meanwhile.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say: Final = say
        self._quiet_until = -math.inf

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if "_start_serving" in context["message"]:
            return
        if not isinstance(error, OSError) or "socket" not in context:
            loop.default_exception_handler(context)
        elif loop.time() >= self._quiet_until:
            self._quiet_until = loop.time() + FULL
            self._say(f"warning: no more connections can be taken: {error.strerror}; see `ulimit -n`")


@final
class _Uvicorn(uvicorn.Server):
    """Takes no signals: one that drains is not one that stops listening."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
