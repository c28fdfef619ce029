"""`python -m tests.google_cloud [--world FILE] [--bucket NAME]... [--port N]`: a world as a process of its own.

It runs until SIGTERM or Ctrl-C. Its endpoint is the one line that it prints. `GET /loopback/calls` there tells how
often each method was called.
"""

from __future__ import annotations

import argparse
import signal
import threading
from pathlib import Path

from tests.google_cloud.object_serving import add_buckets
from tests.google_cloud.server import served
from tests.google_cloud.world import load

WORLDS = Path(__file__).parent / "worlds"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.google_cloud", description="A loopback Google Cloud.")
    parser.add_argument("--world", type=Path, default=WORLDS / "demo.json", help="a JSON file (default: the demo)")
    parser.add_argument("--port", type=int, default=0, help="of 127.0.0.1; 0 takes a free one")
    parser.add_argument("--bucket", action="append", default=[], help="an empty one without soft delete; repeatable")
    arguments = parser.parse_args()
    world = load(arguments.world)
    add_buckets(world, *arguments.bucket)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with served(world, arguments.port) as endpoint:
        print(endpoint, flush=True)
        stop.wait()


if __name__ == "__main__":
    main()
