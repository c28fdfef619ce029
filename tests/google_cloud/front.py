"""One port for everything: the first bytes of a connection say whether it is gRPC (HTTP/2) or plain HTTP.

HTTP is served on the connection itself, in a thread of its own; gRPC is passed on, byte by byte, to its server.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Final, final

PREFACE: Final = b"PRI"
"""How HTTP/2 without TLS begins: `PRI * HTTP/2.0`."""
_CHUNK: Final = 1 << 18


@final
class Front:
    """Listens on 127.0.0.1. `http` serves one connection until its end; `upstream` is the port of the gRPC server."""

    def __init__(self, http: Callable[[socket.socket], None], port: int = 0) -> None:
        self.upstream = 0
        self._http = http
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._cuts: dict[int, int] = {}
        self._closing = False
        self._listener = socket.create_server(("127.0.0.1", port), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, name="front", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends all connections."""
        self._closing = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        with self._lock:
            for connection in self._open:
                _shut(connection)

    def cut(self, port: int, after: int) -> None:
        """End the gRPC connection that comes from `port` once so many more bytes have gone to the client."""
        with self._lock:
            self._cuts[port] = after

    def _accept(self) -> None:
        while not self._closing:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, self._kept(connection), contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            first = connection.recv(len(PREFACE), socket.MSG_PEEK)
            if first.startswith(PREFACE):
                self._pass_on(connection)
            elif first:
                self._http(connection)

    def _pass_on(self, client: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", self.upstream)) as server, self._kept(server):
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            port: int = server.getsockname()[1]
            back = threading.Thread(target=self._answers, args=(server, client, port), daemon=True)
            back.start()
            _copy(client, server)
            back.join()

    def _answers(self, server: socket.socket, client: socket.socket, port: int) -> None:
        """From the server to the client, up to where the connection is to be cut."""
        with contextlib.suppress(OSError):
            while chunk := server.recv(_CHUNK):
                with self._lock:
                    left = self._cuts.get(port)
                    if left is not None:
                        self._cuts[port] = left - len(chunk)
                client.sendall(chunk if left is None else chunk[:left])
                if left is not None and left <= len(chunk):
                    break
        _shut(client)
        _shut(server)

    @contextlib.contextmanager
    def _kept(self, connection: socket.socket) -> Iterator[None]:
        with self._lock:
            self._open.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(connection)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(_CHUNK):
            target.sendall(chunk)
    _shut(source)
    _shut(target)


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
