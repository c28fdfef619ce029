"""The loopback Google Cloud on one port of 127.0.0.1, for the real clients.

with served(world) as endpoint: ...   # http://127.0.0.1:PORT, for REST and for gRPC without TLS
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from tests.google_cloud import compute_changes, compute_lists, compute_operations, declared, storage
from tests.google_cloud.front import Front
from tests.google_cloud.grpc_server import GrpcServer
from tests.google_cloud.http_server import HttpServer, own_routes
from tests.google_cloud.world import World


@contextlib.contextmanager
def served(world: World, port: int = 0) -> Iterator[str]:
    """Serve a world until the end of the block; `port` 0 takes a free one."""
    stopping = threading.Event()
    routes = (
        *compute_lists.routes(),
        *compute_changes.routes(),
        *compute_operations.routes(),
        *storage.routes(),
        *own_routes(),
        *declared.routes(),
    )
    http = HttpServer(world, routes, stopping)
    front = Front(http.serve, port)
    grpc_server = GrpcServer(world, front.cut, stopping)
    front.upstream = grpc_server.port
    world.objects.origin = f"http://127.0.0.1:{front.port}"
    grpc_server.start()
    front.start()
    try:
        yield world.objects.origin
    finally:
        stopping.set()
        front.stop()
        grpc_server.stop()
