"""For every test of checkpoints: a disk that need not be waited for."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested is the order of writes; whether the disk has them when the power goes, no test here can see."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
