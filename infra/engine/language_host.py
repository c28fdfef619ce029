"""Runs one Pulumi program, as Pulumi's Python language host does.

It is a process of its own, started with one end of the line to the engine, over which it gets its orders, tells how
the program ended, and then checks the inputs that the engine asks about against the classes of the SDK, which the
program has already loaded.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import faulthandler
import gc
import json
import logging
import os
import runpy
import select
import signal
import socket
import sys
import threading
import time
from typing import Any, Final, final

import grpc
import pulumi
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, resource_pb2, resource_pb2_grpc

from infra.engine import schema, tracebacks
from infra.engine.callbacks import CHANNEL_OPTIONS
from infra.engine.channel import INPUTS_KEY, Channel, Message

GC_THRESHOLD: Final = 1_000_000
"""Python's 700 spends a third of a second on the classes of pulumi_gcp, none of which is ever garbage."""
_OURS: Final = ("infra", "policies")
_STDERR: Final = 2
_AT_ONCE: Final = 0.001


def main(descriptor: int) -> None:
    """Serve the engine at the other end of `descriptor`."""
    gc.set_threshold(GC_THRESHOLD)
    end = socket.socket(fileno=descriptor)
    end.set_inheritable(False)
    channel = Channel(end)
    order = channel.receive()
    if order is not None:
        _die_with_the_engine(descriptor)
        _forget_ourselves()
        channel.send(_run(order))
        question = channel.receive()
        if question is not None:
            channel.send({"problems": schema.check(question["resources"])})
    _leave()


def _die_with_the_engine(descriptor: int) -> None:
    """From now on end, with all that the program has started, as soon as the other end of `descriptor` is gone."""
    line = select.poll()
    line.register(descriptor, 0)  # a hang-up is reported whatever is asked for

    def watch() -> None:
        line.poll()
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


def _forget_ourselves() -> None:
    """Leave no module of ours loaded or first: a program with a package `infra` of its own must get that one."""
    del sys.path[0]
    for name in list(sys.modules):
        if name.partition(".")[0] in _OURS:
            del sys.modules[name]


def _leave() -> None:
    """End without the teardown of the interpreter, which takes a tenth of a second and helps nobody."""
    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)


def _run(order: Message) -> Message:
    """Run the program and tell how it ended."""
    faulthandler.dump_traceback_later(max(order["dump_at"] - time.monotonic(), _AT_ONCE), file=_STDERR)
    _configure(order)
    sys.argv = [order["program"]]
    # As in Pulumi's host: what a failed program leaves behind unawaited is nothing to tell the user about.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(pulumi.runtime.run_in_stack(lambda: _program(order["program"])))
    except pulumi.RunError as error:
        return {"ended": "refused", "message": str(error)}
    except SystemExit as error:
        return {"ended": "done"} if error.code in (None, 0) else _failed(f"the program ended itself: {error!r}")
    except BaseException as error:  # noqa: BLE001 - whatever it was, the engine is told
        kept = pulumi.runtime.settings.SETTINGS.rpc_manager
        same = kept.unhandled_exception is error
        return _failed(tracebacks.own_part(error, kept.exception_traceback if same else None))
    finally:
        faulthandler.cancel_dump_traceback_later()
    return {"ended": "done"}


def _program(program: str) -> None:
    runpy.run_path(program, run_name="__main__")


def _failed(message: str) -> Message:
    return {"ended": "failed", "message": message}


def _configure(order: Message) -> None:
    os.environ["PULUMI_CONFIG"] = json.dumps(order["config"])
    os.environ["PULUMI_CONFIG_SECRET_KEYS"] = json.dumps(order["secret_keys"])
    pulumi.runtime.set_all_config(pulumi.runtime.get_config_env(), pulumi.runtime.get_config_secret_keys_env())
    line = grpc.insecure_channel(order["address"], options=CHANNEL_OPTIONS)
    pulumi.runtime.configure(
        pulumi.runtime.Settings(
            project=order["project"],
            stack=order["stack"],
            organization=order["organization"],
            root_directory=order["root"],
            monitor=_Informed(resource_pb2_grpc.ResourceMonitorStub(line), order["asks"]),
            engine=_Quiet(engine_pb2_grpc.EngineStub(line)),
            dry_run=True,
        )
    )


@final
class _Informed:
    """The monitor's client that tells the engine, with each registration, what the SDK knows of the type."""

    def __init__(self, monitor: resource_pb2_grpc.ResourceMonitorStub, asks: list[str]) -> None:
        self._monitor = monitor
        self._asks = asks

    def RegisterResource(  # noqa: N802 - the protocol's name
        self, request: resource_pb2.RegisterResourceRequest
    ) -> resource_pb2.RegisterResourceResponse:
        told = schema.inputs_among(request.type, self._asks) if request.custom else []
        answer: resource_pb2.RegisterResourceResponse = self._monitor.RegisterResource(
            request, metadata=((INPUTS_KEY, " ".join(told)),)
        )
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._monitor, name)


@final
class _Quiet:
    """The engine's client without the SDK's debug messages, of which each would wait for an answer."""

    def __init__(self, engine: engine_pb2_grpc.EngineStub) -> None:
        self._engine = engine

    def Log(self, request: engine_pb2.LogRequest) -> None:  # noqa: N802 - the protocol's name
        if request.severity != engine_pb2.DEBUG:
            self._engine.Log(request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)
