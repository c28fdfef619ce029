"""Durations as Go reads them. The values are those of Go's own time.ParseDuration."""

from __future__ import annotations

import pytest

from infra.engine.durations import in_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90m", "5400s"),
        ("1h30m", "5400s"),
        ("1h0m0.5s", "3600.5s"),
        ("1.5h", "5400s"),
        (".5s", "0.5s"),
        ("1.s", "1s"),
        ("250ms", "0.25s"),
        ("1us", "0.000001s"),
        ("1µs", "0.000001s"),
        ("2m2m", "240s"),
        ("0", "0s"),
        ("+5m", "300s"),
        ("-5m", "-300s"),
    ],
)
def test_a_duration_is_so_many_seconds(text: str, seconds: str) -> None:
    assert in_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "90", "1 h", "1hour", "h", ".s", "1h-5m", "٣m", "5M", "1d", "m5"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration; it is written like 90m"):
        in_seconds(text)
