"""What Google takes as a label, and which ttl the guard understands."""

from __future__ import annotations

import pytest

from policies.rules.labels import valid_key, valid_ttl, valid_value


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        ("gs://b/run-1", False),
        ("head.default", False),
        ("Alice", False),
        ("x" * 64, False),
        ("x" * 63, True),
        ("", True),
        ("modèle-é", True),
        ("モデル", True),
        ("run_1-a", True),
        ("a b", False),
    ],
)
def test_label_values(value: str, taken: bool) -> None:
    assert valid_value(value) is taken


@pytest.mark.parametrize(
    ("key", "taken"), [("9k", False), ("Key", False), ("", False), ("goog-x", True), ("managed-by", True), ("é", True)]
)
def test_label_keys(key: str, taken: bool) -> None:
    assert valid_key(key) is taken


@pytest.mark.parametrize(
    ("ttl", "understood"), [("7d", True), ("12h", True), ("0d", False), ("7", False), ("7w", False), ("forever", False)]
)
def test_ttl(ttl: str, understood: bool) -> None:
    assert valid_ttl(ttl) is understood
