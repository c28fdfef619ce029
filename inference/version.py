"""Which version of spotrail this is."""

from __future__ import annotations

import importlib.metadata


def version() -> str:
    """Of the distribution that is installed."""
    return importlib.metadata.version("spotrail")
