"""The order of a program, from the lines through which it ran."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pulumi
import pytest
from pulumi.runtime.proto import source_pb2

from infra.engine import language_host
from infra.engine.position import Trace, is_own, program_order, shown, trace_of

MAIN, PART = "/p/__main__.py", "/p/part.py"

# In the order in which the program makes them: (urn, parent, trace).
MADE: list[tuple[str, str, Trace]] = [
    ("stack", "", ()),
    ("provider", "stack", ((MAIN, 30),)),
    ("network", "stack", ((MAIN, 5),)),
    ("component", "stack", ((MAIN, 9),)),
    ("component-b", "component", ((MAIN, 9), (PART, 20))),
    ("component-a", "component", ((MAIN, 9), (PART, 21))),
    ("host-2", "stack", ((MAIN, 12),)),
    ("host-10", "stack", ((MAIN, 12),)),
    ("late", "stack", ((MAIN, 40), (PART, 3))),
]


@pytest.mark.parametrize("seed", range(5))
def test_the_order_does_not_hang_on_the_order_of_arrival(seed: int) -> None:
    arrived = MADE[:]
    random.Random(seed).shuffle(arrived)
    traces = {urn: trace for urn, _, trace in arrived}
    parents = {urn: parent for urn, parent, _ in arrived}
    assert program_order(traces, parents, first=["provider"]) == [urn for urn, _, _ in MADE]


def test_a_deep_tree_is_no_deep_recursion() -> None:
    traces: dict[str, Trace] = {str(depth): () for depth in range(5000)}
    parents = {str(depth): str(depth - 1) if depth else "" for depth in range(5000)}
    assert program_order(traces, parents) == [str(depth) for depth in range(5000)]


@pytest.mark.parametrize(
    ("file", "own"),
    [
        ("/home/me/project/infra/__main__.py", True),
        (asyncio.__file__, False),
        (pulumi.__file__, False),
        (language_host.__file__, False),
        (str(Path(language_host.__file__).parents[1] / "components" / "buckets.py"), True),
        ("<frozen runpy>", False),
        ("<string>", False),
    ],
)
def test_whose_a_frame_is(file: str, own: bool) -> None:
    assert is_own(file) is own


def test_a_trace_is_the_programs_own_frames_outermost_first() -> None:
    stack = source_pb2.StackTrace(
        frames=[
            source_pb2.StackFrame(pc=source_pb2.SourcePosition(uri="file:///p/my%20part.py", line=7)),
            source_pb2.StackFrame(pc=source_pb2.SourcePosition(uri=Path(pulumi.__file__).as_uri(), line=1)),
            source_pb2.StackFrame(),
            source_pb2.StackFrame(pc=source_pb2.SourcePosition(uri="file:///p/__main__.py", line=3)),
        ]
    )
    assert trace_of(stack) == (("/p/__main__.py", 3), ("/p/my part.py", 7))
    assert shown(trace_of(stack)) == "my part.py:7"
    assert shown(()) == ""
