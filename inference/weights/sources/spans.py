"""Ranges of bytes: which have come, and which are still to be fetched. All is pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, final


@final
class Span(NamedTuple):
    """From `start` up to, without, `stop`."""

    start: int
    stop: int

    @property
    def size(self) -> int:
        """Bytes."""
        return self.stop - self.start


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same bytes in as few spans as there can be, in order; empty spans go."""
    found: list[Span] = []
    for span in sorted(each for each in spans if each.size > 0):
        if found and span.start <= found[-1].stop:
            found[-1] = Span(found[-1].start, max(found[-1].stop, span.stop))
        else:
            found.append(span)
    return tuple(found)


def missing(done: Sequence[Span], size: int) -> tuple[Span, ...]:
    """What `done`, which is merged, lacks of `size` bytes."""
    edges = [0, *(edge for span in done for edge in span), size]
    return tuple(Span(start, stop) for start, stop in zip(edges[::2], edges[1::2], strict=True) if start < stop)


def cut(spans: Iterable[Span], most: int) -> Iterator[Span]:
    """Spans of at most so many bytes."""
    for span in spans:
        for start in range(span.start, span.stop, most):
            yield Span(start, min(start + most, span.stop))


def total(spans: Iterable[Span]) -> int:
    """Their bytes."""
    return sum(span.size for span in spans)
